"""Plain text, whose chapters are numbered lines or capitals."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from core.language.numbering import chapter_title
from ingest.loaders import metadata
from ingest.loaders.outline import Outline
from ingest.loaders.text.structured_text import add_org, add_restructured_text
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
    described = outline.names.metadata() if sectioned else text_header(text)
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
