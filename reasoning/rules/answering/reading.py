"""Let the reader look at the likeliest sentences in their passages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from models.embeddings import Reads, SpanPassage
from reasoning.rules.answering.blocks import CODE_KIND
from reasoning.rules.answering.features import Candidate
from reasoning.rules.answering.headings import heading_of
from reasoning.rules.records.values import RECORD_KINDS

# The likeliest sentences that are looked at, and the passages around them that are read, as many as
# the time for an answer allows (by hand). Of gold sentences .01 to .05 are not among them.
LIKELIEST, PASSAGES = 8, 4
BYTES = 700  # of a passage; some 150 pieces in every script, as the reader was trained on
# Log odds of sentences that were not read, about what most that do not answer get; and what the
# reader's own are cut at, so that one feature never outweighs all others (both by hand).
UNREAD, MOST = -8.0, 12.0
UNREADABLE = frozenset({*RECORD_KINDS, CODE_KIND})  # it was trained on prose


class ReaderScore(NamedTuple):
    """The reader model's log odds that a sentence answers, and where in it the answer is."""

    odds: float = UNREAD
    value: tuple[int, int] | None = None


def read_sentences(
    reader: Reads,
    question: str,
    found: Sequence[Candidate],
    odds: Sequence[float],
) -> list[ReaderScore]:
    """Return what the reader says of each sentence, its odds against "none answers" first.

    `odds` are those of all without the reader; around the likeliest passages are made.
    """
    read = [ReaderScore()] * len(found)
    passages = _passages(found, odds)
    rows = reader.read(question, [_passage(found, one) for one in passages])
    for places, row in zip(passages, rows, strict=bool(rows)):
        shift = found[places[0]].start
        for place, (one, start, end) in zip(places, row.tolist(), strict=True):
            value = (shift + int(start), shift + int(end)) if end else None
            new = ReaderScore(min(MOST, max(UNREAD, one)), value)
            if read[place].value is None or new.odds > read[place].odds:
                read[place] = new
    return read


def _passages(found: Sequence[Candidate], odds: Sequence[float]) -> list[range]:
    """Return the places of consecutive sentences around the likeliest, all of one chunk each."""
    made: list[range] = []
    likeliest = sorted(
        (place for place, one in enumerate(found) if one.evidence.kind not in UNREADABLE),
        key=lambda place: -odds[place],
    )
    for place in likeliest[:LIKELIEST]:
        if len(made) < PASSAGES and not any(place in one for one in made):
            made.append(_around(found, place))
    return made


def _around(found: Sequence[Candidate], place: int) -> range:
    first, last = place, place + 1
    while True:
        if _fits(found, first, last + 1):
            last += 1
        elif not _fits(found, first - 1, last):
            return range(first, last)
        if _fits(found, first - 1, last):
            first -= 1


def _fits(found: Sequence[Candidate], first: int, last: int) -> bool:
    if first < 0 or last > len(found):
        return False
    one, other = found[first], found[last - 1]
    together = one.evidence.chunk_id == other.evidence.chunk_id
    return together and len(_text(one, other).encode("utf-8", "replace")) <= BYTES


def _passage(found: Sequence[Candidate], places: range) -> SpanPassage:
    first, last = found[places[0]], found[places[-1]]
    spans = tuple(
        (found[place].start - first.start, found[place].end - first.start) for place in places
    )
    return SpanPassage(heading_of(first.evidence), _text(first, last), spans)


def _text(first: Candidate, last: Candidate) -> str:
    return first.evidence.text[first.start : last.end]
