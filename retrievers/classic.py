"""The classic baseline (SPEC L4): elect one document, search inside it, re-rank, one pass."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace

from core.errors import ModelError
from core.types import Evidence
from retrievers.channels import TEXT, VECTOR, serves
from retrievers.hybrid import hybrid_search
from retrievers.types import Found, Index, Query

GLOB = re.compile(r"([*?\[])")


def classic_search(
    index: Index, query: Query, limit: int, top_k: int, *, choose: bool = True
) -> Found:
    """Search all chunks with one channel, let the hits elect a document, search that document.

    The first `limit` hits vote. With a second embedder its hits vote as well. Keywords stand in
    for vectors where no embedder serves the question's language. A cross-encoder, when there is
    one, re-ranks what the second search finds.
    """
    channel = VECTOR if serves(index, query) else TEXT
    settings = index.settings
    plain = settings.model_copy(
        update={"stage_rerank": False, "stage_near_duplicates": False, "stage_factors": False}
    )
    voters = replace(index, settings=plain)
    votes = hybrid_search(voters, query, [channel], {channel: limit}, limit, choose=False)
    ballots = votes.evidence + _second_votes(voters, query, limit, votes)
    if not ballots:
        return votes
    winner = elect(ballots, settings.classic_vote)
    inside = replace(query, sources=(GLOB.sub(r"[\1]", winner.source),))
    limits = {channel: max(top_k, settings.pool)}
    found = hybrid_search(index, inside, [channel], limits, top_k, choose=choose)
    found.evidence = [item for item in found.evidence if item.document_id == winner.document_id]
    found.stages = votes.stages + found.stages
    found.partial |= votes.partial
    found.notes = [*votes.notes, f"elected {winner.source}", *found.notes]
    return found


def elect(hits: list[Evidence], by: str = "hits") -> Evidence:
    """Return a hit of the document that wins the vote.

    `by` "hits": most hits, ties by the larger sum of scores, then by id; "score": the other way
    round.
    """
    groups: dict[str, list[Evidence]] = defaultdict(list)
    for hit in hits:
        groups[hit.document_key].append(hit)

    def rank(group: list[Evidence]) -> tuple[float, float, str]:
        count, total = float(len(group)), sum(hit.score for hit in group)
        first, second = (total, count) if by == "score" else (count, total)
        return -first, -second, group[0].document_id

    return min(groups.values(), key=rank)[0]


def _second_votes(index: Index, query: Query, limit: int, votes: Found) -> list[Evidence]:
    """Return the hits of the second embedder, when there is one that serves the language."""
    second = index.second
    if second is None or not serves(replace(index, embedder=second), query):
        return []
    try:
        vector = second.embed_query(query.text)
    except ModelError as error:
        votes.notes.append(f"one embedder votes: {error}")
        votes.partial = True
        return []
    store, collection = index.store, index.collection
    visible = store.catalogue.visible_documents(query.auth, collection.id, query.sources)
    version = store.catalogue.index_version()
    scan = store.scan(second.model_id)
    hits = scan.search(collection.id, vector, limit, visible, version)
    found = store.catalogue.evidence(
        query.auth, collection.id, [key for key, _ in hits], query.sources
    )
    return [
        found[key].model_copy(update={"score": score, "query": query.text})
        for key, score in hits
        if key in found
    ]
