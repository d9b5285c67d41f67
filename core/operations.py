"""The operations a plan compiles to: typed steps that read registers and write one.

An operation is data. It names questions, tools and registers, and holds no rights: who asks comes
from the `AuthContext` of the run alone. A register holds data and nothing else.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, TypeAdapter

from core.types import AnswerKind, Finding, FrozenModel

Kind = Literal["hits", "values", "queries", "entities", "answer"]
Merge = Literal["union", "intersect"]
ENTITY = "entity"  # the one name a MAP_RETRIEVE template fills

TEXTS = frozenset({"query"})  # fields that hold a text unless they hold a Reference

Count = Annotated[int, Field(ge=1)]
RegisterName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]


class Reference(FrozenModel):
    """Refer to the register of an earlier operation, where a text could stand as well."""

    ref: RegisterName


class Operation(FrozenModel):
    """Hold the field that all operations share: the register each writes.

    READS maps the fields that hold register names to the kind they read; WRITES is the kind of
    `out`; CLAMPS maps the numeric fields to the settings that bound them from above.
    """

    READS: ClassVar[dict[str, Kind]] = {}
    WRITES: ClassVar[Kind] = "hits"
    CLAMPS: ClassVar[dict[str, str]] = {}

    out: RegisterName

    def reads(self) -> list[tuple[str, Kind]]:
        """Return the registers it reads, in the order of its fields, each with its kind."""
        found: list[tuple[str, Kind]] = []
        for field, kind in self.READS.items():
            value = getattr(self, field)
            names = value.values() if isinstance(value, dict) else value
            if isinstance(value, Reference):
                names = [value.ref]
            elif isinstance(value, str):
                names = [] if field in TEXTS else [value]
            found += [(name, kind) for name in names]
        return found


class Retrieve(Operation):
    """Search for one question: with its text, or with every query of a register.

    `tools` empty leaves the choice to the run.
    """

    READS: ClassVar[dict[str, Kind]] = {"query": "queries"}
    CLAMPS: ClassVar[dict[str, str]] = {"top_k": "plan.top_k"}

    op: Literal["RETRIEVE"] = "RETRIEVE"
    question: str
    query: str | Reference
    tools: list[str] = Field(default_factory=list)
    top_k: Count


class ExtractAnswer(Operation):
    """Find the values of a question's slot in hits, best first, at most `fan_out`."""

    READS: ClassVar[dict[str, Kind]] = {"hits": "hits"}
    WRITES: ClassVar[Kind] = "values"
    CLAMPS: ClassVar[dict[str, str]] = {"fan_out": "plan.fan_out"}

    op: Literal["EXTRACT_ANSWER"] = "EXTRACT_ANSWER"
    question: str
    slot: str
    wants: AnswerKind = "text"
    hits: RegisterName
    fan_out: Count


class ComposeQuery(Operation):
    """Fill the `{slots}` of a template, one query for each value, at most `fan_out`."""

    READS: ClassVar[dict[str, Kind]] = {"values": "values"}
    WRITES: ClassVar[Kind] = "queries"
    CLAMPS: ClassVar[dict[str, str]] = {"fan_out": "plan.fan_out"}

    op: Literal["COMPOSE_QUERY"] = "COMPOSE_QUERY"
    question: str
    template: str
    values: dict[str, RegisterName] = Field(min_length=1)
    fan_out: Count


class UnionHits(Operation):
    """Join hits; a passage found twice stays once, with its best grade."""

    READS: ClassVar[dict[str, Kind]] = {"hits": "hits"}

    op: Literal["UNION_HITS"] = "UNION_HITS"
    hits: list[RegisterName] = Field(min_length=2)


class IntersectHits(Operation):
    """Keep the hits of documents that occur in every input."""

    READS: ClassVar[dict[str, Kind]] = {"hits": "hits"}

    op: Literal["INTERSECT_HITS"] = "INTERSECT_HITS"
    hits: list[RegisterName] = Field(min_length=2)


class ExtractEntities(Operation):
    """Take the entities of hits that the question does not name, at most `max_entities`."""

    READS: ClassVar[dict[str, Kind]] = {"hits": "hits"}
    WRITES: ClassVar[Kind] = "entities"
    CLAMPS: ClassVar[dict[str, str]] = {"max_entities": "plan.max_entities"}

    op: Literal["EXTRACT_ENTITIES"] = "EXTRACT_ENTITIES"
    question: str
    hits: RegisterName
    max_entities: Count


class MapRetrieve(Operation):
    """Search once for each of the first `fan_out` entities, with `{entity}` filled in."""

    READS: ClassVar[dict[str, Kind]] = {"entities": "entities"}
    CLAMPS: ClassVar[dict[str, str]] = {"top_k": "plan.top_k", "fan_out": "plan.fan_out"}

    op: Literal["MAP_RETRIEVE"] = "MAP_RETRIEVE"
    question: str
    template: str
    entities: RegisterName
    tools: list[str] = Field(default_factory=list)
    top_k: Count
    fan_out: Count


class FilterCe(Operation):
    """Keep the hits that a cross-encoder gives at least `threshold` (0..1) for the question."""

    READS: ClassVar[dict[str, Kind]] = {"hits": "hits"}
    CLAMPS: ClassVar[dict[str, str]] = {"top_k": "plan.top_k"}

    op: Literal["FILTER_CE"] = "FILTER_CE"
    question: str
    hits: RegisterName
    threshold: float = Field(ge=0, le=1)
    top_k: Count


class Synthesize(Operation):
    """Answer these questions from hits, at most `max_evidence` of them; it ends every plan."""

    READS: ClassVar[dict[str, Kind]] = {"hits": "hits"}
    WRITES: ClassVar[Kind] = "answer"
    CLAMPS: ClassVar[dict[str, str]] = {"max_evidence": "plan.max_evidence"}

    op: Literal["SYNTHESIZE"] = "SYNTHESIZE"
    questions: list[str] = Field(min_length=1)
    hits: RegisterName
    max_evidence: Count


AnyOperation = Annotated[
    Retrieve
    | ExtractAnswer
    | ComposeQuery
    | UnionHits
    | IntersectHits
    | ExtractEntities
    | MapRetrieve
    | FilterCe
    | Synthesize,
    Field(discriminator="op"),
]
OPERATIONS: dict[str, type[Operation]] = {
    kind.model_fields["op"].default: kind
    for kind in (
        *(Retrieve, ExtractAnswer, ComposeQuery, UnionHits, IntersectHits),
        *(ExtractEntities, MapRetrieve, FilterCe, Synthesize),
    )
}
operation_adapter: TypeAdapter[AnyOperation] = TypeAdapter(AnyOperation)


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


def searched(register: Register | None, found: list[SearchHits]) -> Register:
    """Return the register of a search with the hits of more searches."""
    before = register or Register(kind="hits")
    searches = [*before.searches, *found]
    hits = dict.fromkeys(name for one in searches for name in one.chunk_ids)
    update: dict[str, object] = {"searches": searches, "hits": list(hits)}
    if register is None or not register.searches:
        update["first_pass"] = len(found)
    return before.model_copy(update=update)
