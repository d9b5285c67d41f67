"""The sentence that says what the others of an answer leave open."""

from __future__ import annotations

import re
from collections.abc import Sequence

from reasoning.rules.answering.sentences import Sentence
from reasoning.rules.answering.wanted import QueryTerms
from reasoning.rules.values.value_spans import plain_title

# A question is open while sentences leave out this share of its words, weighed by how rare they
# are; a sentence completes it that says this share of what is open.
OPEN, CLOSES = 0.2, 0.35


def completing(
    chosen: Sequence[Sentence], ranked: Sequence[Sentence], wanted: QueryTerms
) -> Sentence | None:
    """Return the sentence that covers most of the words still open, None when it is too little.

    It stands in another document that the chosen ones name, or that names theirs.
    """
    weights = {number: wanted.groups[number][2] for number in range(wanted.own)}
    covered = frozenset[int]().union(*(sentence.matched for sentence in chosen))
    open_weight = _weight(weights, frozenset(weights) - covered)
    if open_weight < OPEN * _weight(weights, frozenset(weights)):
        return None
    found = [
        (_weight(weights, sentence.matched - covered), sentence.score, sentence)
        for sentence in ranked
        if any(_linked(sentence, other) for other in chosen)
    ]
    best = max(found, key=lambda one: one[:2], default=None)
    return best[2] if best is not None and best[0] >= CLOSES * open_weight else None


def _weight(weights: dict[int, float], numbers: frozenset[int]) -> float:
    return sum(weights[number] for number in numbers)


def _linked(left: Sentence, right: Sentence) -> bool:
    """Tell whether one of two sentences of different documents names the other's document."""
    if left.evidence.document_key == right.evidence.document_key:
        return False
    return _names(left, right) or _names(right, left)


def _names(sentence: Sentence, other: Sentence) -> bool:
    title = plain_title(other.evidence.title)
    if len(title) < 2:
        return False
    return re.search(rf"(?<!\w){re.escape(title)}(?!\w)", sentence.text, re.IGNORECASE) is not None
