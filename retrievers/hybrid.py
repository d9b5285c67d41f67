"""Search with one channel or with both, fused, staged, and return permitted evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from core.trace import StageStep
from core.types import Evidence
from models.embeddings import Embedder
from retrievers.channels import (
    TEXT,
    VECTOR,
    ChannelQuery,
    ask_channels,
)
from retrievers.expansion import expand
from retrievers.fusion import Ranked, rank_candidates
from retrievers.links import follow_links
from retrievers.stages import (
    CHOOSING,
    NOT_RERANKED,
    RANKING,
    UNSERVED,
    is_switched_on,
    run_stages,
    trace_stage,
)
from retrievers.types import Index, Query, RetrievalResult, Searched
from retrievers.versions import version_notes
from stores.segments.types import Candidates

# BM25 hits below this share of the best are dropped when vectors should be there and are not.
CUTOFF_ALONE = 0.5


def hybrid_search(
    index: Index,
    query: Query,
    channels: Sequence[str],
    limits: Mapping[str, int],
    top_k: int,
    *,
    choose: bool = True,
    links: bool | None = None,
) -> RetrievalResult:
    """Search, fuse the channels, check every row against the catalogue and run the stages.

    Of each channel the best `limits` hits are candidates. Without `choose`, the stages that cut a
    ranking to what an answer should read are left out, as evaluations of a ranking need it.
    `links` overrides the setting `links.channel`; a channel alone follows none.
    """
    found = RetrievalResult()
    trace = found.stages
    settings = index.settings
    limits = {name: limits[name] for name in channels}
    with trace_stage(trace, "query") as step:
        asked = ask_channels(index, query, channels)
        step |= {"after": len(asked.terms), "note": "; ".join(asked.notes)}
    candidates, ranked = _rank(index, query, asked, limits, trace)
    widened = expand(index, query, asked, _best_distance(candidates, query, index.embedder))
    found.partial = asked.partial
    if widened is not None:
        asked = widened
        candidates, ranked = _rank(index, query, asked, limits, trace)
    found.notes += asked.notes
    searched = Searched(index, query, asked.vector)
    if len(channels) > 1 and (settings.links.channel if links is None else links):
        with trace_stage(trace, "links", len(ranked.ranking)) as step:
            every = dict.fromkeys((VECTOR, TEXT), len(candidates.chunk_ids))
            wide = rank_candidates(candidates, settings, every, cutoff=0.0)
            ranked, note = follow_links(searched, asked.terms, ranked, dict(wide.ranking))
            step |= {"after": len(ranked.ranking), "note": note}
    pool = settings.selection.rerank_pool if is_switched_on(index, "selection.stage_rerank") else 0
    evidence = _hydrate(index, query, ranked, max(top_k + settings.retrieval.spare, pool), found)
    evidence = run_stages(searched, evidence, RANKING, found.stages)[:top_k]
    if choose:
        evidence = run_stages(searched, evidence, CHOOSING, found.stages)
    found.partial |= any(
        stage.note.startswith(NOT_RERANKED) and not stage.note.endswith(UNSERVED)
        for stage in found.stages
    )
    found.notes += version_notes(searched, evidence)
    if not evidence:
        found.notes.append(_why_nothing(candidates, asked))
    found.evidence = evidence
    return found


def _best_distance(candidates: Candidates, query: Query, embedder: Embedder | None) -> float | None:
    """Return 1 − the similarity of the best hit, 0..1; None without vectors."""
    cosines = candidates.cosine
    if embedder is None or cosines is None or not np.isfinite(cosines).any():
        return None
    return 1.0 - embedder.similarity(float(np.nanmax(cosines)), query.language or "")


def _why_nothing(candidates: Candidates, asked: ChannelQuery) -> str:
    """Say why a search found nothing, which must never look like a search that failed."""
    if not candidates.visible:
        return "nothing found: no document here is within this caller's rights and the tool's scope"
    if not asked.terms and asked.vector is None:
        return "nothing found: the query has no word to search for"
    return "nothing found: no document contains these words"


def _rank(
    index: Index,
    query: Query,
    asked: ChannelQuery,
    limits: Mapping[str, int],
    trace: list[StageStep],
) -> tuple[Candidates, Ranked]:
    settings, limits = index.settings, dict(limits)
    with trace_stage(trace, "rank") as step:
        if asked.broken:  # words stand in for vectors
            limits[TEXT] = limits.get(TEXT, limits.pop(VECTOR, 0))
        pool = max(settings.retrieval.pool, *limits.values())
        candidates = index.search.candidates(
            query.auth,
            index.collection.id,
            terms=asked.terms,
            term_weights=asked.weights,
            vector=asked.vector,
            pool=pool,
            sources=query.sources,
            kinds=query.kinds,
        )
        cutoff = CUTOFF_ALONE if asked.broken else settings.retrieval.text_cutoff
        ranked = rank_candidates(candidates, settings, limits, cutoff=cutoff)
        step |= {"before": len(candidates.chunk_ids), "after": len(ranked.ranking)}
        step["note"] = "; ".join(candidates.notes)
    return candidates, ranked


def _hydrate(
    index: Index, query: Query, ranked: Ranked, count: int, found: RetrievalResult
) -> list[Evidence]:
    """Read the best chunks from the catalogue under the caller's rights; others are withheld."""
    best = ranked.ranking[:count]
    permitted = index.catalogue.evidence(
        query.auth, index.collection.id, [key for key, _ in best], query.sources
    )
    found.hidden += len(best) - len(permitted)
    evidence = []
    for key, score in best:
        if key in permitted:
            scores = {name: raw[key] for name, raw in ranked.channels.items() if key in raw}
            update = {"score": score, "scores": scores, "query": query.text}
            evidence.append(permitted[key].model_copy(update=update))
    # Equal scores fall by source and place, not by chunk ids, which differ between directories.
    return sorted(evidence, key=lambda item: (-item.score, item.source, item.ordinal))
