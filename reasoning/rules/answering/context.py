"""What a sentence needs to be read alone: the items it announces, whom "it" means, its code."""

from __future__ import annotations

import re

from core.types import Evidence
from reasoning.rules.answering.blocks import (
    COLONS,
    FENCE,
    HEADING,
    ITEM,
    MOST_CHARACTERS,
    QUESTION_ENDS,
    TABLE,
    Span,
    announced,
    code_end,
    reports,
    spans_of,
)
from reasoning.rules.lexicon import Lexicon, lexicon

STEP = re.compile(r"\s*\d{1,2}[.)]\s")
COLUMN = " | "
MOST_ROWS = 400  # characters of a table that are shown from its first line on
AHEAD = 2  # sentences behind one, that may have its cause
MOST_BACK = 2  # sentences before one that begins with "it"


def keeps_lines(text: str) -> bool:
    """Tell whether a text holds list items or code, whose line breaks say something."""
    lines = text.splitlines()[1:]
    return any(ITEM.match(line) or FENCE.match(line) or COLUMN in line for line in lines)


def in_context(
    item: Evidence,
    start: int,
    end: int,
    *,
    code: bool,
    items: bool = False,
    brings: str = "",
) -> tuple[int, int]:
    """Return where one sentence or several begin and end with what they need, in their evidence.

    With `code` the block of code that follows belongs to them and the steps around them, with
    `items` all of the list; a sentence behind that has a word of the list `brings` (a cause) where
    they have none; to a row of a table those above it.
    """
    spans = spans_of(item.text, item.kind)
    begins = {span[0]: place for place, span in enumerate(spans)}
    ends = {span[1]: place for place, span in enumerate(spans)}
    if start not in begins or end not in ends:  # a field of a record within its line
        return start, end
    words = lexicon(item.language)
    first, last = begins[start], ends[end]
    if item.kind == TABLE:
        return (0 if end <= MOST_ROWS else start), end
    if code or items:
        first, last = steps(item.text, spans, first, last, ITEM if items else STEP)
    said = item.text[spans[first][0] : spans[last][1]]
    if brings and not words.found(brings, said):
        ahead = [words.found(brings, item.text[slice(*one)]) for one in spans[last + 1 :][:AHEAD]]
        last += ahead.index(True) + 1 if any(ahead) else 0
    first = _first(item, spans, first, words)
    last = _last(item, spans, last, words, code=code)
    return spans[first][0], spans[last][1]


def steps(
    text: str, spans: tuple[Span, ...], first: int, last: int, item: re.Pattern[str] = STEP
) -> tuple[int, int]:
    """Return the places of the first and the last of the items around one, numbered ones alone.

    The sentence that announces them is among them.
    """
    if item.match(text, spans[first][0]) is None:
        return first, last

    def begins(place: int) -> int:
        """Return the place of the item that a sentence is of, -1 for none."""
        while place > 0 and not item.match(text, spans[place][0]):
            if "\n" in text[spans[place - 1][1] : spans[place][0]]:
                return -1
            place -= 1
        return place if item.match(text, spans[place][0]) else -1

    while last + 1 < len(spans) and begins(last + 1) >= 0:
        if spans[last + 1][1] - spans[first][0] > MOST_CHARACTERS:
            break
        last += 1
    while first and (before := begins(first - 1)) >= 0:
        if spans[last][1] - spans[before][0] > MOST_CHARACTERS:
            break
        first = before
    if first and text[slice(*spans[first - 1])].rstrip().endswith(COLONS):
        first -= 1
    return first, last


def _first(item: Evidence, spans: tuple[Span, ...], place: int, words: Lexicon) -> int:
    """Return the place of the sentence that says what "it" stands for."""
    first = place
    while first and place - first < MOST_BACK:
        start, end = spans[first]
        before = item.text[slice(*spans[first - 1])]
        apart = HEADING.match(before) or ITEM.match(before) or FENCE.match(before)
        if apart or not words.starts("reference", item.text[start:end]):
            break
        first -= 1
    return first


def _last(
    item: Evidence, spans: tuple[Span, ...], place: int, words: Lexicon, *, code: bool
) -> int:
    """Return the place of the last sentence that belongs to one: an item, code, a reply."""
    text = item.text[slice(*spans[place])].rstrip()
    last = announced(item.text, spans, place)
    if (text.endswith(QUESTION_ENDS) or reports(text, words)) and last + 1 < len(spans):
        last += 1  # a question is answered by what follows it
    if code and last + 1 < len(spans) and FENCE.match(item.text, spans[last + 1][0]):
        return code_end(item.text, spans, last + 1, spans[place][0])
    return last
