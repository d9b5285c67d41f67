"""The passages that a model answers from: the likeliest sentences with those around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from core.language.tokens import estimate_tokens
from core.types import Evidence
from reasoning.rules.answering.blocks import spans_of
from reasoning.rules.answering.context import in_context
from reasoning.rules.answering.sentences import Sentence

Span = tuple[int, int]
GAP = " … "  # between parts of a chunk


class Excerpt(NamedTuple):
    """Hold the parts of one piece of evidence that are shown, in the order of its text."""

    item: Evidence
    spans: tuple[Span, ...]

    @property
    def shown(self) -> Evidence:
        """Return the evidence with these parts alone."""
        text = GAP.join(self.item.text[start:end].strip() for start, end in self.spans)
        return self.item.model_copy(update={"text": text})

    def joined(self, other: Excerpt) -> Excerpt:
        """Return a passage that shows what either shows."""
        return Excerpt(self.item, _joined(self.item, {*self.spans, *other.spans}))


def excerpts_of(ranked: Sequence[Sentence], tokens: int) -> list[Excerpt]:
    """Return passages of at most about `tokens` tokens that hold the first of ranked sentences.

    A sentence brings what it needs and its neighbours. The first is always there, and at least a
    part of it is shown whatever its length.
    """
    shown: dict[str, tuple[Evidence, set[Span]]] = {}
    spent = 0
    for sentence in ranked:
        item = sentence.evidence
        held = shown.get(item.chunk_id, (item, set()))[1]
        added = [one for one in _around(sentence) if one not in held]
        cost = sum(estimate_tokens(item.text[start:end]) for start, end in added)
        if shown and spent + cost > tokens:
            own = (sentence.start, sentence.end)
            added = [own] if own in added else []
            cost = sum(estimate_tokens(item.text[start:end]) for start, end in added)
            if spent + cost > tokens:
                continue
        shown[item.chunk_id] = (item, held | set(added))
        spent += cost
    return [Excerpt(item, _joined(item, held)) for item, held in shown.values()]


def _around(sentence: Sentence) -> list[Span]:
    """Return the sentences of a chunk that are shown with one."""
    item = sentence.evidence
    spans = spans_of(item.text, item.kind)
    first, last = in_context(item, sentence.start, sentence.end, code=True, items=True)
    inside = [place for place, (start, end) in enumerate(spans) if start < last and end > first]
    if not inside:  # a field of a record within its line
        return [(sentence.start, sentence.end)]
    return list(spans[max(0, inside[0] - 1) : inside[-1] + 2])


def _joined(item: Evidence, held: set[Span]) -> tuple[Span, ...]:
    """Join what stands side by side."""
    joined: list[Span] = []
    for start, end in sorted(held):
        if joined and not item.text[joined[-1][1] : start].strip():
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        elif not joined or end > joined[-1][1]:
            joined.append((start, end))
    return tuple(joined)
