"""Record queries: `query_records`, conditions over fields, compiled to caged SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from core.auth import AuthContext
from core.ledger import current_ledger
from core.time_limit import TimeUpError
from core.tool_spec import ToolSpec
from core.trace import StageStep
from core.types import Evidence, Value
from retrievers.channels import TEXT, VECTOR
from retrievers.hybrid import hybrid_search
from retrievers.types import Found, Index, Query
from stores.records import Condition
from tools.arguments import checked, schema_of
from tools.types import ToolError, ToolResult

MAX_ROWS = 100
LISTED = 100  # fields in a hint


class RecordArguments(Value):
    """Say which records: all conditions must hold; the newest or largest first when ordered.

    With `match` "most", one condition is enough and records that meet more come first.
    `query` adds up to `limit` passages of the tool's scope that fit these words, after the records
    that meet the conditions; with a query and no condition, only they are returned.
    """

    where: list[Condition] = Field(default_factory=list, max_length=8)
    match: Literal["all", "most"] = "all"
    query: str = Field("", max_length=8000)
    order_by: str | None = Field(None, max_length=100)
    descending: bool = True
    limit: int | None = Field(None, ge=1, le=MAX_ROWS)
    extended: bool = False
    language: str | None = Field(None, max_length=8)


class QueryRecords:
    """Find records by their fields."""

    def __init__(
        self,
        index: Index,
        name: str,
        purpose: str,
        *,
        not_for: Sequence[str] = (),
        examples: Sequence[str] = (),
        sources: Sequence[str] = (),
        scoped: bool = False,
    ) -> None:
        """Query the records of `sources` (shell patterns, empty for all)."""
        self._index = index
        self.name = name
        self._purpose = purpose
        self._not_for = list(not_for)
        self._examples = list(examples)
        self._sources = tuple(sources)
        self._scoped = scoped

    def spec(self, auth: AuthContext) -> ToolSpec:
        """Describe the tool with the fields and values this caller may see.

        Where the caller's time ends before they are known, the tool goes without them.
        """
        try:
            fields = self._index.store.records.fields(
                auth, self._index.collection.id, self._sources
            )
        except TimeUpError as error:
            current_ledger().note(f"the fields of the records are not known: {error}")
            fields = []
        return ToolSpec(
            name=self.name,
            base="query_records",
            purpose=self._purpose,
            not_for=self._not_for,
            examples=self._examples,
            arguments=schema_of(RecordArguments),
            fields=fields,
            scoped=self._scoped,
        )

    def run(self, arguments: dict[str, Any], auth: AuthContext, deadline: float) -> ToolResult:
        """Return the first chunk of each matching record, in the order asked for."""
        given = checked(self.name, RecordArguments, arguments, auth, deadline)
        store, collection, settings = (
            self._index.store,
            self._index.collection,
            self._index.settings,
        )
        self._check_fields(given, auth)
        limit = given.limit or (
            settings.records_k_extended if given.extended else settings.records_k
        )
        evidence: list[Evidence] = []
        total, hidden, partial = None, 0, False
        stages: list[StageStep] = []
        if given.where or not given.query.strip():
            rows, total = store.records.find(
                auth,
                collection.id,
                given.where,
                most=given.match == "most",
                order_by=given.order_by,
                descending=given.descending,
                limit=limit,
                sources=self._sources,
            )
            chunks = store.catalogue.first_chunks(auth, collection.id, rows)
            evidence = [chunks[row] for row in rows if row in chunks]
            hidden = len(rows) - len(evidence)
        if given.query.strip():
            found = self._ranked(given, auth, limit, deadline)
            stages = found.stages
            known = {item.chunk_id for item in evidence}
            evidence += [item for item in found.evidence if item.chunk_id not in known]
            hidden += found.hidden
            partial = found.partial
        shown = " and ".join(f"{c.field} {c.op} {c.value}" for c in given.where)
        return ToolResult(
            evidence=[
                item.model_copy(
                    update={
                        "tool": self.name,
                        "query": shown or given.query or "all records",
                        "score": 1.0 / (1 + place),
                    }
                )
                for place, item in enumerate(evidence)
            ],
            auth_filter={**auth.describe(), "sources": list(self._sources)},
            stages=stages,
            hidden=hidden,
            total=total,
            partial=partial,
        )

    def _ranked(
        self, given: RecordArguments, auth: AuthContext, limit: int, deadline: float
    ) -> Found:
        return hybrid_search(
            self._index,
            Query(given.query, auth, self._sources, given.language, deadline),
            [VECTOR, TEXT],
            {VECTOR: limit, TEXT: limit},
            limit,
        )

    def _check_fields(self, given: RecordArguments, auth: AuthContext) -> None:
        asked = {condition.field for condition in given.where}
        asked |= {given.order_by} if given.order_by else set()
        records, collection = self._index.store.records, self._index.collection.id
        unknown = sorted(asked - records.seen(auth, collection, asked, self._sources))
        if unknown:
            known = [info.name for info in records.fields(auth, collection, self._sources)]
            more = f" and {len(known) - LISTED} more" if len(known) > LISTED else ""
            raise ToolError(
                f"tool {self.name}: a field must exist",
                value=unknown[0],
                hint=f"fields: {', '.join(known[:LISTED]) or 'none'}{more}",
            )
