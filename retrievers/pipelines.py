"""The retrieval pipelines by name, as `search` and the evaluations run them."""

from __future__ import annotations

from retrievers.channels import TEXT, VECTOR
from retrievers.classic import CLASSIC_VOTERS, classic_search
from retrievers.hybrid import hybrid_search
from retrievers.types import Index, Query, RetrievalResult

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
