"""Let a model write the passage it would expect, when the search itself is weak (SPEC M2).

Query2Doc adds the passage to the query (Wang et al. 2023); HyDE lets its vector stand for the query
(Gao et al. 2022), a last resort behind a higher gate. A passage that drifts from the question is
thrown away. Without a model nothing is written (SPEC T5).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from core.errors import ModelError
from core.language.analysis import query_terms
from models.chat.types import ModelCancelled
from retrievers.channels import MAX_TERMS, ChannelQuery
from retrievers.types import Index, Query, Vector

QUERY2DOC_DISTANCE = 0.6  # a best distance beyond this lets a model write a passage
HYDE_DISTANCE = 0.99  # one beyond this lets that passage stand for the query

ORIGINAL = 5.0  # a word of the question weighs as much as five of the passage (Wang et al. 2023)


def expand(
    index: Index, query: Query, asked: ChannelQuery, distance: float | None
) -> ChannelQuery | None:
    """Return the query with a written passage, or None when a gate is closed.

    The gates: a model that writes, a best distance beyond `QUERY2DOC_DISTANCE`, and a passage
    whose similarity to the question is at least `answering.drift_similarity`.
    """
    settings = index.settings
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
    if (
        index.embedder.similarity(cosine, query.language or "")
        < settings.answering.drift_similarity
    ):
        return None
    if distance > HYDE_DISTANCE:
        return replace(asked, vector=vector, notes=[*asked.notes, "HyDE: a written passage"])
    return _with_passage(index, asked, passage, vector)


def _with_passage(index: Index, asked: ChannelQuery, passage: str, vector: Vector) -> ChannelQuery:
    assert asked.vector is not None  # expand() has looked
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
