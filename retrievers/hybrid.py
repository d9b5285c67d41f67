"""Search with one channel or with both, fused, staged, and return permitted evidence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain
from math import inf, nextafter

import numpy as np

from core.language.analysis import terms
from core.language.entities import MAX_CHARACTERS, MAX_WORDS, entities
from core.passages import passage_meets
from core.trace import StageStep
from core.types import Evidence
from models.embeddings import Embedder
from retrievers.expansion import add_heading_words, expand
from retrievers.fusion import (
    TEXT,
    VECTOR,
    ChannelQuery,
    Ranked,
    ask_channels,
    rank_candidates,
)
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
from stores.segments.channels import Links, Name
from stores.segments.types import Booleans, Candidates, Floats

# Share of the question, missing in a hit, that gives a link full weight; this and the values
# below: a random search over halves of two sets, docs/retrieval.md.
GAIN = 0.25
STRENGTH = 0.1  # share of a hit's names that must lead to a chunk for full weight
TITLE = 8.0  # what a chunk whose title is the name counts beside others that have it
TITLE_GAIN = 2.0  # weight of such a chunk per missing share of the question; at most 1
LINKED = 200  # linked chunks weighed at most, which bounds the time of a search

MAX_NAMES = 64  # of one chunk; the first ones, which is where a chunk says what it is about
_IN_BRACKETS = re.compile(r"\s*[(（][^()（）]*[)）]\s*$")
_COMMA = re.compile(r"[,，、]")


def names_in(item: Evidence) -> list[Name]:
    """Return the names a chunk says, each once, in its order, without those of its own title."""
    own = title_names(item)
    return [name for name in _names(item.text, item.language) if name not in own][:MAX_NAMES]


@lru_cache(maxsize=4096)
def _names(text: str, language: str) -> tuple[Name, ...]:
    found = (tuple(terms(one.text, language)) for one in entities(text, language))
    return tuple(name for name in dict.fromkeys(found) if name)


def title_names(item: Evidence) -> frozenset[Name]:
    """Return what a title goes by: itself, and without what only tells it apart from others.

    That is what stands in brackets at the end ("Always (film)") or after a comma ("Laie, Hawaii").
    """
    return _title_names(item.title, item.language)


@lru_cache(maxsize=4096)
def _title_names(title: str, language: str) -> frozenset[Name]:
    plain = _IN_BRACKETS.sub("", title)
    forms = {title, plain, _COMMA.split(plain, maxsplit=1)[0]}
    # What is longer than any name found in a text can equal none.
    short = [one for one in forms if len(one) <= MAX_CHARACTERS and len(one.split()) <= MAX_WORDS]
    return frozenset(tuple(terms(form, language)) for form in short) - {()}


LINKS = "links"
_LEAST_TOTAL = 0.5  # rarity of all names of a hit; with less, a single name would count for much


def follow_links(
    searched: Searched,
    words: Sequence[frozenset[str]],
    ranked: Ranked,
    scores: Mapping[str, float],
) -> tuple[Ranked, str]:
    """Follow names from the best hits to chunks that say them too, for what the best hits lack.

    Returns the ranking with linked chunks raised or added, and a note. From each of the best hits
    one step is walked over the graph of names and chunks: to a name, by its rarity, and on to the
    chunks that say it, evenly but for those it is the title of. Names of the question lead nowhere
    new, names in too many chunks are hubs. What arrives counts as far as the chunk has words of the
    question that the hit lacks; for a chunk about the name, what the hit lacks is enough. The graph
    is that of HippoRAG (arXiv 2405.14831) and LinearRAG (arXiv 2510.10114); one step with a gate
    stands for their personalised PageRank, and the postings for the graph.

    `words` are the question's, `scores` those of all candidates; a linked chunk that was none
    counts as the last of them.
    """
    best = ranked.ranking[0][1] if ranked.ranking else 0.0
    if best <= 0 or not words:
        return ranked, ""
    index, query = searched.index, searched.query
    seeds = _read(searched, [key for key, _ in ranked.ranking[: index.settings.links.seeds]])
    names = [names_in(item) for item in seeds]
    every = list(dict.fromkeys(chain.from_iterable(names)))
    if not every:
        return ranked, "the best hits say no names"
    links = index.search.links(
        query.auth,
        index.collection.id,
        names=every,
        words=words,
        seeds=[item.chunk_id for item in seeds],
        limit=LINKED,
        sources=query.sources,
        kinds=query.kinds,
    )
    if links is None or not links.chunk_ids:
        return ranked, "" if links else "no links until the search segment is built"
    titled = _titled(every, _read(searched, links.chunk_ids), links)
    asked = frozenset(chain.from_iterable(words))
    opened = [not asked.issuperset(name) for name in every]
    named = [[name in set(own) for name in every] for own in names]
    counted = {item.chunk_id: max(0.0, scores.get(item.chunk_id, 0.0) / best) for item in seeds}
    worth = _worth(links, titled, opened, named, counted)
    return _merged(ranked, scores, worth, index.settings.links.weight)


def _read(searched: Searched, chunk_ids: Sequence[str]) -> list[Evidence]:
    """Return what the caller may see of these chunks, in their order."""
    index, query = searched.index, searched.query
    found = index.catalogue.evidence(query.auth, index.collection.id, chunk_ids, query.sources)
    return [found[key] for key in chunk_ids if key in found]


def _titled(names: Sequence[Name], read: Sequence[Evidence], links: Links) -> Booleans:
    """Return which chunk goes by which name, of shape (names, chunks)."""
    titles = {item.chunk_id: title_names(item) for item in read}
    rows = [[name in titles.get(key, ()) for key in links.chunk_ids] for name in names]
    return np.array(rows, dtype=np.bool_) & links.says


def _worth(
    links: Links,
    titled: Booleans,
    opened: Sequence[bool],
    named: Sequence[Sequence[bool]],
    seeds: Mapping[str, float],
) -> dict[str, float]:
    """Return what each linked chunk is worth, 0..1, by the best of the hits that lead to it.

    Arrays are as in Links: `titled` has the shape (m, n). `opened` says which names the question
    does not say, `named` (seeds, m) which hit says which name, `seeds` what each hit counts.
    """
    arrived, at_titles = _arrived(links, titled, opened, np.array(named, dtype=np.float64))
    itself = np.array([[key == seed for key in links.chunk_ids] for seed in seeds])
    arrived[itself] = at_titles[itself] = 0.0
    most = max(float(arrived.max()), STRENGTH)
    missing = (links.rarity / links.rarity.sum())[:, None] * ~links.seed_covers
    gain = np.minimum(missing.T @ links.covers / GAIN, 1.0)
    lacks = np.minimum(missing.sum(axis=0) * TITLE_GAIN, 1.0)[:, None]
    counted = arrived * gain + at_titles * lacks * (1.0 - gain)
    best = (counted / most * np.array([*seeds.values()])[:, None]).max(axis=0)
    found = zip(links.chunk_ids, best.tolist(), strict=True)
    return {key: value for key, value in found if value > 0}


def _arrived(
    links: Links, titled: Booleans, opened: Sequence[bool], named: Floats
) -> tuple[Floats, Floats]:
    """Return what arrives at each chunk from each hit, and how much of it at titles."""
    counts = np.maximum(links.counts, 1)
    rarity = np.log((links.visible + 1) / (counts + 0.5)) / np.log(links.visible + 1)
    rarity = np.where(links.counts > 0, rarity.clip(min=0.0), 0.0)
    total = np.maximum(named @ rarity, _LEAST_TOTAL)[:, None]
    steps = named * rarity * np.array(opened) / total
    alone = np.minimum(1.0, TITLE / counts)[:, None] * titled
    others = (links.says & ~titled) / counts[:, None]
    return steps @ (alone + others), steps @ alone


def _merged(
    ranked: Ranked, scores: Mapping[str, float], worth: Mapping[str, float], weight: float
) -> tuple[Ranked, str]:
    """Add what links are worth to the scores, which may leave 0..1; ties by chunk id.

    The best hit stays first: links start from it and say nothing against it.
    """
    if not worth:
        return ranked, ""
    first, best = ranked.ranking[0]
    last = min(scores.values())
    known = dict(ranked.ranking)
    sums = {
        key: known.get(key, scores.get(key, last)) + weight * best * worth.get(key, 0.0)
        for key in {*known, *worth}
    }
    sums[first] = nextafter(max(sums.values()), inf)
    ranking = sorted(sums.items(), key=lambda pair: (-pair[1], pair[0]))
    added = len(worth.keys() - known.keys())
    note = f"{len(worth)} linked chunks, {added} of them new"
    return Ranked(ranking, {**ranked.channels, LINKS: dict(worth)}), note


# BM25 hits below this share of the best are dropped when vectors should be there and are not.
CUTOFF_ALONE = 0.5
WEAK = 0.9  # a best distance beyond this says that vectors find nothing (SPEC T5)


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
    if widened is None and settings.selection.amounts["headings"] > 0 and len(channels) > 1:
        with trace_stage(trace, "headings", len(asked.terms)) as step:
            widened = add_heading_words(index, query, asked, ranked.ranking)
            added = widened.terms[len(asked.terms) :] if widened else []
            step |= {"after": len(asked.terms) + len(added)}
            step["note"] = ", ".join(term for word in added for term in word)
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
        distance = _best_distance(candidates, query, index.embedder)
        notes = list(candidates.notes)
        if settings.selection.amounts["weak"] and distance is not None and distance > WEAK:
            weight = max(0.0, settings.retrieval.weight_vector - settings.selection.amounts["weak"])
            settings = settings.model_copy(update={"retrieval.weight_vector": weight})
            notes.append(f"the best distance is {distance:.2f}: vectors weigh {weight:.2g}")
        ranked = rank_candidates(candidates, settings, limits, cutoff=cutoff)
        step |= {"before": len(candidates.chunk_ids), "after": len(ranked.ranking)}
        step["note"] = "; ".join(notes)
    return candidates, ranked


def _hydrate(
    index: Index, query: Query, ranked: Ranked, count: int, found: RetrievalResult
) -> list[Evidence]:
    """Read the best chunks from the catalogue under the caller's rights; others are withheld."""
    where = query.auth.where
    best = ranked.ranking if where else ranked.ranking[:count]
    permitted = index.catalogue.evidence(
        query.auth, index.collection.id, [key for key, _ in best], query.sources
    )
    found.hidden += len(best) - len(permitted)
    evidence = []
    for key, score in best:
        if key in permitted and passage_meets(permitted[key], where):
            scores = {name: raw[key] for name, raw in ranked.channels.items() if key in raw}
            update = {"score": score, "scores": scores, "query": query.text}
            evidence.append(permitted[key].model_copy(update=update))
    # Equal scores fall by source and place, not by chunk ids, which differ between directories.
    evidence.sort(key=lambda item: (-item.score, item.source, item.ordinal))
    return evidence[:count]
