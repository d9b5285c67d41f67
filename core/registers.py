"""What the operations of a plan have written so far: typed registers, data and nothing else."""

from __future__ import annotations

from pydantic import Field

from core.operations import Kind
from core.types import Finding, FrozenModel


class FilledQuery(FrozenModel):
    """Hold one way to ask a question: its slots filled, and what filled them.

    `text` is what is asked and `query` what is searched for; `values` maps slots to the findings
    that stand in them. A slot without a value is described by the search text of the question
    that should have found it, and is not in `values`.
    """

    text: str
    query: str
    values: dict[str, Finding] = Field(default_factory=dict)


class SearchHits(FrozenModel):
    """Hold the chunk ids that one search returned, best first; `branch` counts queries from 0."""

    branch: int
    chunk_ids: list[str]


class Register(FrozenModel):
    """Hold what one operation wrote.

    `hits` are chunk ids, best first; a search keeps the hits of each of its `searches` too, the
    first `graded` of which were graded and the first `first_pass` of which were made before any
    rewrite. `findings` are the values of a slot, best first, of which
    `skipped` were undone. `queries` and `entities` are what the next search asks with.
    """

    kind: Kind
    hits: list[str] = Field(default_factory=list)
    searches: list[SearchHits] = Field(default_factory=list)
    graded: int = 0
    first_pass: int = 0
    findings: list[Finding] = Field(default_factory=list)
    skipped: int = 0
    queries: list[FilledQuery] = Field(default_factory=list)
    entities: list[str] = Field(default_factory=list)


def searched(held: Register | None, found: list[SearchHits]) -> Register:
    """Return the register of a search with the hits of more searches."""
    before = held or Register(kind="hits")
    searches = [*before.searches, *found]
    hits = dict.fromkeys(name for one in searches for name in one.chunk_ids)
    update: dict[str, object] = {"searches": searches, "hits": list(hits)}
    if held is None or not held.searches:
        update["first_pass"] = len(found)
    return before.model_copy(update=update)
