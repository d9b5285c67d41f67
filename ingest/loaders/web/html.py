"""HTML to blocks: navigation and hidden parts dropped, headings are sections."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

from ingest.loaders import metadata
from ingest.loaders.outline import (
    SIGN_BYTES,
    Outline,
    add_brackets,
    ordinal,
    table_text,
    write_above,
    write_below,
    write_superscript,
)
from ingest.loaders.site import read_site
from ingest.loaders.web.definitions import (
    defined_name,
    is_definition_list,
    kind_of,
    notice_of,
    signature_of,
)
from ingest.loaders.web.styles import above, remove_unseen
from ingest.types import Block, ParsedDocument

_MAX_MATH_DEPTH = 40  # a bound against hostile nesting; chosen, not measured
_HIDDEN = ("annotation", "annotation-xml", "mphantom")


def math_text(node: LexborNode) -> str:
    """Return the text of a <math> element."""
    text = node.attributes.get("alttext")
    if not text:
        source = node.css_first('annotation[encoding*="tex" i]')
        text = source.text(deep=True) if source is not None else ""
    return " ".join((text or _linear(node, 0)).split())


def _linear(node: LexborNode, depth: int) -> str:
    if depth > _MAX_MATH_DEPTH:
        return node.text(deep=True)
    parts = [
        _linear(child, depth + 1) if child.tag != "-text" else child.text_content or ""
        for child in node.iter(include_text=True)
        if child.tag not in _HIDDEN and child.tag != "_comment"
    ]
    parts = [part.strip() for part in parts if part.strip()]
    first, second, third = [*parts, "", "", ""][:3]
    match node.tag:
        case "mfrac":
            return f"{add_brackets(first)}/{add_brackets(second)}"
        case "msup" | "mover":
            return f"{first}{write_above(second)}"
        case "msub" | "munder":
            return f"{first}{write_below(second)}"
        case "msubsup" | "munderover":
            return f"{first}{write_below(second)}{write_above(third)}"
        case "msqrt":
            return f"√{add_brackets(''.join(parts))}"
        case "mroot":
            return f"{write_superscript(second)}√{add_brackets(first)}"
        case "mtr":
            return ", ".join(parts)
        case "mtable":
            return f"[{'; '.join(parts)}]"
    return "".join(f" {part} " if part in ("=", "<", ">", "≤", "≥") else part for part in parts)


DROPPED = frozenset(
    "script style template svg canvas iframe object embed button select input textarea "
    "dialog head title meta link math-renderer audio video map".split()
)
_NOT_READ = DROPPED | {"noscript"}
_MAX_SPAN = 1000  # columns, as the HTML standard bounds colspan


def rows_of(table: LexborNode) -> list[list[str]]:
    """Return the cells; one over several columns appears once, one over rows in each of them."""
    rows: list[list[str]] = []
    below: dict[int, tuple[int, int, str]] = {}
    for row in table.css("tr"):
        cells: list[str] = []
        column = 0
        for cell in row.css("td, th"):
            column = _repeat_spanning_cells(below, column, cells)
            text, height, width = text_of(cell), _span(cell, "rowspan"), _span(cell, "colspan")
            cells.append(text)
            if height > 1:
                below[column] = (height - 1, width, text)
            column += width
        _repeat_spanning_cells(below, column, cells)
        rows.append(cells)
    return rows


def _repeat_spanning_cells(
    below: dict[int, tuple[int, int, str]], column: int, cells: list[str]
) -> int:
    """Repeat the cells that reach down into this row; return the next free column."""
    while column in below:
        left, width, text = below.pop(column)
        cells.append(text)
        if left > 1:
            below[column] = (left - 1, width, text)
        column += width
    return column


def _span(cell: LexborNode, name: str) -> int:
    value = (cell.attributes.get(name) or "").strip()
    return min(int(value), _MAX_SPAN) if value.isdecimal() and int(value) else 1


def text_of(node: LexborNode) -> str:
    """Return all text below a node; blocks and <br> end lines, dropped elements hold none."""
    parts: list[str] = []

    def enter(found: LexborNode) -> bool:
        if found.tag == "-text":
            parts.append(found.text_content or "")
        elif found.tag == "br":
            parts.append("\n")
        elif found.tag == "sup":
            parts.append(write_superscript(found.text(deep=True)))
            return False
        elif found.tag == "math":
            parts.append(math_text(found))
            return False
        return (found.tag or "-")[0] != "-" and found.tag not in _NOT_READ

    for tag, entering in visit(node, enter):
        if tag in ("p", "div", "li", "td") and not entering:
            parts.append("\n")
    return "".join(parts)


def visit(root: LexborNode, enter: Callable[[LexborNode], bool]) -> Iterator[tuple[str, bool]]:
    """Yield the tag of each node that was entered, before (True) and after its children."""
    path: list[LexborNode] = []
    node = root.first_child
    while node is not None or path:
        if node is None:
            node = path.pop()
            yield node.tag or "", False
        elif enter(node):
            yield node.tag or "", True
            path.append(node)
            node = node.first_child
            continue
        node = node.next


_FURNITURE = frozenset("nav header footer aside form menu".split())
_FURNITURE_ROLES = frozenset("navigation banner contentinfo search complementary".split())
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark q rp rt "
    "ruby s samp small span strike strong sub sup time tt u var wbr -text".split()
)
_IS = ": "
_MODULE = "module-"  # before its name in the anchor of the page of a module, by Sphinx
_CODE_INLINE = frozenset(("code", "tt", "kbd", "samp"))
_MARKS = "¶# \u200b\n"  # behind headings, for links to them
_PERMALINKS = frozenset(("¶", "#", "🔗", "[source]", "[edit]", "[]"))
# What generators (MediaWiki, Sphinx, MkDocs, blogs) call the parts around the text.
_FURNITURE_CLASS = re.compile(
    r"(?<![\w-])(?:navbox|navbar|breadcrumbs?|catlinks|noprint|mw-portlet|mw-editsection|mw-jump-link|"
    r"vector-(?:menu|dropdown|toc)[\w-]*|toc|toctree-wrapper|sidebar|sphinxsidebar|skip-link|"
    r"linenos|linenodiv|md-content__button|md-source-file|theme-doc-(?:version-badge|footer)|"
    r"cookie[\w-]*|pagination|social-share|share-buttons|headerlink|screen-reader-text)(?![\w-])"
)
_MIN_PARAGRAPHS = 3  # in a noscript; fewer are a notice; chosen, not measured
_MAX_DIGITS = 10  # of a number; chosen, not measured


class HtmlWalk:
    """Turn a subtree into the blocks of an outline."""

    def __init__(
        self, outline: Outline, *, keep_furniture: bool = False, is_part: bool = False
    ) -> None:
        """Drop navigation, page headers and the like unless `keep` says otherwise.

        `is_part`: what is walked is the main part of a page, whose headers are its own.
        """
        self._outline = outline
        self._keep_furniture = keep_furniture
        self._is_part = is_part
        self._words: list[str] = []
        self._item = ""
        self._label = ""
        self._counts: dict[int, int] = {}
        self._lists: list[bool] = []  # the <dl> around, and whether they explain names of an API
        self._links = 0
        self.linked = 0  # characters that are links

    def run(self, root: LexborNode) -> None:
        """Visit every node below `root` in reading order."""
        for tag, entering in visit(root, self._enter):
            if tag in _CODE_INLINE:
                self._words.append("`")
            elif tag == "a":
                self._links += 1 if entering else -1
            elif tag not in _INLINE:
                self._flush(term=tag == "dt" and not entering)
                if tag == "dl" and not entering and self._lists.pop():
                    self._outline.close(self._level + 1)
                if entering and tag == "li":
                    if self._item.endswith(_IS):  # the list is the definition of a term
                        self._outline.prose(self._item.rstrip(), tight=True)
                    self._item = self._label
                elif tag == "dl" and self._item:  # a term without a definition
                    self._outline.prose(self._item.removesuffix(_IS))
                    self._item = ""
        self._flush()

    def _enter(self, node: LexborNode) -> bool:
        """Say whether to go into a node; take whole the ones that are a block themselves."""
        tag = node.tag or ""
        if tag == "-text":
            text = node.text_content or ""
            self._words.append(text)
            self.linked += len(text.strip()) if self._links else 0
        elif self._is_dropped(node, tag):
            pass
        elif tag == "br":
            self._words.append("\x00")
        elif tag == "sup":
            self._words.append(write_superscript(node.text(deep=True)))
        elif tag == "img":
            alt = " ".join((node.attributes.get("alt") or "").split())
            # A sign or a formula belongs to its sentence; more than that no reader sees.
            self._words.append(f" {alt} " if len(alt.encode()) <= SIGN_BYTES else " ")
        elif tag == "math":
            self._words.append(f" {math_text(node)} ")
        elif tag == "a":
            return text_of(node).strip() not in _PERMALINKS
        elif tag == "li":
            self._label = self._label_of(node)
            return True
        elif tag in _HEADINGS:
            self._add_heading(node, _HEADINGS[tag])
        elif tag == "pre":
            self._flush()
            self._outline.add(text_of(node).strip("\n").rstrip(), "code")
        elif tag == "table":
            return self._enter_table(node)
        elif tag == "dt" and any(self._lists) and (name := defined_name(node)):
            self._flush()
            self._outline.heading(self._level, name)
            anchor = node.attributes.get("id") or ""
            self._outline.names.mark(name, type=kind_of(node), anchor=anchor)
            self._outline.prose(signature_of(node))
        else:
            if tag in ("div", "aside") and (directive := notice_of(node)):
                self._outline.note(directive, node.text(deep=True, separator=" "))
            if tag == "dl":
                self._lists.append(is_definition_list(node))
            return True
        return False

    def _add_heading(self, node: LexborNode, level: int) -> None:
        self._flush()
        text, anchor = text_of(node).rstrip(_MARKS), _anchor(node)
        self._outline.heading(level, text)
        self._outline.names.mark(" ".join(text.split()), anchor=anchor)
        if anchor.startswith(_MODULE):
            self._outline.names.mark(anchor.removeprefix(_MODULE), type="module")

    @property
    def _level(self) -> int:
        """Return the level of a name of an API: below all headings, members below their class."""
        return len(_HEADINGS) + 1 + sum(self._lists)

    def _label_of(self, item: LexborNode) -> str:
        """Return the number or bullet before an item; call it once for each, in order."""
        around = item.parent
        if around is None or around.tag != "ol":
            return "- "
        given = _number(item, "value")
        if given is None:
            start = _number(around, "start")
            given = self._counts.get(around.mem_id, 0 if start is None else start - 1) + 1
        self._counts[around.mem_id] = given
        kind = item.attributes.get("type") or around.attributes.get("type") or "1"
        return f"{ordinal(given, kind)}. "

    def _enter_table(self, node: LexborNode) -> bool:
        """Take a table of data as rows; a table that only lays out the page is walked through."""
        nested = any(found.mem_id != node.mem_id for found in node.css("table"))
        if nested or node.css_first("pre, h1, h2, h3") is not None:
            return True
        rows = rows_of(node)
        if max((sum(bool(cell.strip()) for cell in row) for row in rows), default=0) < 2:
            return True
        self._flush()
        self.linked += sum(len(link.text(deep=True).strip()) for link in node.css("a"))
        caption = node.css_first("caption")
        if caption is not None:
            self._outline.prose(" ".join(text_of(caption).split()))
        self._outline.add(table_text(rows), "table")
        return False

    def _is_dropped(self, node: LexborNode, tag: str) -> bool:
        if tag in DROPPED or not (tag[:1].isalpha()):
            return True
        if tag == "noscript":  # a sentence about JavaScript, or the page itself
            return len(node.css("p")) < _MIN_PARAGRAPHS
        attributes = node.attributes
        if self._keep_furniture:
            return False
        if attributes.get("role") in _FURNITURE_ROLES:
            return True
        # Some sites wrap the whole page in one form, and a heading in a header is the title.
        if tag in ("form", "header"):
            is_own = self._is_part and tag == "header"
            return not is_own and node.css_first("h1, p, article") is None
        named = f"{attributes.get('class') or ''} {attributes.get('id') or ''}"
        if _FURNITURE_CLASS.search(named) and tag not in ("body", "main", "article"):
            return node.css_first("h1") is None
        return tag in _FURNITURE and node.css_first("h1") is None

    def _flush(self, *, term: bool = False) -> None:
        """Add the words gathered so far; a term is put before its explanation."""
        text = "".join(self._words)
        self._words.clear()
        text = re.sub(r"\s+", " ", text).replace("``", "")
        text = re.sub(r" *\x00[\x00 ]*\x00 *", "\n\n", text)
        text = re.sub(r" *\x00 *", "\n", text).strip()
        if text and term:
            self._item += text.rstrip(": ") + _IS
        elif text:
            self._outline.prose(self._item + text, tight=bool(self._item))
            self._item = ""


def _number(node: LexborNode, name: str) -> int | None:
    value = (node.attributes.get(name) or "").strip()
    return int(value) if value.isdecimal() and len(value) < _MAX_DIGITS else None


# A part is the main one when it has this share of the words (source not recorded).
_MAIN = {"main, [role=main]": 0.3, "article": 0.5}
_MARK = re.compile(r"^(?:[-*•]|\d+[.)])\s+")
_NAVIGATION = 0.8  # of a page that only leads to others; chosen, not measured
_MAX_DEPTH = 2000  # a bound against hostile nesting; chosen, not measured
# Tags whose end may be left out, and those that have none, say nothing about the depth.
_OPTIONAL_END = (
    "p|li|td|th|tr|dt|dd|option|thead|tbody|tfoot|colgroup|html|head|body|"
    "area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr"
)
_NESTING_TAG = re.compile(rf"<(/?)(?!/?(?:{_OPTIONAL_END})\b)[a-zA-Z][\w-]*(?![^<>]*/>)", re.I)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>?")
_UNSEEN = re.compile(r"<(script|style|template)\b.*?(?:</\1\s*>|\Z)|<!--.*?(?:-->|\Z)", re.S | re.I)
# In XHTML any element may close itself; to an HTML parser <title/> opens a title without end.
_XHTML = re.compile(r"\A\s*(?:<\?xml|<!DOCTYPE[^>]*XHTML|<html[^>]*\bxmlns=)", re.I)
_SELF_CLOSED = re.compile(
    r"<(?!(?:area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr)\b)"
    r"([a-zA-Z][\w:-]*)((?:\s[^<>]*)?)/>"
)
_META_NAMES = {
    "description": "description",
    "og:description": "description",
    "keywords": "keywords",
    "author": "authors",
    "article:author": "authors",
    "dc.creator": "authors",
    "citation_author": "authors",
    "publisher": "publisher",
    "dc.publisher": "publisher",
    "dcterms.publisher": "publisher",
    "citation_publisher": "publisher",
    "dc.language": "language",
    "citation_isbn": "isbn",
    "date": "published",
    "dc.date": "published",
    "dcterms.date": "published",
    "dcterms.issued": "published",
    "citation_publication_date": "published",
    "citation_date": "published",
    "dcterms.modified": "updated_at",
    "last-modified": "updated_at",
    "article:modified_time": "updated_at",
    "article:published_time": "published",
    "og:url": "url",
    "version": "version",
    "docsearch:version": "version",
    "docusaurus_version": "version",
}


def load(relative: str, text: str) -> Iterator[ParsedDocument]:
    """Yield the one document of an HTML file."""
    tree, unseen = _tree(text)
    blocks, outline, navigation = _blocks(tree)
    site = read_site(tree, text, relative)
    described = {**site, **outline.names.metadata(), **_metadata(tree)}
    if navigation:
        described["navigation"] = True
    heading = outline.first_heading
    titles = (_title(tree, heading), heading)
    found = ParsedDocument.of_file(relative, "html", blocks, described, *titles)
    yield found.model_copy(update={"unseen": unseen})


def _anchor(heading: LexborNode) -> str:
    """Return what an address leads to a heading by, "" for none."""
    own, around = heading.attributes.get("id"), heading.parent
    if not own and around is not None and around.tag == "section":
        own = around.attributes.get("id")
    return own or ""


def blocks_of(text: str) -> list[Block]:
    """Return the blocks of a page that is a part of something else."""
    return _blocks(_tree(text)[0])[0]


def add_html(outline: Outline, fragment: str) -> None:
    """Add a piece of HTML, as found inside Markdown, to an outline."""
    if not re.search(r">[^<]*[^<\s]", fragment) and not re.match(r"\s*[^<\s]", fragment):
        return  # tags only
    tree, _ = _tree(fragment, styled_elsewhere=True)
    if tree.body is not None:
        HtmlWalk(outline, keep_furniture=True).run(tree.body)


def _tree(text: str, *, styled_elsewhere: bool = False) -> tuple[LexborHTMLParser, int]:
    """Parse a page; return it without what readers do not see, and how many pieces those were."""
    if _XHTML.match(text):
        text = _SELF_CLOSED.sub(r"<\1\2></\1>", text)
    depth = 0
    for match in _NESTING_TAG.finditer(text):
        depth = depth - 1 if match.group(1) else depth + 1
        if depth > _MAX_DEPTH:
            # The parser's time grows with the square of the depth (67 s at 200,000), and no page
            # that a person wrote is nested like this: keep the words, drop the tags.
            text = _TAG.sub("\n", _UNSEEN.sub(" ", text))
            break
    tree = LexborHTMLParser(text)
    return tree, remove_unseen(tree, styled_elsewhere=styled_elsewhere)


def _blocks(tree: LexborHTMLParser) -> tuple[list[Block], Outline, bool]:
    """Return blocks, the outline they are of, and whether all of it is navigation.

    Prefer the main parts of a page; a page that is all furniture is read whole.
    """
    root = tree.body or tree.root
    if root is None:
        return [], Outline(), False
    blocks, outline, linked = _walk([root])
    heading = outline.first_heading
    for selector, share in _MAIN.items():
        part, part_outline, part_linked = _walk(_outermost(tree.css(selector)), is_part=True)
        if part and _size(part) >= share * _size(blocks):
            blocks, outline, linked = part, part_outline, part_linked
            outline.first_heading = outline.first_heading or heading
            break
    if blocks:
        return blocks, outline, linked > _NAVIGATION * _shown(blocks)
    return (*_walk([root], keep_furniture=True)[:2], True)


def _outermost(nodes: list[LexborNode]) -> list[LexborNode]:
    """Leave out the nodes that stand in another of them: a page may have an article per post."""
    found = {node.mem_id for node in nodes}
    return [node for node in nodes if not any(up.mem_id in found for up in above(node))]


def _walk(
    roots: list[LexborNode], *, keep_furniture: bool = False, is_part: bool = False
) -> tuple[list[Block], Outline, int]:
    """Return the blocks, the outline they are of, and how many characters are links."""
    outline = Outline()
    walk = HtmlWalk(outline, keep_furniture=keep_furniture, is_part=is_part)
    for root in roots:
        walk.run(root)
    return outline.finish(), outline, walk.linked


def _shown(blocks: list[Block]) -> int:
    """Count the characters of a page but for the marks of its lists: its links may be short."""
    lines = (line for block in blocks for line in block.text.splitlines())
    return sum(len(_MARK.sub("", line.strip())) for line in lines)


def _size(blocks: list[Block]) -> int:
    return sum(len(block.text) for block in blocks)


def _title(tree: LexborHTMLParser, heading: str) -> str:
    # "svg > title" names a drawing.
    node = tree.css_first("head > title")
    shown = " ".join(node.text(deep=True).split()) if node is not None else ""
    if not shown and (og := tree.css_first('meta[property="og:title"]')) is not None:
        shown = " ".join((og.attributes.get("content") or "").split())
    # What follows the heading is the name of the site, the same on every page.
    if heading and re.match(rf"{re.escape(heading)}\s*(?:[—–|·]|::| - )", shown):
        return heading
    return shown.rstrip("#¶ ")


def _metadata(tree: LexborHTMLParser) -> dict[str, object]:
    found: dict[str, object] = {}
    root = tree.css_first("html")
    if root is not None and root.attributes.get("lang"):
        found["language"] = root.attributes["lang"]
    for node in tree.css("meta"):
        attributes = node.attributes
        given = attributes.get("name") or attributes.get("property") or attributes.get("http-equiv")
        name = _META_NAMES.get((given or "").lower())
        value = attributes.get("content")
        numbered = name != "version" or re.search(r"\d", value or "")  # "latest" is none
        if name and value and numbered:
            found.setdefault(name, value)
    canonical = tree.css_first('link[rel="canonical"]')
    if canonical is not None and canonical.attributes.get("href"):
        found.setdefault("url", canonical.attributes["href"])
    return metadata.normalise(found)
