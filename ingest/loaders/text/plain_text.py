"""Plain text, whose chapters are numbered lines or capitals, reStructuredText and Org."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from textwrap import dedent
from typing import Any, NamedTuple

from core.language.numbering import chapter_title
from ingest.loaders import metadata
from ingest.loaders.outline import Outline, table_text
from ingest.types import Block, ParsedDocument

_BLOCK = re.compile(r"[^\n]*\S[^\n]*(?:\n[^\n]*\S[^\n]*)*")
_NUMBERED = re.compile(r"(\d{1,2}(?:\.\d{1,2}){0,3})[.)]?[ \t]+(?=[^\W\d_])")
_ENDS = ".!?,;:。！？，；：…"
# Characters of a heading, letters of one in capitals; chosen, not measured
_LONGEST, _LEAST_LETTERS = 100, 3
_MOST_TIMES = 2  # that a heading is written: in a list of contents, and where it heads
_CHAPTER, _BELOW = 1, 2  # levels; numbered headings below chapters, and those in capitals


class _Heading(NamedTuple):
    level: int
    text: str
    blocks: int = 1


def add_plain_text(outline: Outline, text: str) -> None:
    """Add a plain text under the headings of its chapters, as one piece of prose without any."""
    places = [match.span() for match in _BLOCK.finditer(text)]
    blocks = [text[start:end] for start, end in places]
    begin = 0
    for first, heading in _headings(blocks):
        outline.prose(text[begin : places[first][0]].strip("\n"))
        outline.heading(heading.level, heading.text)
        begin = places[first + heading.blocks - 1][1]
    outline.prose(text[begin:].strip("\n") if begin else text)


def _headings(blocks: Sequence[str]) -> Iterator[tuple[int, _Heading]]:
    """Yield the headings and where they are.

    What no text stands below, or a heading of the same level, is of a list of contents.
    """
    counted = _counted(blocks)
    times = Counter(blocks)
    # What stands on every page is a running title.
    found = [
        _heading(place, blocks, counted) if times[block] <= _MOST_TIMES else None
        for place, block in enumerate(blocks)
    ]
    past = 0
    for place, heading in enumerate(found):
        if heading is None or place < past:
            continue
        past = place + heading.blocks
        below = found[past] if past < len(blocks) else heading
        if below is None or below.level > heading.level:
            yield place, heading
        else:
            past = 0


def _heading(place: int, blocks: Sequence[str], counted: frozenset[int]) -> _Heading | None:
    block = blocks[place]
    shown = " ".join(block.split()).strip("*#_ ")
    if not 0 < len(shown) <= _LONGEST:
        return None
    title = chapter_title(shown)
    if title is not None and (title == "" or shown[-1] not in _ENDS[1:]):
        following = blocks[place + 1] if place + 1 < len(blocks) else ""
        if title or not _is_title(following):
            return _Heading(_CHAPTER, shown)
        return _Heading(_CHAPTER, f"{shown.rstrip('.')}. {following.strip()}", 2)
    if place in counted:
        return _Heading(_BELOW + _levels(block), shown)
    # The first line is the title of the whole.
    capitals = sum(letter.isupper() for letter in shown)
    enough = capitals >= max(_LEAST_LETTERS, len(shown) / 2)
    if place and shown.isupper() and enough and _is_title(shown.rstrip(":")):
        return _Heading(_BELOW, shown.rstrip(":"))
    return None


def _is_title(block: str) -> bool:
    line = block.strip()
    short = 0 < len(line) <= _LONGEST and "\n" not in line
    return short and line[-1] not in _ENDS and line[0] == line[0].upper() and not _chapter(line)


def _chapter(line: str) -> bool:
    return chapter_title(line) is not None


def _levels(block: str) -> int:
    match = _NUMBERED.match(block.strip())
    return match[1].count(".") if match is not None else 0


def _counted(blocks: Sequence[str]) -> frozenset[int]:
    """Return the places of lines "1 …", "1.1 …", "2 …" that count on from one, if there are two."""
    found: list[int] = []
    last = 0
    for place, block in enumerate(blocks):
        match = _NUMBERED.match(block.strip())
        if match is None or not _is_title(block.strip()[match.end() :]):
            continue
        number = int(match[1].split(".")[0])
        if number == last + 1 or (number == last and "." in match[1]):
            found.append(place)
            last = number
    return frozenset(found if last > 1 else ())


_UNDERLINE = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}\s*")
_DIRECTIVE = re.compile(r"\.\.\s+([\w:-]+?)::\s*(.*)")
_EXPLICIT = re.compile(r"\.\.(?:\s|$)")
_FOOTNOTE = re.compile(r"\.\.\s+(\[[^\]\n]+\])(?:\s+(.*))?$")
_ROLE = re.compile(r":[A-Za-z][\w:+-]*:`~?([^`<]+)`")
_TITLED_ROLE = re.compile(r":[A-Za-z][\w:+-]*:`([^`<]+?)\s*<[^`>]*>`")
_LINK = re.compile(r"`([^`<]+?)\s*<[^`>]+>`_{1,2}")
_ICON = re.compile(r":(?:octicon|material|fa|bdg)[\w-]*:`[^`]*`\s*")
_REFERENCE = re.compile(r"`([^`]+)`_{1,2}(?!\w)|\b([A-Za-z][\w-]*?)_(?=[\s,.;:)!]|$)")
_SIMPLE = re.compile(r"=+(?: +=+)+")
_GRID = re.compile(r"\+(?:-+\+)+")
_TERM = re.compile(r"(?![-*+•|#:\d]|\.\.).{0,79}[^.:!?;,|]")
_LITERAL = re.compile(r"``([^`]+)``")
_OPTION = re.compile(r"\s*:[\w-]+:(?:\s.*)?")
_CODE = {"code", "code-block", "sourcecode", "testcode", "doctest", "parsed-literal", "math"}
_NO_PROSE = {
    "toctree", "include", "image", "contents", "highlight", "currentmodule", "module", "py:module",
    "py:currentmodule", "automodule", "raw", "meta", "index", "literalinclude", "testsetup", "only",
    "plot", "comment",
}  # fmt: skip
_MODULES = {"module", "py:module", "automodule", "currentmodule", "py:currentmodule"}
_DEFINES = re.compile(
    r"(?:py:|c:|cpp:|js:)?(?:auto)?(?:function|class|method|data|attribute|exception|property)"
)
_API_LEVEL = 20  # of a heading for a name of an API: below all that are written; chosen
_MAX_DEPTH = 8  # a bound against hostile nesting; chosen, not measured
_ORG_HEADING = re.compile(r"(\*+)\s+(?:(?:TODO|DONE)\s+)?(.+?)(?:\s+:[\w:@]+:)?\s*")


def add_restructured_text(outline: Outline, text: str, *, depth: int = 0, module: str = "") -> None:
    """Add the blocks of reStructuredText to an outline; `module` is what its names are in."""
    lines = text.split("\n")
    levels: dict[str, int] = {}
    at = 0
    while at < len(lines):
        line = lines[at]
        directive = _DIRECTIVE.match(line.strip())
        if title := _title_at(lines, at):
            style, name, used = title
            level = levels.setdefault(style, len(levels) + 1)
            outline.heading(level, _inline(name).replace("`", ""))
            at += used
        elif footnote := _FOOTNOTE.match(line.strip()):
            body, at = _take_indented(lines, at + 1, _indent(line))
            first = f"{footnote[1]} {footnote[2] or ''}".rstrip()
            add_restructured_text(outline, "\n".join([first, *body]), depth=depth + 1)
        elif directive or _EXPLICIT.match(line.strip()):
            body, at = _take_indented(lines, at + 1, _indent(line))
            name, argument = directive.groups() if directive else ("comment", "")
            module = argument.strip() if name.lower() in _MODULES else module
            _add_directive(outline, name.lower(), argument, body, depth, module)
        elif table := _table_at(lines, at):
            outline.add(table_text(table[0]), "table")
            at = table[1]
        elif line.strip():
            at = _add_paragraph(outline, lines, at)
        else:
            at += 1


def add_org(outline: Outline, text: str) -> None:
    """Add the blocks of an Org file to an outline."""
    prose: list[str] = []
    code: list[str] | None = None
    for line in [*text.split("\n"), "* "]:
        upper = line.strip().upper()
        if code is not None:
            if upper.startswith("#+END_"):
                outline.add(dedent("\n".join(code)).strip("\n"), "code")
                code = None
            else:
                code.append(line)
            continue
        heading = _ORG_HEADING.fullmatch(line)
        if heading or line == "* " or upper.startswith("#+") or not line.strip():
            outline.prose("\n".join(prose))
            prose = []
        if heading:
            outline.heading(len(heading.group(1)), heading.group(2))
        elif upper.startswith(("#+BEGIN_SRC", "#+BEGIN_EXAMPLE")):
            code = []
        elif upper.startswith("#+TITLE:"):
            outline.first_heading = line.split(":", 1)[1].strip()
        elif line.strip() and not upper.startswith("#+"):
            prose.append(line)
    if code:
        outline.prose("\n".join(code))


def _title_at(lines: list[str], at: int) -> tuple[str, str, int] | None:
    """Return (style, title, lines used) when a title starts at this line."""
    here = lines[at]
    following = [line.rstrip() for line in lines[at + 1 : at + 3]] + ["", ""]
    if _UNDERLINE.fullmatch(here) and following[0] and following[1] == here.rstrip():
        return "over" + here[0], following[0].strip(), 3
    if not here.strip() or here[0].isspace() or not _UNDERLINE.fullmatch(following[0]):
        return None
    return (following[0][0], here, 2) if len(following[0]) + 2 >= len(here.rstrip()) else None


def _table_at(lines: list[str], at: int) -> tuple[list[list[str]], int] | None:
    """Return the rows of a simple or a grid table that starts at this line, and where it ends.

    A line of a simple table whose first cell is empty goes on with the row above, as does any of a
    grid until the next rule.
    """
    rule = lines[at].rstrip()
    grid = _GRID.fullmatch(rule.strip()) is not None
    if not grid and not _SIMPLE.fullmatch(rule.strip()):
        return None
    end = at + 1
    while end < len(lines) and (lines[end].strip() if grid else lines[end].rstrip() != rule):
        end += 1
    if not grid and end == len(lines):
        return None
    if not grid:  # the head has a rule of its own
        below = end + 1
        while below < len(lines) and lines[below].strip() and lines[below].rstrip() != rule:
            below += 1
        end = below if below < len(lines) and lines[below].rstrip() == rule else end
    mark = re.compile(r"[^+]+(?=\+)" if grid else r"=+")
    columns = [match.span() for match in mark.finditer(rule)]
    if not grid:  # the last cell goes on to the end of its line
        columns[-1] = columns[-1][0], max(map(len, lines[at : end + 1]))
    rows: list[list[str]] = []
    begins = True
    for line in lines[at + 1 : end]:
        if line.strip().startswith(("+-", "+=")) or line.rstrip() == rule or not line.strip():
            begins = True
            continue
        cells = [_inline(line[first:last].strip(" |")) for first, last in columns]
        if begins or (not grid and cells[0]) or not rows:
            rows.append(cells)
        else:
            rows[-1] = [f"{a} {b}".strip() for a, b in zip(rows[-1], cells, strict=True)]
        begins = False
    return (rows, end + (not grid)) if rows else None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _take_indented(lines: list[str], at: int, outer: int) -> tuple[list[str], int]:
    """Return the lines indented deeper than `outer`, dedented, and where they end."""
    end = at
    while end < len(lines) and (not lines[end].strip() or _indent(lines[end]) > outer):
        end += 1
    body = lines[at:end]
    margin = min((_indent(line) for line in body if line.strip()), default=0)
    return [line[margin:] for line in body], end


def _add_directive(
    outline: Outline, name: str, argument: str, body: list[str], depth: int, module: str
) -> None:
    while body and _OPTION.fullmatch(body[0]):
        body = body[1:]
    text = "\n".join(body).strip("\n")
    if name in _CODE:
        outline.add(text or argument, "code")
    elif name in _NO_PROSE:
        return
    elif name == "autosummary":
        listed = (line.strip().lstrip("~") for line in body if line.strip())
        outline.prose("\n".join(_full_name(line, module) for line in listed))
    elif _DEFINES.fullmatch(name) and argument:
        named, bracket, rest = argument.partition("(")
        whole = _full_name(named.strip(), module)
        outline.heading(_API_LEVEL + depth, whole)
        outline.prose(f"{whole}{bracket}{rest}")
        if depth < _MAX_DEPTH:
            add_restructured_text(outline, text, depth=depth + 1, module=whole)
        outline.close(_API_LEVEL + depth)
    else:
        if any(c.isalpha() for c in argument):
            outline.prose(_inline(argument))
        if depth < _MAX_DEPTH:
            add_restructured_text(outline, text, depth=depth + 1, module=module)
        else:
            outline.prose(text)


def _full_name(name: str, module: str) -> str:
    """Return a name with its module: readers ask for "jax.tree.map", a page lists "map"."""
    root = module.split(".")[0]
    return name if not module or f"{name}.".startswith(f"{root}.") else f"{module}.{name}"


def _add_paragraph(outline: Outline, lines: list[str], at: int) -> int:
    """Add one paragraph, and the code below it when it ends in a double colon."""
    end = at + 1
    while end < len(lines) and lines[end].strip() and not _title_at(lines, end):
        end += 1
    within = [_indent(line) > _indent(lines[at]) for line in lines[at + 1 : end]]
    stripped = [line.strip() for line in lines[at:end]]
    if stripped[0].startswith(">>> "):
        outline.add(dedent("\n".join(lines[at:end])), "code")
        return end
    if within and all(within) and _TERM.fullmatch(stripped[0]):  # "term", what it is below
        stripped = [f"{stripped[0].split(' : ')[0]}: {stripped[1]}", *stripped[2:]]
    text = "\n".join(stripped)
    literal = text.endswith("::")
    outline.prose(_inline(text[:-1] if literal else text).removesuffix("\n:"))
    if literal:
        body, end = _take_indented(lines, end, _indent(lines[end - 1]))
        outline.add("\n".join(body).strip("\n"), "code")
    return end


def _inline(text: str) -> str:
    text = _LINK.sub(r"\1", _ICON.sub("", text))
    text = _REFERENCE.sub(lambda match: match.group(1) or match.group(2), text)
    text = _TITLED_ROLE.sub(r"\1", _ROLE.sub(r"`\1`", text))
    return re.sub(r"\*\*([^*\n]+)\*\*", r"\1", _LITERAL.sub(r"`\1`", text))


_LINE = re.compile(r"^[ \t]*([^\W\d_][\w ]{1,30}?)[ \t]*[:：][ \t]*(\S.{0,199})$", re.MULTILINE)
_BEGINNING = 4_000  # characters where a text tells of itself; chosen, not measured
_TITLES = ("title", "название", "заглавие", "назва", "标题", "题名", "书名")
_NAMES = {
    "title": _TITLES,
    "authors": ("author", "authors", "автор", "авторы", "автори", "作者"),
    "editors": ("editor", "editors", "редактор", "编辑"),
    "translators": ("translator", "translators", "переводчик", "перекладач", "译者"),
    "illustrators": ("illustrator", "illustrators"),
    "publisher": ("publisher", "издательство", "видавництво", "出版社"),
    "published": ("date", "release date", "publication date", "published", "дата", "日期"),
    "updated_at": ("last updated", "updated", "modified"),
    "year": ("year", "год", "рік", "год издания", "рік видання", "年份"),
    "language": ("language", "язык", "мова", "语言"),
    "edition": ("edition", "издание", "видання"),
    "series": ("series", "серия", "серія", "丛书"),
    "version": ("version", "версия", "версія"),
    "isbn": ("isbn",),
}
_CALLED = {called: name for name, listed in _NAMES.items() for called in listed}


def text_header(text: str) -> dict[str, Any]:
    """Return the metadata of a plain text whose beginning names its title and something else."""
    found: dict[str, Any] = {}
    for match in _LINE.finditer(text[:_BEGINNING]):
        name = _CALLED.get(" ".join(match.group(1).casefold().split()))
        if name is not None:
            found.setdefault(name, match.group(2).strip())
    return metadata.normalise(found) if "title" in found and len(found) > 1 else {}


_MAX_TITLE = 80  # characters; chosen, not measured
_BLANK_LINES = re.compile(r"\n[ \t]*\n\s*")


def load(relative: str, text: str) -> Iterator[ParsedDocument]:
    """Yield the one document of a text file; .rst and .org files get their sections."""
    suffix = PurePosixPath(relative).suffix.lower()
    outline = Outline()
    if suffix == ".rst":
        add_restructured_text(outline, text)
    elif suffix == ".org":
        add_org(outline, text)
    elif suffix == ".log":
        outline.prose(text)
    else:
        add_plain_text(outline, text)
    sectioned = suffix in (".rst", ".org")
    described = {} if sectioned else text_header(text)
    # The first heading of a plain text is that of a chapter.
    named = outline.first_heading if sectioned else ""
    titles = described.get("title"), named, first_short_line(text)
    yield ParsedDocument.of_file(relative, "text", outline.finish(), described, *titles)


def text_blocks(text: str) -> list[Block]:
    """Return the paragraphs of a plain text as one block."""
    return [Block(text=_BLANK_LINES.sub("\n\n", text).strip())] if text.strip() else []


def first_short_line(text: str) -> str:
    """Return the first line when it looks like a title, else ""."""
    line = text.lstrip().split("\n", 1)[0].strip()
    reads_as_title = any(c.isalpha() for c in line) and line[-1] not in ".,;:。，；、"
    is_name = reads_as_title and chapter_title(line) is None
    return line if len(line) <= _MAX_TITLE and is_name else ""
