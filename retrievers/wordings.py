"""Several wordings of one question: what searches find for them is fused by reciprocal ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.trace import StageStep
from core.types import Evidence
from retrievers.channels import VECTOR
from retrievers.types import RetrievalResult


def fuse_wordings(found: Mapping[str, RetrievalResult], constant: int) -> RetrievalResult:
    """Return what a search found for each wording of a query, as one ranking.

    That has as many hits as the longest of them. Each stage of the trace names its wording.
    """
    results = list(found.values())
    if len(results) == 1:
        return results[0]
    most = max(len(one.evidence) for one in results)
    return RetrievalResult(
        evidence=reciprocal_ranks([one.evidence for one in results], constant)[:most],
        notes=list(dict.fromkeys(note for one in results for note in one.notes)),
        hidden=sum(one.hidden for one in results),
        stages=[_named(stage, text) for text, one in found.items() for stage in one.stages],
        partial=any(one.partial for one in results),
    )


def reciprocal_ranks(rankings: Sequence[Sequence[Evidence]], constant: int) -> list[Evidence]:
    """Merge rankings by the sum of 1 / (constant + rank) (Cormack et al. 2009).

    Scores are shares of what the first of all rankings would get; a cosine is the best of those
    found. Equal scores fall by source and place.
    """
    found: dict[str, Evidence] = {}
    for ranking in rankings:
        for rank, item in enumerate(ranking, start=1):
            share = (constant + 1) / (constant + rank) / len(rankings)
            held = found.get(item.chunk_id)
            if held is None:
                found[item.chunk_id] = item.model_copy(update={"score": share})
                continue
            near = max(one.scores.get(VECTOR, -1.0) for one in (held, item))
            scores = held.scores | ({VECTOR: near} if near > -1 else {})
            update = {"score": held.score + share, "scores": scores}
            found[item.chunk_id] = held.model_copy(update=update)
    return sorted(found.values(), key=lambda item: (-item.score, item.source, item.ordinal))


def _named(stage: StageStep, text: str) -> StageStep:
    return stage.model_copy(update={"note": "; ".join(part for part in (stage.note, text) if part)})
