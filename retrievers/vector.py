"""The vector channel: cosine between the question and each chunk."""

from __future__ import annotations

from core.language.detect import detect_language
from retrievers.types import Index, Query, Ranking

UNDETERMINED = "und"


def serves(index: Index, query: Query) -> bool:
    """Tell whether the embedder was made for the language of this query."""
    if index.embedder is None:
        return False
    served = index.embedder.languages
    if served is None:
        return True
    return (query.language or detect_language(query.text)) in served | {UNDETERMINED}


def vector_search(index: Index, query: Query, limit: int) -> Ranking:
    """Return (chunk id, cosine) pairs of visible chunks, best first."""
    store = index.store
    if index.embedder is None:
        return []
    visible = store.catalogue.visible_documents(query.auth, index.collection.id, query.sources)
    if not visible:
        return []
    vector = index.embedder.embed_query(query.text)
    version = store.catalogue.index_version()
    vectors = store.vectors(index.collection)
    return vectors.search(index.collection.id, vector, limit, visible, version)
