"""Chapters of a plain text: lines that stand alone and are numbered, or in capitals."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from core.language.numbering import chapter_title
from ingest.loaders.outline import Outline

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
