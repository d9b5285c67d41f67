"""What a sentence needs to be read alone: the items it announces, whom "it" means, its code."""

from __future__ import annotations

import re

from core.types import Evidence
from reasoning.rules.features import COLONS, spans_of
from reasoning.rules.lexicon import Lexicon, lexicon
from reasoning.rules.sentences import Sentence

# As much as a reader takes in at once; a longer list is cut after a whole item.
MOST_CHARACTERS = 900
MOST_BACK = 2  # sentences before one that begins with "it"
ITEM = re.compile(r"\s*(?:[-*+•‣◦▪–—·]|\(?\d{1,3}[.)、]|\(?[A-Za-zа-яіїєґ]\)|[①-⑳])\s*")
FENCE = re.compile(r"\s*(?:```|~~~)")
HEADING = re.compile(r"\s*#{1,6}\s")
QUESTION_ENDS = ("?", "？")


def keeps_lines(text: str) -> bool:
    """Tell whether a text holds list items or code, whose line breaks say something."""
    return any(ITEM.match(line) or FENCE.match(line) for line in text.splitlines()[1:])


def in_context(sentence: Sentence, *, code: bool) -> tuple[int, int]:
    """Return where a sentence begins and ends with what it needs, in its evidence's text.

    With `code` the block of code that follows belongs to it.
    """
    item = sentence.evidence
    spans = list(spans_of(item.text, item.kind))
    if (sentence.start, sentence.end) not in spans:  # a field of a record within its line
        return sentence.start, sentence.end
    place = spans.index((sentence.start, sentence.end))
    first = _first(item, spans, place, lexicon(item.language))
    last = _last(item, spans, place, code=code)
    return spans[first][0], spans[last][1]


def _first(item: Evidence, spans: list[tuple[int, int]], place: int, words: Lexicon) -> int:
    """Return the place of the sentence that says what "it" stands for."""
    first = place
    while first and place - first < MOST_BACK:
        start, end = spans[first]
        before = item.text[slice(*spans[first - 1])]
        apart = "\n\n" in item.text[spans[first - 1][1] : start] or HEADING.match(before)
        if apart or not words.starts("reference", item.text[start:end]) or FENCE.match(before):
            break
        first -= 1
    return first


def _last(item: Evidence, spans: list[tuple[int, int]], place: int, *, code: bool) -> int:
    """Return the place of the last item or line of code that a sentence announces."""
    start, end = spans[place]
    text = item.text[start:end].rstrip()
    last = place
    if text.endswith(COLONS):
        listed = last + 1 < len(spans) and ITEM.match(item.text, spans[last + 1][0])
        while last + 1 < len(spans) and spans[last + 1][1] - start <= MOST_CHARACTERS:
            following = item.text[slice(*spans[last + 1])]
            if HEADING.match(following) or (listed and not _goes_on(item, spans, last)):
                break
            last += 1
            if not listed and not FENCE.match(following):
                break
            if FENCE.match(following):
                return _fenced(item, spans, last, start)
    elif text.endswith(QUESTION_ENDS) and last + 1 < len(spans):
        last += 1  # a question is answered by what follows it
    if code and last + 1 < len(spans) and FENCE.match(item.text, spans[last + 1][0]):
        return _fenced(item, spans, last + 1, start)
    return last


def _goes_on(item: Evidence, spans: list[tuple[int, int]], last: int) -> bool:
    """Tell whether the next sentence is an item, or goes on with the one before."""
    between = item.text[spans[last][1] : spans[last + 1][0]]
    return bool(ITEM.match(item.text, spans[last + 1][0])) or "\n" not in between


def _fenced(item: Evidence, spans: list[tuple[int, int]], place: int, start: int) -> int:
    """Return the place of the fence that closes a block of code, or of its last line that fits."""
    last = place
    while last + 1 < len(spans) and spans[last + 1][1] - start <= MOST_CHARACTERS:
        last += 1
        if FENCE.match(item.text, spans[last][0]):
            break
    return last
