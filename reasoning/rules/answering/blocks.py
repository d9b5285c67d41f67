"""The sentences of a chunk, and the list or the code that one of them announces."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from core.language.sentences import record_spans, sentence_spans
from core.types import Evidence
from reasoning.rules.lexicon import Lexicon

# As much as a reader takes in at once; a longer list is cut after a whole item.
MOST_CHARACTERS = 900
Span = tuple[int, int]
CODE_KIND, RECORD, TABLE = "code", "record", "table"  # kinds of chunks
LEAST_SENTENCE = 12  # characters
COLONS, QUESTION_ENDS = (":", "："), ("?", "？")
RECORD_LABEL = re.compile(r"[^\W\d_][\w ]{0,40}: (?=\S)")
ITEM = re.compile(r"\s*(?:[-*+•‣◦▪–—·]|\(?\d{1,3}[.)、](?!\d)|\(?[A-Za-zа-яіїєґ]\)|[①-⑳])\s*")
FENCE = re.compile(r"\s*(?:```|~~~)")
HEADING = re.compile(r"\s*#{1,6}\s")
ITEMS, IN_LINE = 3, 0.5  # so many commas make a list, which is worth this much of one in lines
SEPARATOR = re.compile(r"[,;、，；]\s?(?=\S)")
CODE = re.compile(r"`[^`\n]+`|```|~~~")


@lru_cache(maxsize=2048)
def spans_of(text: str, kind: str) -> tuple[Span, ...]:
    """Return where the sentences of a chunk stand.

    Of a table each row is one, of a record each field, without its label where its value is a
    sentence by itself.
    """
    if kind == TABLE:
        return tuple(record_spans(text))
    if kind != RECORD:
        return tuple(sentence_spans(text))
    spans = record_spans(text)
    return tuple((start + _label_length(text[start:end]), end) for start, end in spans)


def _label_length(line: str) -> int:
    match = RECORD_LABEL.match(line)
    return match.end() if match is not None and reads_as_sentence(line[match.end() :]) else 0


def reads_as_sentence(value: str) -> bool:
    """Tell whether what stands behind a label is a sentence, and no "240 p." or "Smith, J."."""
    shown = value.rstrip()
    return len(shown) >= LEAST_SENTENCE and shown.endswith((".", "!", "?", "。", "！", "？", "…"))


def announced(text: str, spans: tuple[Span, ...], place: int) -> int:
    """Return the place of the last item or line of code that a sentence announces, or its own."""
    start, end = spans[place]
    last = place
    if not text[start:end].rstrip().endswith(COLONS):
        return last
    listed = last + 1 < len(spans) and ITEM.match(text, spans[last + 1][0])
    while last + 1 < len(spans) and spans[last + 1][1] - start <= MOST_CHARACTERS:
        following = text[slice(*spans[last + 1])]
        if HEADING.match(following) or (listed and not _goes_on(text, spans, last)):
            break
        last += 1
        if not listed and not FENCE.match(following):
            break
        if FENCE.match(following):
            return code_end(text, spans, last, start)
    return last


def _goes_on(text: str, spans: tuple[Span, ...], last: int) -> bool:
    """Tell whether the next sentence is an item, or goes on with the one before."""
    between = text[spans[last][1] : spans[last + 1][0]]
    return bool(ITEM.match(text, spans[last + 1][0])) or "\n" not in between


def code_end(text: str, spans: tuple[Span, ...], place: int, start: int) -> int:
    """Return the place of the fence that closes a block of code, or of its last line that fits."""
    last = place
    while last + 1 < len(spans) and spans[last + 1][1] - start <= MOST_CHARACTERS:
        last += 1
        if FENCE.match(text, spans[last][0]):
            break
    return last


def reports(text: str, words: Lexicon) -> bool:
    """Tell whether a sentence reports a question and leaves it open: "Many ask whether …"."""
    reported = words.search("reported", text)
    return reported is not None and not any(mark in text[reported.end() :] for mark in ":;—：；")


def announces(item: Evidence) -> bool:
    """Tell whether the chunk behind a piece of evidence is what its last sentence announces."""
    return item.text.rstrip().endswith(COLONS)


def follows(item: Evidence, evidence: Sequence[Evidence], step: int = 1) -> Evidence | None:
    """Return the piece of evidence that stands `step` chunks behind another in its document."""
    for other in evidence:
        if other.document_id == item.document_id and other.ordinal == item.ordinal + step:
            return other
    return None


def code_spans(text: str, spans: tuple[Span, ...]) -> frozenset[int]:
    """Return the places of sentences that stand within fences."""
    inside, found = False, set()
    for place, (start, end) in enumerate(spans):
        fences = text[start:end].count("```") + text[start:end].count("~~~")
        if inside or fences:
            found.add(place)
        inside ^= bool(fences % 2)
    return frozenset(found)


def listed(unit: str) -> float:
    """Return how much of a list a text is, 0..1; commas may stand between other things."""
    if sum(ITEM.match(line) is not None for line in unit.splitlines()[1:]) > 1:
        return 1.0
    return IN_LINE * min(1.0, len(SEPARATOR.findall(unit)) / ITEMS)


def shows_code(text: str, spans: Sequence[Span], last: int, unit: str) -> bool:
    """Tell whether a sentence holds code or code follows it."""
    fenced = last + 1 < len(spans) and FENCE.match(text, spans[last + 1][0]) is not None
    return fenced or CODE.search(unit) is not None
