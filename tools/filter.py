"""Keep the hits that a cross-encoder finds relevant to a question (FILTER_CE of a plan)."""

from __future__ import annotations

from core.types import Evidence
from retrievers.rerank import RERANK, rerank
from retrievers.types import Index, Query, Searched


def filter_hits(
    index: Index, query: Query, evidence: list[Evidence], threshold: float, top_k: int
) -> tuple[list[Evidence], str]:
    """Return the `top_k` best hits with a score of at least `threshold` (0..1), and a note.

    Without a cross-encoder that can be asked the first `top_k` stay as they are, and the note says
    why: nothing is dropped unread.
    """
    ranked, note = rerank(Searched(index, query), evidence)
    if not any(RERANK in item.scores for item in ranked):
        return evidence[:top_k], note
    kept = [item for item in ranked if item.scores.get(RERANK, 0.0) >= threshold]
    return kept[:top_k], f"{note}; {len(kept)} of {len(evidence)} reach {threshold:g}"
