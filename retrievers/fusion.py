"""Rank the candidates of one search: which channels can speak, what each may propose, fused."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from core.errors import ModelError
from core.language.analysis import query_terms
from core.language.detect import UNDETERMINED, detect_language
from core.settings import Settings
from retrievers.types import Index, Query, Vector
from stores.segments.types import Candidates

VECTOR = "vector"
TEXT = "text"
SENTENCE = "sentence"
MAX_TERMS = 64


@dataclass
class ChannelQuery:
    """Hold a query in the form each channel reads: words with their weights, and a vector.

    `partial` says that a model failed, so that the same query may find more the next time.
    """

    terms: list[frozenset[str]] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    vector: Vector | None = None
    notes: list[str] = field(default_factory=list)
    broken: bool = False
    partial: bool = False


def serves(index: Index, query: Query) -> bool:
    """Tell whether the embedder was made for the language of this query."""
    if index.embedder is None:
        return False
    served = index.embedder.languages
    if served is None:
        return True
    return (query.language or detect_language(query.text)) in served | {UNDETERMINED}


def ask_channels(index: Index, query: Query, channels: Collection[str]) -> ChannelQuery:
    """Prepare the query for the channels that can speak; the notes say which cannot, and why.

    Beside the text channel, a vector channel whose embedder does not serve the question's language
    is silent: measured, fusing an English embedder into Russian search halves its recall. Alone it
    is asked all the same. `broken` says that there should have been a vector and was none.
    """
    asked = ChannelQuery()
    if VECTOR in channels:
        _embed(index, query, asked, alone=TEXT not in channels)
    if TEXT in channels or asked.broken:
        languages = index.search.languages(index.collection.id)
        asked.terms = list(query_terms(query.text, languages)[:MAX_TERMS])
        asked.weights = [1.0] * len(asked.terms)
    return asked


def _embed(index: Index, query: Query, asked: ChannelQuery, *, alone: bool) -> None:
    if index.embedder is None:
        asked.broken = True
        asked.notes.append(f"keywords only: {index.keywords_only}")
    elif not alone and not serves(index, query):
        asked.notes.append("keywords only: the embedder does not serve this language")
    else:
        try:
            asked.vector = index.embedder.embed_query(query.text)
        except ModelError as error:
            asked.broken = asked.partial = True
            asked.notes.append(f"keywords only: {error}")


if TYPE_CHECKING:
    Scores = NDArray[np.float64]
else:
    Scores = Any

RRF_CONSTANT = 60  # of Cormack, Clarke and Büttcher, SIGIR 2009

TAIL = 6.0  # standard deviations that count as much as the best BM25 score


def standardise(scores: Scores, mean: float, deviation: float, rows: int) -> Scores:
    """Return how far scores stand out from all `rows` of the collection, about 0..1.

    That is (score − mean) / deviation over TAIL, or over the most that so few rows can reach,
    √(n − 1) (Samuelson's inequality). Where no two scores differ all are 0.
    """
    if deviation <= 0 or rows < 2:
        return np.zeros(len(scores))
    reach = min(TAIL, (rows - 1) ** 0.5)
    return np.asarray((scores - mean) / deviation / reach)


def proportion(scores: Scores, rows: int) -> Scores:
    """Return BM25 scores as shares of the best one, or of log(1 + rows) where that is more.

    So much one word is worth that stands in a single one of `rows` texts. Where the best hit by
    words has less, as in another language than the question's, words say little: the channel keeps
    that share of its weight. Measured: 0.75 to 1.5 times as much moves nDCG@10 by .002 at most.
    """
    most = max(math.log1p(rows), float(scores.max(initial=0.0)))
    return np.asarray(scores / most) if most > 0 else np.zeros(len(scores))


def best_mask(scores: Scores, limit: int, least: float) -> Scores:
    """Mark the `limit` best scores that are above `least`; of equal ones the earlier."""
    kept = np.zeros(len(scores), dtype=bool)
    rows = np.flatnonzero(scores > least)
    kept[rows[np.argsort(-scores[rows], kind="stable")[:limit]]] = True
    return np.asarray(kept)


@dataclass(frozen=True)
class Ranked:
    """Hold the ranking: chunk ids best first with their score, and each channel's raw scores."""

    ranking: list[tuple[str, float]]
    channels: dict[str, dict[str, float]]


def rank_candidates(
    candidates: Candidates,
    settings: Settings,
    limits: Mapping[str, int],
    *,
    cutoff: float,
) -> Ranked:
    """Fuse the channels over the candidates, best first, ties in the order of the candidates.

    Of each channel the first `limits` hits are kept, of BM25 only those that reach `cutoff` of its
    best. A channel alone keeps its own scores.
    """
    if not candidates.chunk_ids:
        return Ranked([], {})
    text = candidates.bm25.astype(np.float64)
    least = cutoff * candidates.best_bm25
    text_found = best_mask(text, limits.get(TEXT, 0), max(0.0, np.nextafter(least, 0)))
    if candidates.cosine is None:
        return _ranked(candidates, text, text_found, settings)
    vector = candidates.cosine.astype(np.float64)
    if settings.retrieval.channel_sentences and candidates.sentence is not None:
        vector = (vector + candidates.sentence) / 2  # with that of the best sentence of the chunk
    known = np.isfinite(vector)
    vector = np.where(known, vector, candidates.mean)
    vector_found = known & best_mask(
        np.where(known, vector, -np.inf), limits.get(VECTOR, 0), -np.inf
    )
    if TEXT not in limits:
        return _ranked(candidates, vector, vector_found, settings)
    near = standardise(vector, candidates.mean, candidates.deviation, candidates.visible)
    by_words, weight = proportion(text, candidates.visible), settings.retrieval.weight_vector
    fused = weight * near + (1.0 - weight) * by_words  # SPEC T3
    return _ranked(candidates, fused, vector_found | text_found, settings)


def _ranked(candidates: Candidates, scores: Scores, kept: Scores, settings: Settings) -> Ranked:
    rows = np.flatnonzero(kept)
    # Candidates come as they were ingested, so that equal scores fall alike in every directory.
    rows = rows[np.argsort(-scores[rows], kind="stable")]
    ids = candidates.chunk_ids
    order = rows.tolist()
    channels: dict[str, dict[str, float]] = {}
    if (candidates.bm25 > 0).any():
        channels[TEXT] = {
            ids[i]: float(candidates.bm25[i]) for i in order if candidates.bm25[i] > 0
        }
    if candidates.cosine is not None:
        channels[VECTOR] = {ids[i]: float(candidates.cosine[i]) for i in order}
        sentence = candidates.sentence
        differs = sentence is not None and (sentence != candidates.cosine).any()
        if sentence is not None and differs and settings.retrieval.channel_sentences:
            channels[SENTENCE] = {ids[i]: float(sentence[i]) for i in order}
    return Ranked([(ids[i], float(scores[i])) for i in order], channels)
