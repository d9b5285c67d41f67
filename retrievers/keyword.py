"""The keyword channel: BM25 over analysed terms."""

from __future__ import annotations

from core.language.analysis import query_terms
from retrievers.types import Index, Query, Ranking

MAX_TERMS = 64


def keyword_search(index: Index, query: Query, limit: int) -> Ranking:
    """Return (chunk id, BM25) pairs of visible chunks, best first.

    Hits below `text_cutoff` of the best one are dropped. A very long query is cut to its first
    terms, which keeps the search bounded.
    """
    languages = index.store.catalogue.languages(index.collection.id)
    terms = query_terms(query.text, languages)[:MAX_TERMS]
    hits = index.store.fulltext.search(query.auth, index.collection.id, terms, limit, query.sources)
    if not hits:
        return []
    least = hits[0][1] * index.settings.text_cutoff
    return [hit for hit in hits if hit[1] >= least]
