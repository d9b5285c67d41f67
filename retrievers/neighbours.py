"""Widen the best hits with the chunks around them (SPEC T1)."""

from __future__ import annotations

from core.types import Evidence
from retrievers.types import Searched

NEIGHBOUR = "neighbour"


def neighbours(searched: Searched, evidence: list[Evidence]) -> tuple[list[Evidence], str]:
    """Put permitted neighbours of the best hits right behind them, in reading order.

    A neighbour's score lies halfway to the next hit, so the ranking stays a ranking;
    `scores["neighbour"]` is its distance in chunks, after the hit positive.
    """
    settings = searched.index.settings
    known = {item.chunk_id for item in evidence}
    widened: list[Evidence] = []
    for place, hit in enumerate(evidence):
        widened.append(hit)
        if place >= settings.neighbours_best:
            continue
        following = evidence[place + 1].score if place + 1 < len(evidence) else min(0.0, hit.score)
        score = (hit.score + following) / 2
        for item in _around(searched, hit):
            if item.chunk_id not in known:
                known.add(item.chunk_id)
                mark = {NEIGHBOUR: float(item.ordinal - hit.ordinal)}
                update = {"score": score, "scores": mark, "query": hit.query, "tool": hit.tool}
                widened.append(item.model_copy(update=update))
    added = len(widened) - len(evidence)
    return widened, f"{added} neighbours added" if added else ""


def _around(searched: Searched, hit: Evidence) -> list[Evidence]:
    index = searched.index
    return index.store.catalogue.neighbours(
        searched.query.auth, index.collection.id, hit.chunk_id, index.settings.neighbours_reach
    )
