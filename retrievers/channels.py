"""The channels of a search: which of them can speak, and what each is asked."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from core.errors import ModelError
from core.language.analysis import query_terms
from core.language.detect import UNDETERMINED, detect_language
from retrievers.types import Index, Query, Vector

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
