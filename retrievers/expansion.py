"""Ask more than the question's own words, when the search itself is weak (SPEC M2).

Query2Doc adds a passage that a model expects to the query (Wang et al. 2023); HyDE lets its vector
stand for the query (Gao et al. 2022), a last resort behind a higher gate. A passage that drifts
from the question is thrown away. Without a model nothing is written (SPEC T5).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from core.errors import ModelError
from core.language.analysis import content_terms, query_terms
from core.language.identifiers import find_identifiers
from core.types import Evidence
from models.chat.types import ModelCancelled
from retrievers.fusion import MAX_TERMS, RRF_CONSTANT, VECTOR, ChannelQuery
from retrievers.types import Index, Query, RetrievalResult

QUERY2DOC_DISTANCE = 0.6  # a best distance beyond this lets a model write a passage
HYDE_DISTANCE = 0.99  # one beyond this lets that passage stand for the query

HEADED_HITS = 10  # best hits whose headings are read; docs/evals/techdocs.md
HEADING_WORDS = 5  # words that they add at most

ORIGINAL = 5.0  # a word of the question weighs as much as five of the passage (Wang et al. 2023)


def expand(
    index: Index, query: Query, asked: ChannelQuery, distance: float | None
) -> ChannelQuery | None:
    """Return the query with a written passage, or None when a gate is closed.

    The gates: a model that writes, a best distance beyond `QUERY2DOC_DISTANCE`, and a passage
    whose similarity to the question is at least `answering.drift_similarity`.
    """
    if index.writer is None or index.embedder is None or asked.vector is None:
        return None
    if distance is None or distance <= QUERY2DOC_DISTANCE:
        return None
    try:
        passage = index.writer.write_passage(query.text, query.language or "").strip()
        vector = index.embedder.embed_query(passage) if passage else None
    except ModelCancelled:
        raise  # the caller gave up; going on without the passage would not be what they want
    except ModelError:
        vector = None
    asked.partial = vector is None
    if vector is None:
        return None
    cosine = float(vector @ asked.vector)
    alike = index.embedder.similarity(cosine, query.language or "")
    if alike < index.settings.answering.drift_similarity:
        return None
    if distance > HYDE_DISTANCE:
        return replace(asked, vector=vector, notes=[*asked.notes, "HyDE: a written passage"])
    languages = index.search.languages(index.collection.id)
    known = set(asked.terms)
    added = [group for group in query_terms(passage, languages) if group not in known]
    added = added[: MAX_TERMS - len(asked.terms)]
    both = asked.vector + vector
    return ChannelQuery(
        terms=[*asked.terms, *added],
        weights=[*asked.weights, *([1 / ORIGINAL] * len(added))],
        vector=np.asarray(both / np.linalg.norm(both), dtype=np.float32),
        notes=[*asked.notes, "Query2Doc: a written passage joins the query"],
    )


def add_heading_words(
    index: Index, query: Query, asked: ChannelQuery, ranking: Sequence[tuple[str, float]]
) -> ChannelQuery | None:
    """Return the query with words of the titles and headings that its best hits stand under.

    So informal words become those of the documentation, which no model has to know: the hits are
    found by meaning too, and their headings say what the collection calls that (pseudo-relevance
    feedback; Lavrenko and Croft 2001, kept to headings). None when they add no word, and for a
    query with an identifier, which is in the words of the documentation already.
    """
    if find_identifiers(query.text):
        return None
    best = [key for key, _ in ranking[:HEADED_HITS]]
    found = index.catalogue.evidence(query.auth, index.collection.id, best, query.sources)
    headings = dict.fromkeys(
        (f"{one.title} {one.section.rpartition(' › ')[2]}", one.language, one.document_key)
        for one in (found[key] for key in best if key in found)
    )
    known = frozenset().union(*asked.terms)
    counts = Counter(
        term
        for text, language, _ in headings
        for term in set(content_terms(text, language)) - known
    )
    rarity = index.search.idf(index.collection.id, sorted(counts))
    added = sorted(counts, key=lambda term: (-counts[term] * rarity[term], term))
    added = added[: min(HEADING_WORDS, MAX_TERMS - len(asked.terms))]
    if not added:
        return None
    weight = index.settings.selection.amounts["headings"]
    return replace(
        asked,
        terms=[*asked.terms, *(frozenset([term]) for term in added)],
        weights=[*asked.weights, *([weight] * len(added))],
    )


def fuse_wordings(found: Mapping[str, RetrievalResult]) -> RetrievalResult:
    """Return what a search found for each wording of a query, as one ranking.

    That has as many hits as the longest of them. Each stage of the trace names its wording.
    """
    results = list(found.values())
    if len(results) == 1:
        return results[0]
    most = max(len(one.evidence) for one in results)
    return RetrievalResult(
        evidence=reciprocal_ranks([one.evidence for one in results])[:most],
        notes=list(dict.fromkeys(note for one in results for note in one.notes)),
        hidden=sum(one.hidden for one in results),
        stages=[
            stage.model_copy(update={"note": "; ".join(filter(None, (stage.note, text)))})
            for text, one in found.items()
            for stage in one.stages
        ],
        partial=any(one.partial for one in results),
    )


def reciprocal_ranks(rankings: Sequence[Sequence[Evidence]]) -> list[Evidence]:
    """Merge rankings by the sum of 1 / (RRF_CONSTANT + rank) (Cormack et al. 2009).

    Scores are shares of what the first of all rankings would get; a cosine is the best of those
    found. Equal scores fall by source and place.
    """
    found: dict[str, Evidence] = {}
    for ranking in rankings:
        for rank, item in enumerate(ranking, start=1):
            share = (RRF_CONSTANT + 1) / (RRF_CONSTANT + rank) / len(rankings)
            earlier = found.get(item.chunk_id)
            if earlier is None:
                found[item.chunk_id] = item.model_copy(update={"score": share})
                continue
            near = max(one.scores.get(VECTOR, -1.0) for one in (earlier, item))
            scores = earlier.scores | ({VECTOR: near} if near > -1 else {})
            update = {"score": earlier.score + share, "scores": scores}
            found[item.chunk_id] = earlier.model_copy(update=update)
    return sorted(found.values(), key=lambda item: (-item.score, item.source, item.ordinal))
