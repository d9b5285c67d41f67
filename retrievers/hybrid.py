"""Search with one channel or with both, fused, staged, and return permitted evidence."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from core.trace import StageStep
from core.types import Evidence
from retrievers.channels import TEXT, VECTOR, Asked, ask_channels, find_candidates
from retrievers.expansion import expand
from retrievers.feedback import feed_back, wants_feedback
from retrievers.links import follow_links
from retrievers.ranking import Ranked, rank_candidates
from retrievers.rerank import NOT_RERANKED, UNSERVED
from retrievers.stages import CHOOSING, RANKING, hydrated, run_stages
from retrievers.types import Found, Index, Query, Searched
from retrievers.versions import version_notes
from retrievers.weights import Weights, best_distance, decide_weights
from stores.segments.types import Candidates


def hybrid_search(
    index: Index,
    query: Query,
    channels: Sequence[str],
    limits: Mapping[str, int],
    top_k: int,
    *,
    choose: bool = True,
    links: bool | None = None,
) -> Found:
    """Search, fuse the channels, check every row against the catalogue and run the stages.

    Of each channel the best `limits` hits are candidates. Without `choose`, the stages that cut a
    ranking to what an answer should read are left out, as evaluations of a ranking need it.
    `links` overrides the setting `channel_links`; a channel alone follows none.
    """
    found = Found()
    search = _Search(index, query, channels, limits, found)
    asked = search.ask()
    candidates, weights, ranked = search.rank(asked)
    distance = best_distance(candidates, query, index.embedder)
    widened = expand(index, query, asked, distance)
    found.partial = asked.partial
    if widened is not None:
        asked = widened
        candidates, weights, ranked = search.rank(asked)
    if asked.vector is not None and wants_feedback(weights.trust, index.settings):
        moved = feed_back(index, asked, ranked)
        if moved is not None:
            candidates, weights, ranked = search.rank(replace(asked, vector=moved), "feedback")
    found.notes += asked.notes  # why a channel weighs less stands in the trace
    searched = Searched(index, query, asked.vector, distance)
    followed = index.settings.channel_links if links is None else links
    if followed and len(channels) > 1:
        ranked = search.follow(searched, asked, candidates, weights, ranked)
    evidence = _hydrate(index, query, ranked, hydrated(index, top_k), found)
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


def _why_nothing(candidates: Candidates, asked: Asked) -> str:
    """Say why a search found nothing, which must never look like a search that failed."""
    if not candidates.visible:
        return "nothing found: no document here is within this caller's rights and the tool's scope"
    if not asked.terms and asked.vector is None:
        return "nothing found: the query has no word to search for"
    return "nothing found: no document contains these words"


class _Search:
    """Keep what repeated rankings of one search share, and trace them."""

    def __init__(
        self,
        index: Index,
        query: Query,
        channels: Sequence[str],
        limits: Mapping[str, int],
        found: Found,
    ) -> None:
        self._index, self._query, self._found = index, query, found
        self._channels = tuple(channels)
        self._limits = {name: limits[name] for name in channels}

    def ask(self) -> Asked:
        """Prepare the query for its channels."""
        started = time.perf_counter()
        asked = ask_channels(self._index, self._query, self._channels)
        self._trace("query", started, 0, len(asked.terms), "; ".join(asked.notes))
        return asked

    def rank(self, asked: Asked, name: str = "rank") -> tuple[Candidates, Weights, Ranked]:
        """Find candidates and fuse their scores."""
        started = time.perf_counter()
        settings = self._index.settings
        limits = dict(self._limits)
        if asked.broken:  # words stand in for vectors
            limits[TEXT] = limits.get(TEXT, limits.pop(VECTOR, 0))
        pool = max(settings.pool, *limits.values())
        candidates = find_candidates(self._index, self._query, asked, pool)
        weights = decide_weights(candidates, self._query, settings, self._index.embedder)
        cutoff = settings.text_cutoff_alone if asked.broken else settings.text_cutoff
        ranked = rank_candidates(candidates, weights, settings, limits, cutoff=cutoff)
        note = f"vector weight {weights.vector:.2f}" if len(self._channels) > 1 else ""
        note = "; ".join(part for part in (note, *weights.notes, *candidates.notes) if part)
        self._trace(name, started, len(candidates.chunk_ids), len(ranked.ranking), note)
        return candidates, weights, ranked

    def follow(
        self,
        searched: Searched,
        asked: Asked,
        candidates: Candidates,
        weights: Weights,
        ranked: Ranked,
    ) -> Ranked:
        """Raise and add what the names in the best hits lead to."""
        started = time.perf_counter()
        every = dict.fromkeys((VECTOR, TEXT), len(candidates.chunk_ids))
        wide = rank_candidates(candidates, weights, self._index.settings, every, cutoff=0.0)
        linked, note = follow_links(searched, asked.terms, ranked, dict(wide.ranking))
        self._trace("links", started, len(ranked.ranking), len(linked.ranking), note)
        return linked

    def _trace(self, name: str, started: float, before: int, after: int, note: str) -> None:
        spent = round(1000 * (time.perf_counter() - started), 3)
        step = StageStep(name=name, before=before, after=after, ms=spent, note=note)
        self._found.stages.append(step)


def _hydrate(
    index: Index, query: Query, ranked: Ranked, count: int, found: Found
) -> list[Evidence]:
    """Read the best chunks from the catalogue under the caller's rights; others are withheld."""
    best = ranked.ranking[:count]
    permitted = index.store.catalogue.evidence(
        query.auth, index.collection.id, [key for key, _ in best], query.sources
    )
    found.hidden += len(best) - len(permitted)
    evidence = []
    for key, score in best:
        if key in permitted:
            scores = {name: raw[key] for name, raw in ranked.channels.items() if key in raw}
            update = {"score": score, "scores": scores, "query": query.text}
            evidence.append(permitted[key].model_copy(update=update))
    return evidence
