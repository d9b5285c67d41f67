"""HTML to blocks: navigation and hidden parts dropped, headings are sections."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from selectolax.lexbor import LexborHTMLParser

from ingest.loaders import metadata
from ingest.loaders.outline import Outline
from ingest.loaders.web.html_walk import HtmlWalk
from ingest.types import Block, ParsedDocument

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

# A part is the main one when it has this share of the words.
_MAIN = {"main, [role=main]": 0.3, "article": 0.5}
_MAX_DEPTH = 2000
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
}


def load(relative: str, text: str) -> Iterator[ParsedDocument]:
    """Yield the one document of an HTML file."""
    tree = _tree(text)
    described = _metadata(tree)
    blocks, heading = _blocks(tree)
    yield ParsedDocument(
        document_id=relative,
        source=relative,
        title=_title(tree) or heading or PurePosixPath(relative).stem,
        format="html",
        blocks=blocks,
        metadata=described,
    )


def add_html(outline: Outline, fragment: str) -> None:
    """Add a piece of HTML, as found inside Markdown, to an outline."""
    if not re.search(r">[^<]*[^<\s]", fragment) and not re.match(r"\s*[^<\s]", fragment):
        return  # tags only
    tree = _tree(fragment)
    if tree.body is not None:
        HtmlWalk(outline, keep_furniture=True).run(tree.body)


def _tree(text: str) -> LexborHTMLParser:
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
    return LexborHTMLParser(text)


def _blocks(tree: LexborHTMLParser) -> tuple[list[Block], str]:
    """Prefer the main parts of a page; a page that is all furniture is read whole."""
    root = tree.body or tree.root
    if root is None:
        return [], ""
    whole, heading = _walk([root])
    for selector, share in _MAIN.items():
        part, part_heading = _walk(_outermost(tree.css(selector)), is_part=True)
        if part and _size(part) >= share * _size(whole):
            return part, part_heading or heading
    return (whole, heading) if whole else _walk([root], keep_furniture=True)


def _outermost(nodes: list[LexborNode]) -> list[LexborNode]:
    """Leave out the nodes that stand in another of them: a page may have an article per post."""
    found = {node.mem_id for node in nodes}
    return [node for node in nodes if not any(above.mem_id in found for above in _above(node))]


def _above(node: LexborNode) -> Iterator[LexborNode]:
    above = node.parent
    while above is not None:
        yield above
        above = above.parent


def _walk(
    roots: list[LexborNode], *, keep_furniture: bool = False, is_part: bool = False
) -> tuple[list[Block], str]:
    outline = Outline()
    walk = HtmlWalk(outline, keep_furniture=keep_furniture, is_part=is_part)
    for root in roots:
        walk.run(root)
    return outline.finish(), outline.first_heading


def _size(blocks: list[Block]) -> int:
    return sum(len(block.text) for block in blocks)


def _title(tree: LexborHTMLParser) -> str:
    # "svg > title" names a drawing.
    node = tree.css_first("head > title")
    shown = " ".join(node.text(deep=True).split()) if node is not None else ""
    if not shown and (og := tree.css_first('meta[property="og:title"]')) is not None:
        shown = " ".join((og.attributes.get("content") or "").split())
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
        if name and attributes.get("content"):
            found.setdefault(name, attributes["content"])
    canonical = tree.css_first('link[rel="canonical"]')
    if canonical is not None and canonical.attributes.get("href"):
        found.setdefault("url", canonical.attributes["href"])
    return metadata.normalise(found)
