"""The classic baseline (SPEC L4): vote for one document, then search inside it alone."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace

from core.types import Evidence
from retrievers.hybrid import TEXT, VECTOR, hybrid_search
from retrievers.types import Found, Index, Query
from retrievers.vector import serves

GLOB = re.compile(r"([*?\[])")


def classic_search(index: Index, query: Query, limit: int, top_k: int) -> Found:
    """Search all chunks with one channel, let the hits elect a document, search that document.

    The document with the most hits wins, ties by the larger sum of scores, then by id. Keywords
    stand in for vectors where the embedder does not serve the question's language.
    """
    channel = VECTOR if serves(index, query) else TEXT
    limits = {VECTOR: limit, TEXT: limit}
    votes = hybrid_search(index, query, [channel], limits, limit)
    if not votes.evidence:
        return votes
    winner = elect(votes.evidence)
    inside = replace(query, sources=(GLOB.sub(r"[\1]", winner.source),))
    found = hybrid_search(index, inside, [channel], limits, top_k)
    found.evidence = [item for item in found.evidence if item.document_id == winner.document_id]
    return found


def elect(hits: list[Evidence]) -> Evidence:
    """Return a hit of the document that has most hits, ties by score sum, then by id."""
    groups: dict[str, list[Evidence]] = defaultdict(list)
    for hit in hits:
        groups[hit.document_key].append(hit)
    best = min(
        groups.values(),
        key=lambda group: (-len(group), -sum(h.score for h in group), group[0].document_id),
    )
    return best[0]
