"""Widen the best hits with the chunks around them (SPEC T1)."""

from __future__ import annotations

from collections.abc import Mapping

from core.types import Evidence
from retrievers.types import Searched

NEIGHBOUR = "neighbour"


def neighbours(searched: Searched, evidence: list[Evidence]) -> tuple[list[Evidence], str]:
    """Put permitted neighbours of the best hits right behind them, in reading order.

    A neighbour's score lies halfway to the next hit, so the ranking stays a ranking;
    `scores["neighbour"]` is its distance in chunks, after the hit positive.
    """
    settings = searched.index.settings
    reach = settings.selection.neighbours_reach
    last = [min(0.0, item.score) for item in evidence[-1:]]
    following = [*[item.score for item in evidence[1:]], *last]
    hits = list(zip(evidence, following, strict=True))[: settings.selection.neighbours_best]
    halfway = {hit.chunk_id: (hit.score + score) / 2 for hit, score in hits}
    widened = _widened(searched, evidence, halfway, range(-reach, reach + 1))
    added = len(widened) - len(evidence)
    return widened, f"{added} neighbours added" if added else ""


def announced(searched: Searched, evidence: list[Evidence]) -> tuple[list[Evidence], str]:
    """Put the chunk that a hit announces by a colon at its end (a list, code) right behind it."""
    hits = [hit for hit in evidence if hit.text.rstrip().endswith((":", "："))]
    widened = _widened(searched, evidence, {hit.chunk_id: hit.score for hit in hits}, range(1, 2))
    added = len(widened) - len(evidence)
    return widened, f"{added} announced chunks added" if added else ""


def _widened(
    searched: Searched, evidence: list[Evidence], scores: Mapping[str, float], places: range
) -> list[Evidence]:
    """Add the chunks at these places, counted from them, to the hits that have scores."""
    index, auth = searched.index, searched.query.auth
    known = {item.chunk_id for item in evidence}
    widened: list[Evidence] = []
    for hit in evidence:
        widened.append(hit)
        if hit.chunk_id not in scores:
            continue
        around = index.catalogue.neighbours(
            auth, index.collection.id, hit.chunk_id, places.stop - 1
        )
        for item in around:
            away = item.ordinal - hit.ordinal
            if item.chunk_id not in known and away in places:
                known.add(item.chunk_id)
                told = {"scores": {NEIGHBOUR: float(away)}, "query": hit.query, "tool": hit.tool}
                update = {"score": scores[hit.chunk_id], **told}
                widened.append(item.model_copy(update=update))
    return widened
