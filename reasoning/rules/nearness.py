"""How near a value stands to the words of the question."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from core.language.analysis import analyze
from reasoning.rules.sentences import Sentence
from reasoning.rules.value_spans import Value
from reasoning.rules.wanted import Wanted

NEAR_CHARACTERS = 100


def places(sentence: Sentence, wanted: Wanted) -> list[int]:
    """Return where the question's own words stand in a sentence, as places of its text."""
    groups = [group | synonyms for group, synonyms, _ in wanted.groups[: wanted.own]]
    asked = frozenset[str]().union(*groups) if groups else frozenset[str]()
    return [
        sentence.start + start
        for term, start in _tokens(sentence.text, sentence.evidence.language)
        if term in asked
    ]


@lru_cache(maxsize=1024)
def _tokens(text: str, language: str) -> tuple[tuple[str, int], ...]:
    return tuple((token.term, token.start) for token in analyze(text, language))


def nearness(value: Value, matched: Sequence[int]) -> float:
    """Return 0..1: how near the question's words stand, on average of the nearest two."""
    gaps = sorted(
        max(0, value.start - place if place < value.start else place - value.end)
        for place in matched
        if not value.start <= place < value.end
    )[:2]
    if not gaps:
        return 0.0
    return 1 - min(1.0, sum(gaps) / len(gaps) / NEAR_CHARACTERS)
