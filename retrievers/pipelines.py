"""The retrieval pipelines by name; the classic one elects a document, then searches it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from core.errors import ModelError
from core.types import Evidence
from retrievers.fusion import TEXT, VECTOR, serves
from retrievers.hybrid import hybrid_search
from retrievers.types import Index, Query, RetrievalResult

CLASSIC_VOTERS = 15  # hits that vote for a document

GLOB = re.compile(r"([*?\[])")


def classic_search(
    index: Index, query: Query, limit: int, top_k: int, *, choose: bool = True
) -> RetrievalResult:
    """Search all chunks with one channel, let the hits elect a document, search that document.

    The first `limit` hits vote. With a second embedder its hits vote as well. Keywords stand in
    for vectors where no embedder serves the question's language. A cross-encoder, when there is
    one, re-ranks what the second search finds.
    """
    channel = VECTOR if serves(index, query) else TEXT
    settings = index.settings
    off = ("stage_rerank", "stage_near_duplicates", "stage_factors")
    plain = settings.model_copy(update={f"selection.{name}": False for name in off})
    voters = replace(index, settings=plain)
    votes = hybrid_search(voters, query, [channel], {channel: limit}, limit, choose=False)
    ballots = votes.evidence + _second_votes(voters, query, limit, votes)
    if not ballots:
        return votes
    book_of = _books(index, query, ballots)
    winner = elect(ballots, settings.retrieval.classic_vote, book_of)
    members = _members(index, query, winner, book_of)
    inside = replace(query, sources=tuple(GLOB.sub(r"[\1]", name) for name in members.values()))
    limits = {channel: max(top_k, settings.retrieval.pool)}
    found = hybrid_search(index, inside, [channel], limits, top_k, choose=choose)
    found.evidence = [item for item in found.evidence if item.document_key in members]
    found.stages = votes.stages + found.stages
    found.partial |= votes.partial
    found.notes = [*votes.notes, f"elected {winner.source}", *found.notes]
    return found


def elect(
    hits: list[Evidence], by: str = "hits", book_of: Mapping[str, str] = MappingProxyType({})
) -> Evidence:
    """Return a hit of the document, or of the book, that wins the vote.

    `by` "hits": most hits, ties by the larger sum of scores, then by id; "score": the other way
    round. `book_of` gives the record's key to the keys of full texts, which vote with it.
    """
    groups: dict[str, list[Evidence]] = defaultdict(list)
    for hit in hits:
        groups[book_of.get(hit.document_key, hit.document_key)].append(hit)

    def rank(group: list[Evidence]) -> tuple[float, float, str]:
        count, total = float(len(group)), sum(hit.score for hit in group)
        first, second = (total, count) if by == "score" else (count, total)
        return -first, -second, group[0].document_id

    return min(groups.values(), key=rank)[0]


def _books(index: Index, query: Query, hits: list[Evidence]) -> dict[str, str]:
    """Return the key of the book of each hit that is from a full text."""
    if not index.settings.retrieval.classic_books:
        return {}
    keys = (hit.document_key for hit in hits)
    found = index.catalogue.books_of_texts(query.auth, index.collection.id, keys)
    return {key: book["key"] for key, book in found.items()}


def _members(
    index: Index, query: Query, winner: Evidence, book_of: Mapping[str, str]
) -> dict[str, str]:
    """Return the sources, by document key, of the winner: of one document, or of a whole book."""
    book = book_of.get(winner.document_key, winner.document_key)
    members = {winner.document_key: winner.source}
    if index.settings.retrieval.classic_books:
        auth, collection = query.auth, index.collection.id
        texts = index.catalogue.texts_of_book(auth, collection, book)
        members |= {text["key"]: text["source"] for text in texts}
        record = index.catalogue.books_of_texts(auth, collection, list(members))
        members |= {one["key"]: one["source"] for one in record.values()}
    return members


def _second_votes(index: Index, query: Query, limit: int, votes: RetrievalResult) -> list[Evidence]:
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
    catalogue, collection = index.catalogue, index.collection
    visible = catalogue.visible_documents(query.auth, collection.id, query.sources)
    version = catalogue.index_version()
    scan = index.store.scan(second.model_id)
    hits = scan.search(collection.id, vector, limit, visible, version)
    found = catalogue.evidence(query.auth, collection.id, [key for key, _ in hits], query.sources)
    return [
        found[key].model_copy(update={"score": score, "query": query.text})
        for key, score in hits
        if key in found
    ]


CHANNELS = {
    "hybrid": (VECTOR, TEXT),
    "linked": (VECTOR, TEXT),
    "vector": (VECTOR,),
    "keyword": (TEXT,),
}
PIPELINES = (*CHANNELS, "classic")


def run_pipeline(
    index: Index, query: Query, pipeline: str, top_k: int, *, choose: bool = True
) -> RetrievalResult:
    """Return the `top_k` best permitted chunks under one of PIPELINES.

    Without `choose`, nothing cuts the ranking to what an answer should read.
    """
    if pipeline == "classic":
        return classic_search(index, query, CLASSIC_VOTERS, top_k, choose=choose)
    channels = CHANNELS[pipeline]
    depth = max(top_k, index.settings.retrieval.pool)
    limits = dict.fromkeys(channels, depth)
    links = True if pipeline == "linked" else None
    return hybrid_search(index, query, channels, limits, top_k, choose=choose, links=links)
