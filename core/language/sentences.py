"""Where sentences begin and end: Latin, Cyrillic and Chinese punctuation, lists and records."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from languages.language import known_languages

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


MAX_SENTENCE = 600

_CLOSERS = "\"'\u201d\u2019\u00bb\u203a)\\]}\u300d\u300f\u3011\uff09\u300b\u3015*_"
_OPENERS = (
    "\"'\u201c\u2018\u201e\u00ab([{\u300c\u300e\u3010\uff08\u300a*_#\u2014\u2013-\u00bf\u00a1 "
)
_HAN = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_END = re.compile(
    rf"(?P<wide>[\u3002\uff01\uff1f\uff1b\uff61][\u3002\uff01\uff1f\uff1b!?]*[{_CLOSERS}]*)"
    rf"|(?P<dots>(?<![.\u2026])(?:\u2026|\.\.)[\u2026.]*[{_CLOSERS}]*(?=\s|$))"
    rf"|(?P<loud>(?<![!?])[!?][!?.\u2026]*[{_CLOSERS}]*(?=\s|$|[{_HAN}]))"
    rf"|(?P<stop>\.[{_CLOSERS}]*(?=\s|$))"
)
_LAST_TOKEN = re.compile(r"[^\s(\[{\"'\u00ab\u201c\u201e]*$")
_NEXT_WORD = re.compile(r"[^\W\d_]+|\d+")
_CUT_AFTER = re.compile(r"[;\uff1b,\uff0c\u3001:\uff1a]")
_LOOK_BACK = 40
# Characters that go on with the one before: marks, joiners, variation selectors, skin tones.
_ATTACHED = re.compile("[\u0300-\u036f\u200d\ufe00-\ufe0f\U0001f3fb-\U0001f3ff]")


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Locate the sentences of a text: trimmed, in order, together covering all but white space.

    A blank line, a list item, a table row, a heading and a "key: value" line end a sentence; a
    line break inside a wrapped paragraph does not. No sentence is longer than 600 characters.
    """
    spans: list[tuple[int, int]] = []
    for start, end in paragraph_spans(text):
        for first, last in _split_paragraph(text, start, end):
            spans.extend(cut_span(text, first, last, MAX_SENTENCE))
    return spans


def record_spans(text: str) -> list[tuple[int, int]]:
    """Locate the sentences of a record, each field of which is a line of its own."""
    spans: list[tuple[int, int]] = []
    place = 0
    for line in text.splitlines(keepends=True):
        spans.extend((place + start, place + end) for start, end in sentence_spans(line))
        place += len(line)
    return spans


def cut_span(text: str, start: int, end: int, limit: int) -> Iterator[tuple[int, int]]:
    """Cut a span into trimmed pieces of at most `limit` characters: after ; , : or at a space."""
    while True:
        while start < end and text[start].isspace():
            start += 1
        while end > start and text[end - 1].isspace():
            end -= 1
        if end - start <= limit:
            break
        cut = _cut_point(text, start, start + limit)
        last = cut
        while text[last - 1].isspace():
            last -= 1
        yield start, last
        start = cut
    if start < end:
        yield start, end


def _cut_point(text: str, start: int, stop: int) -> int:
    """Choose where to cut text[start:stop+1]: punctuation in its second half, space, anywhere."""
    punctuation = 0
    for match in _CUT_AFTER.finditer(text, start + (stop - start) // 2, stop):
        follows = text[match.end() : match.end() + 1]
        if follows.isspace() or match.group() > "\u2fff":
            punctuation = match.end()
    if punctuation:
        return punctuation
    for place in range(stop, start, -1):
        if text[place].isspace():
            return place
    place = stop
    while place > start + 1 and stop - place < 16 and _joined(text, place):
        place -= 1
    return stop if _joined(text, place) else place


def _joined(text: str, place: int) -> bool:
    """Tell whether a cut here would tear a visible character apart."""
    return _ATTACHED.match(text[place]) is not None or text[place - 1] == "\u200d"


@cache
def _words(name: str) -> frozenset[str]:
    """Return a list of abbreviations, or of words that follow them, of all languages."""
    known = known_languages().values()
    return frozenset(word for one in known for word in getattr(one.abbreviations, name).split())


def _split_paragraph(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Cut one paragraph at the ends of its sentences."""
    first = start
    for match in _END.finditer(text, start, end):
        last = match.end()
        if last >= end or _ends(text, first, match, end):
            yield first, last
            first = last
    if first < end:
        yield first, end


def _ends(text: str, first: int, match: re.Match[str], end: int) -> bool:
    """Decide whether the punctuation ends the sentence that began at `first`."""
    if match.lastgroup == "wide":
        return True
    place = match.end()
    while place < end and (text[place].isspace() or text[place] in _OPENERS):
        place += 1
    following = text[place : place + 1]
    if match.lastgroup == "loud":
        quoted = match.group()[-1] not in "!?.\u2026"
        return not (quoted and following.islower())
    if following.islower():
        return False
    if match.lastgroup == "dots":
        return following.isupper()
    return _stop_ends(text, first, match.start(), place, end)


def _stop_ends(text: str, first: int, stop: int, place: int, end: int) -> bool:
    """Decide about one full stop at `stop`, followed by something other than a small letter."""
    floor = max(first, stop - _LOOK_BACK)
    found = _LAST_TOKEN.search(text, floor, stop)
    token = found.group() if found else ""
    begins = stop - len(token)
    word = token.casefold()
    following = _NEXT_WORD.match(text, place, end)
    next_word = following.group() if following else ""
    if word in _words("announcing"):
        return False
    if word.isdigit():
        return begins > first  # "1. Install" opens a list item
    announces = word in _words("before_number") or (len(word) == 1 and word.isalpha())
    if announces and next_word.isdigit():
        return False
    before = text[floor:begins].split()
    pair = f"{before[-1].rstrip('.').casefold()}.{word}" if before else ""
    if pair in _words("continuing_pairs"):
        return False
    if len(token) == 1 and token.isalpha():
        return _letter_ends(token, next_word, before)
    if "." in token and all(len(part) <= 2 and part.isalpha() for part in token.split(".")):
        return next_word.casefold() in _words("starters")
    return True


def _letter_ends(token: str, next_word: str, before: list[str]) -> bool:
    """Decide about a single letter: an initial ("A. S. Pushkin", "г. Москва") or the last word."""
    if token.isupper():
        return token == "I" and next_word.casefold() in _words("starters")
    if token in _words("after_number"):
        # "1999 г. Потом", "и т. д. Он" end; "г. Москва" and "с. Ивановка" do not.
        last = before[-1].rstrip(".") if before else ""
        return last[-1:].isdigit() or last.casefold() in _words("after_words")
    return True
