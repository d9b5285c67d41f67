"""Record queries: `query_records`, conditions over fields, compiled to caged SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from core.auth import AuthContext
from core.ledger import current_ledger
from core.record_names import ANY_FIELD, find_title
from core.time_limit import TimeUpError
from core.tool_spec import ToolSpec
from core.trace import StageStep
from core.types import Evidence, Value
from retrievers.channels import TEXT, VECTOR
from retrievers.hybrid import hybrid_search
from retrievers.types import Found, Index, Query
from stores.record_conditions import Condition
from stores.records import Description
from tools.arguments import checked, schema_of
from tools.record_rows import RecordRow
from tools.types import ToolError, ToolResult

MAX_ROWS = 100
LISTED = 100  # fields in a hint


class RecordArguments(Value):
    """Say which records: all conditions must hold; the newest or largest first when ordered.

    With `match` "most", one condition is enough and records that meet more come first.
    `query` adds up to `limit` passages of the tool's scope that fit these words, after the records
    that meet the conditions; with a query and no condition, only they are returned.
    With an `aggregate` the first piece of evidence says how many match, and what `field` has of
    them: the records of each value (of values that begin with the same `characters`), the sum
    or the average; `list` and an order add the records themselves. `file` confines it to the
    records of one file, and `show` names the fields that are asked for.
    """

    where: list[Condition] = Field(default_factory=list, max_length=8)
    match: Literal["all", "most"] = "all"
    query: str = Field("", max_length=8000)
    order_by: str | None = Field(None, max_length=100)
    descending: bool = True
    limit: int | None = Field(None, ge=1, le=MAX_ROWS)
    extended: bool = False
    language: str | None = Field(None, max_length=8)
    aggregate: Literal["count", "list", "groups", "sum", "average"] | None = None
    field: str | None = Field(None, max_length=100)
    characters: int = Field(0, ge=0, le=10)
    file: str = Field("", max_length=1000)
    show: list[str] = Field(default_factory=list, max_length=8)


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
            known = self._index.store.records.describe(
                auth, self._index.collection.id, self._sources
            )
        except TimeUpError as error:
            current_ledger().note(f"the fields of the records are not known: {error}")
            known = Description([], [], 0)
        return ToolSpec(
            name=self.name,
            base="query_records",
            purpose=self._purpose,
            not_for=self._not_for,
            examples=self._examples,
            arguments=schema_of(RecordArguments),
            fields=list(known.fields),
            tables=known.tables,
            others=known.others,
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
        if given.aggregate is not None:
            return self._aggregated(given, auth, limit)
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
        shown = "; ".join(map(str, given.where))
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

    def _aggregated(self, given: RecordArguments, auth: AuthContext, limit: int) -> ToolResult:
        """Count, list, group or add up; nothing where words that are looked for are nowhere."""
        records, collection = self._index.store.records, self._index.collection.id
        result = ToolResult(auth_filter={**auth.describe(), "sources": list(self._sources)})
        scope: dict[str, Any] = {"sources": self._sources, "file": given.file}
        where = [self._placed(condition, given, auth, scope) for condition in given.where]
        known = [condition for condition in where if condition is not None]
        lists = given.aggregate == "list" or given.order_by is not None
        rows, count = records.find(
            auth, collection, known, order_by=given.order_by, descending=given.descending,
            limit=limit if lists else 0, **scope,
        )  # fmt: skip
        if len(known) < len(where) or (not count and any(one.op == "has" for one in known)):
            result.notes.append("no field of these records has the words of the question")
            return result
        chunks = self._index.store.catalogue.first_chunks(auth, collection, rows)
        held = [chunks[row] for row in rows if row in chunks]
        total = records.find(
            auth, collection, [], order_by=None, descending=True, limit=0, **scope
        )[1]  # fmt: skip
        row = RecordRow(given.language, given.file)
        row.counted(count, total, known)
        if given.order_by is not None:
            row.ordered(given.order_by, descending=given.descending)
        if given.field is not None and given.aggregate == "groups":
            groups = records.groups(
                auth, collection, known, given.field, characters=given.characters, limit=limit,
                **scope,
            )  # fmt: skip
            row.grouped(given.field, groups.counts, groups.values)
        elif given.field is not None and given.aggregate in ("sum", "average"):
            added = records.total(auth, collection, known, given.field, **scope)
            row.added_up(given.field, added, given.aggregate)
        found = [row.evidence(held, given.file), *held]
        result.evidence = [
            item.model_copy(
                update={
                    "tool": self.name,
                    "query": "; ".join(map(str, known)),
                    "score": 1.0 / (1 + place),
                }
            )
            for place, item in enumerate(found)
        ]
        result.total, result.hidden = count, len(rows) - len(held)
        return result

    def _placed(
        self,
        condition: Condition,
        given: RecordArguments,
        auth: AuthContext,
        scope: dict[str, Any],
    ) -> Condition | None:
        """Return a condition on any field as one on the field that has its words, if there is.

        Who asks for a field of something names it by its title, if any record is called so.
        """
        if condition.field != ANY_FIELD:
            return condition
        words = str(condition.value)
        found = self._index.store.records.having(auth, self._index.collection.id, words, **scope)
        found = [one for one in found if one[0] not in given.show] or found
        if not found:
            return None
        titles = [one for one in found if find_title([one[0]])]
        name, whole = titles[0] if titles and given.show and not given.order_by else found[0]
        # A title is meant as a whole; "Stephen King" may be one of several authors.
        op = "=" if whole and condition.op == "has" and (name, whole) in titles else condition.op
        return Condition(field=name, op=op, value=words)

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
        asked = {condition.field for condition in given.where} - {ANY_FIELD}
        asked |= {name for name in (given.order_by, given.field, *given.show) if name}
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
