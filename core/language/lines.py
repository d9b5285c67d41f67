"""Which line breaks end a paragraph: blank lines, lists, tables, headings, records."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

# Lines at which a paragraph begins: list item, table row, heading, dialogue, time stamp.
_OPENING = re.compile(
    r"\s*(?:[-*+\u2022\u2023\u25e6\u25aa\u2013\u2014\u00b7]\s|\(?\d{1,3}[.)\u3001]\s"
    r"|\(?[A-Za-z\u0430-\u044f\u0456]\)\s|\||#{1,6}\s|>|```|~~~|\[\d{1,3}\]\s"
    r"|\[?\d{4}-\d\d-\d\d[\]\sT]|\[?\d{1,2}:\d\d(?::\d\d)?[\]\s]"
    r"|[\u2460-\u2473]|[\uff08(]?[\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d\u5341]"
    r"{1,3}[\uff09)\u3001])"
)
# Lines that are a whole paragraph: heading, table row, rule.
_ALONE = re.compile(r"\s*(?:#{1,6}\s|\||```|~~~|[-=*_~]{3,}\s*$)|[^\t]*\t[^\t]*\t|.*\s\|\s.*\|")
_RECORD = re.compile(r"\s*[^\W_][^\n:\uff1a.!?\u3002]{0,40}[:\uff1a](?:\s|$|(?<=\uff1a))")
_RECORD_LENGTH = 160
_END_MARK = ".!?\u2026\u3002\uff01\uff1f:\uff1a;\uff1b"
# A wrapped line is nearly full: the next line's first word would not have fitted.
_FILL = 0.6


class _TextLine(NamedTuple):
    start: int
    end: int
    text: str


def paragraph_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the trimmed spans of text between hard line breaks, in order."""
    for group in _groups(text):
        width = max(len(line.text) for line in group)
        first = group[0]
        for line, following in zip(group, group[1:], strict=False):
            if _breaks(line.text, following.text, width):
                yield first.start, line.end
                first = following
        yield first.start, group[-1].end


def _groups(text: str) -> Iterator[list[_TextLine]]:
    """Yield the lines between blank lines, each trimmed."""
    group: list[_TextLine] = []
    place = 0
    for raw in text.splitlines(keepends=True):
        shown = raw.strip()
        if shown:
            start = place + raw.index(shown)
            group.append(_TextLine(start, start + len(shown), shown))
        elif group:
            yield group
            group = []
        place += len(raw)
    if group:
        yield group


def _breaks(line: str, following: str, width: int) -> bool:
    """Decide whether the break between two lines of a group ends a sentence."""
    if _OPENING.match(following) or _ALONE.match(following) or _ALONE.match(line):
        return True
    if _is_record(following) and (_is_record(line) or line[-1] in _END_MARK):
        return True
    if following[0].islower():
        return False
    word = following.split(None, 1)[0]
    needed = 1 + (len(word) if word.isascii() else min(len(word), 12))
    return len(line) + needed <= _FILL * width or (
        _is_record(line) and len(line) + needed <= 0.9 * width
    )


def _is_record(line: str) -> bool:
    """Tell whether a line looks like "key: value"."""
    return len(line) <= _RECORD_LENGTH and _RECORD.match(line) is not None
