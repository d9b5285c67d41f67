"""Record queries: `query_records`, conditions over fields, compiled to caged SQL."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from core.auth import AuthContext
from core.budget import TimeUpError, current_ledger
from core.metadata import ANY_FIELD, EXTRACTS, LABELS, LISTED_CHUNKS, ROW, find_title
from core.types import Evidence, FrozenModel, ToolSpec
from languages.language import find_language
from retrievers.fusion import TEXT, VECTOR
from retrievers.hybrid import hybrid_search
from retrievers.types import Query
from stores.sqlite.record_conditions import Condition, RecordScope
from stores.sqlite.records import Description, Groups
from tools.types import ProfiledTool, ToolError, ToolResult

MAX_ROWS = 100
LISTED = 100  # fields in a hint
MOST_VALUES = 12  # of a field that are named in place of one that it lacks; chosen
FILES_SHOWN = 3  # of several that were counted; chosen
MOST_NEAR = 40  # cards among which the records about a theme are
# How like a theme a card must be, in its language and in another, and beside the likest: with these
# .81 to .83 of the entries are about their theme (44 themes, two halves of a catalogue), .76 to .79
# without the last; themes of no book reach .25 and .33, .48 and .50.
NEAR_SAME, NEAR_ACROSS, NEAR_BEST = 0.35, 0.5, 0.85
MOST_TELLING = 300
_TELLING = re.compile(r"^[^\n:]+: (?!\w+://)(?=[^\n]*[^\W\d_]{2})[^\n]+", re.MULTILINE)


Files = Annotated[list[Annotated[str, Field(max_length=1000)]], Field(max_length=100)]


class RecordArguments(FrozenModel):
    """Say which records: all conditions must hold; the newest or largest first when ordered.

    With `match` "most", one condition is enough and records that meet more come first.
    `query` adds up to `limit` passages of the tool's scope that fit these words, after the records
    that meet the conditions; with a query and no condition, only they are returned.
    With an `aggregate` the first piece of evidence says how many match: the records of each value
    `by` a field (of values that begin with the same `characters`), the sum or the average of
    `field` (for each value of `by`), the share of those that meet `among`; `list` and an order add
    the records themselves. `file` confines it to the records of one file or several, and `show`
    names the fields that are asked for. With `named` the records and cards are returned whose title
    has all these words, or the one that has them for a value, with `about` the records that are
    nearest to a theme in meaning and words, whatever else is given.
    """

    where: list[Condition] = Field(default_factory=list, max_length=8)
    match: Literal["all", "most"] = "all"
    query: str = Field("", max_length=8000)
    order_by: str | None = Field(None, max_length=100)
    descending: bool = True
    limit: int | None = Field(None, ge=1, le=MAX_ROWS)
    extended: bool = False
    language: str | None = Field(None, max_length=8)
    aggregate: Literal["count", "list", "groups", "sum", "average", "share"] | None = None
    among: list[Condition] = Field(default_factory=list, max_length=8)
    field: str | None = Field(None, max_length=100)
    by: str | None = Field(None, max_length=100)
    characters: int = Field(0, ge=0, le=10)
    file: Annotated[str, Field(max_length=1000)] | Files = ""
    show: list[str] = Field(default_factory=list, max_length=8)
    named: str = Field("", max_length=300)
    about: str = Field("", max_length=1000)

    @model_validator(mode="after")
    def _grouped_by(self) -> Self:
        if self.aggregate == "groups" and not self.by:
            raise ValueError("groups are made by a field: name it in `by`")
        return self


class QueryRecords(ProfiledTool):
    """Find records by their fields."""

    arguments = RecordArguments

    def spec(self, auth: AuthContext) -> ToolSpec:
        """Describe the tool with the fields and values this caller may see.

        Where the caller's time ends before they are known, the tool goes without them.
        """
        try:
            known = self._index.catalogue.describe_records(
                auth, self._index.collection.id, self._sources
            )
        except TimeUpError as error:
            current_ledger().note(f"the fields of the records are not known: {error}")
            known = Description([], [], 0)
        update = {"fields": list(known.fields), "tables": known.tables, "others": known.others}
        return self._spec.model_copy(update=update)

    def run(self, arguments: dict[str, Any], auth: AuthContext, deadline: float) -> ToolResult:
        """Return the first chunk of each matching record, in the order asked for."""
        given = self._checked(RecordArguments, arguments, auth, deadline)
        catalogue, collection = self._index.catalogue, self._index.collection
        if given.named or given.about:
            return self._cards(given, auth, deadline)
        self._check_fields(given, auth)
        sizes = self._index.settings.retrieval
        limit = given.limit or (sizes.records_k_extended if given.extended else sizes.records_k)
        if given.aggregate is not None:
            return self._aggregated(given, auth, limit)
        result = ToolResult(auth_filter=self._scope(auth))
        evidence: list[Evidence] = []
        if given.where or not given.query.strip():
            rows, result.total = catalogue.find_records(
                self._records(auth),
                given.where,
                most=given.match == "most",
                order_by=given.order_by,
                descending=given.descending,
                limit=limit,
            )
            chunks = catalogue.first_chunks(auth, collection.id, rows)
            evidence = [chunks[row] for row in rows if row in chunks]
            result.hidden = len(rows) - len(evidence)
        if given.query.strip():
            query = Query(given.query, auth, self._sources, given.language, deadline)
            pools = {VECTOR: limit, TEXT: limit}
            found = hybrid_search(self._index, query, [VECTOR, TEXT], pools, limit)
            result.stages, result.partial = found.stages, found.partial
            known = {item.chunk_id for item in evidence}
            evidence += [item for item in found.evidence if item.chunk_id not in known]
            result.hidden += found.hidden
        shown = "; ".join(map(str, given.where))
        result.evidence = self._in_place(evidence, shown or given.query or "all records")
        return result

    def _cards(self, given: RecordArguments, auth: AuthContext, deadline: float) -> ToolResult:
        """Return the cards of the records of a title, or of those about a theme, nearest first."""
        catalogue, collection = self._index.catalogue, self._index.collection.id
        result = ToolResult(auth_filter=self._scope(auth))
        if given.named:
            keys = catalogue.records_called(auth, collection, given.named, self._sources)
            found = catalogue.cards(auth, collection, keys)
            found.sort(key=lambda one: keys.index(one.document_key))
        else:
            found = self._near(given, auth, deadline, result)
        shown = f"title: {given.named}" if given.named else f"about: {given.about}"
        result.evidence = self._in_place(found, shown)
        return result

    def _near(
        self, given: RecordArguments, auth: AuthContext, deadline: float, result: ToolResult
    ) -> list[Evidence]:
        """Return the records whose cards are near a theme, nearest first, after what says so.

        Without vectors those are near that have a word of the theme.
        """
        total = self._count(self._records(auth), [])
        if not total:
            return []
        query = Query(given.about, auth, self._sources, given.language, deadline, kinds=("record",))
        pools = {VECTOR: MOST_NEAR, TEXT: MOST_NEAR}
        ranked = hybrid_search(self._index, query, [VECTOR, TEXT], pools, MOST_NEAR)
        result.stages, result.partial = ranked.stages, ranked.partial
        # A document that says something of itself is not meant by a list of works.
        cards = [one for one in ranked.evidence if one.ordinal == 0]
        embedder = self._index.embedder
        if embedder is not None and cards:
            # The numbers of a card say nothing of a theme: with them .70 of the entries are about
            # it instead of .83.
            texts = ["\n".join(_TELLING.findall(one.text))[:MOST_TELLING] for one in cards]
            cosines = embedder.embed_documents(texts) @ embedder.embed_query(given.about)
            near = []  # from 1 on a card is about the theme
            for card, cosine in zip(cards, cosines, strict=True):
                alike = embedder.similarity(float(cosine), given.language or "", card.language)
                same = card.language == (given.language or "")
                near.append(alike / (NEAR_SAME if same else NEAR_ACROSS))
            least = max(1.0, NEAR_BEST * max(near))
            order = sorted(range(len(cards)), key=lambda place: -near[place])
            cards = [cards[place] for place in order if near[place] >= least]
        cards = cards[: given.limit or self._index.settings.retrieval.records_k]
        row = RecordRow(given.language)
        row.say("near", theme=given.about, total=total)
        return [row.evidence(cards), *cards]

    def _aggregated(self, given: RecordArguments, auth: AuthContext, limit: int) -> ToolResult:
        """Count, list, group or add up; nothing where words that are looked for are nowhere."""
        catalogue, collection = self._index.catalogue, self._index.collection.id
        result = ToolResult(auth_filter=self._scope(auth))
        files = [given.file] if isinstance(given.file, str) else given.file
        scope = self._records(auth, [one for one in files if one])
        where = [self._placed(condition, given, scope) for condition in given.where]
        base = [self._placed(condition, given, scope) for condition in given.among]
        among = [condition for condition in base if condition is not None]
        known = [condition for condition in where if condition is not None]
        if len(known) < len(where) or len(among) < len(base):
            result.notes.append("no field of these records has the words of the question")
            return result
        lists = given.aggregate == "list" or given.order_by is not None
        rows, count = catalogue.find_records(
            scope, [*among, *known], order_by=given.order_by,
            descending=given.descending, limit=limit if lists else 0,
        )  # fmt: skip
        chunks = catalogue.first_chunks(auth, collection, rows)
        listed = [chunks[row] for row in rows if row in chunks]
        total = self._count(scope, among)
        if not total:
            return result  # of other files, or none that the caller may see
        if not count and any(_is_guess(one) for one in given.where):
            result.notes.append("no record has all words of the question")
            return result  # what no field is named for may be no value at all
        row = RecordRow(given.language, scope.files)
        absent = None if count else self._absent(scope, known)
        if absent is not None:
            row.lack(absent.field, absent.value, total, self._values_of(scope, absent.field))
        else:
            row.counted(count, total, known, among, share=given.aggregate == "share")
        if given.order_by is not None:
            row.say("down" if given.descending else "up", field=given.order_by)
        elif lists and len(listed) < count:
            row.say("cut", shown=len(listed), count=count, most=min(count, MAX_ROWS))
        several = [one.field for one in known if isinstance(one.value, list) and one.op == "="]
        by = given.by or (several[0] if several and given.aggregate == "count" else None)
        if by is not None:
            groups = catalogue.group_records(
                scope, [*among, *known], by, adds=given.field,
                average=given.aggregate == "average", characters=given.characters, limit=limit,
            )  # fmt: skip
            row.grouped(by, groups, given.field, given.aggregate)
        elif given.field is not None and given.aggregate in ("sum", "average"):
            added = catalogue.total_of_records(scope, known, given.field)
            row.added_up(given.field, added, given.aggregate)
        found = [row.evidence(listed), *listed]
        result.evidence = self._in_place(found, "; ".join(map(str, known)))
        result.total, result.hidden = count, len(rows) - len(listed)
        return result

    def _absent(self, scope: RecordScope, where: list[Condition]) -> Condition | None:
        """Return a condition on words that no record has, where the field has few other words.

        A count of 0 would say of such a field what it does not know. Numbers and dates may be none.
        """
        for one in where:
            words = one.op in ("=", "has") and isinstance(one.value, str)
            if words and any(map(str.isalpha, str(one.value))) and not self._count(scope, [one]):
                if self._values_of(scope, one.field):
                    return one
        return None

    def _values_of(self, scope: RecordScope, field: str) -> list[str]:
        """Return the values of a field, the most frequent first, none where they are many."""
        groups = self._index.catalogue.group_records(
            scope, [], field, adds=None, average=False, characters=False, limit=MOST_VALUES
        )
        found = [str(value) for value, _ in groups.counts]
        return found if groups.values <= MOST_VALUES else []

    def _records(self, auth: AuthContext, files: Sequence[str] = ()) -> RecordScope:
        return RecordScope(auth, self._index.collection.id, self._sources, files)

    def _count(self, scope: RecordScope, where: list[Condition]) -> int:
        return self._index.catalogue.find_records(
            scope, where, order_by=None, descending=True, limit=0
        )[1]

    def _placed(
        self, condition: Condition, given: RecordArguments, scope: RecordScope
    ) -> Condition | None:
        """Return a condition on any field as one on the field that has its words, if there is.

        Who asks for a field of something names it by its title, if any record is called so.
        """
        words = str(condition.value)
        if condition.field != ANY_FIELD:
            heard = condition.op == "has" and words[:1].isupper()
            return (heard and self._sounding(words, scope, condition.field)) or condition
        found = self._index.catalogue.records_having(scope, words)
        found = [one for one in found if one[0] not in given.show] or found
        if not found:
            return self._sounding(words, scope) if words[:1].isupper() else None
        titles = [one for one in found if find_title([one[0]])]
        name, full = titles[0] if titles and given.show and not given.order_by else found[0]
        # A title is meant as a whole; "Stephen King" may be one of several authors.
        op = "=" if full and condition.op == "has" and (name, full) in titles else condition.op
        return Condition(field=name, op=op, value=words)

    def _sounding(self, name: str, scope: RecordScope, field: str = "") -> Condition | None:
        """Return a condition on the field that has a name in another script, but for titles."""
        found = [
            one
            for one in self._index.catalogue.records_sounding(scope, name)
            if (field or one[0]) == one[0] and not find_title([one[0]])
        ]
        if not found:
            return None
        field = Counter(name for name, _ in found).most_common(1)[0][0]
        return Condition(field=field, op="=", value=[value for one, value in found if one == field])

    def _check_fields(self, given: RecordArguments, auth: AuthContext) -> None:
        asked = {condition.field for condition in (*given.where, *given.among)} - {ANY_FIELD}
        asked |= {name for name in (given.order_by, given.field, given.by, *given.show) if name}
        catalogue, collection = self._index.catalogue, self._index.collection.id
        unknown = sorted(asked - catalogue.known_fields(auth, collection, asked, self._sources))
        if unknown:
            known = [
                info.name for info in catalogue.fields_of_records(auth, collection, self._sources)
            ]
            more = f" and {len(known) - LISTED} more" if len(known) > LISTED else ""
            raise ToolError(
                f"tool {self.name}: a field must exist",
                value=unknown[0],
                hint=f"fields: {', '.join(known[:LISTED]) or 'none'}{more}",
            )


def _is_guess(condition: Condition) -> bool:
    """Tell whether a condition looks for words that may be no value: no field or name is named."""
    low = condition.op == "has" and str(condition.value).islower()
    return low or condition.field == ANY_FIELD


class RecordRow:
    """Say in one language what a query over records found."""

    def __init__(self, language: str | None, files: Sequence[str] = ()) -> None:
        """Speak English where there are no words for a language."""
        self._messages = find_language(language).messages["records"]
        self._source = files[0] if len(files) == 1 else ""
        shown = ", ".join(files[:FILES_SHOWN]) + " …" * (len(files) > FILES_SHOWN)
        self._file = self._messages["in"].format(file=shown) if files else ""
        self._parts: list[str] = []

    def counted(
        self,
        count: int,
        total: int,
        where: Sequence[Condition],
        among: Sequence[Condition] = (),
        *,
        share: bool = False,
    ) -> None:
        """Say how many records match, under which filter, and which share of `total` that is."""
        shown, base = ("; ".join(map(str, one)) for one in (where, among))
        named = self._messages["among" if among else "some" if where else "all"]
        self._parts.append(
            named.format(count=count, total=total, filter=shown, base=base, file=self._file).strip()
        )
        if share and total:
            self.say("share", share=f"{100 * count / total:.1f}")

    def lack(self, field: str, value: object, total: int, values: Sequence[str]) -> None:
        """Say that no record has a value, and which there are."""
        shown = {"field": field, "value": value, "values": ", ".join(values)}
        self.say("absent", total=total, file=self._file, **shown)

    def say(self, name: str, **values: object) -> None:
        """Say one of the things that the language has a message for."""
        self._parts.append(self._messages[name].format(**values))

    def grouped(self, by: str, groups: Groups, field: str | None, aggregate: str | None) -> None:
        """Say how many records each value of a field has, or what another field has of them."""
        self.say("values", field=by, values=groups.values)
        most = f"{self._messages['most']}: " if len(groups.counts) < groups.values else ""
        if field is not None:
            most = self._messages[f"{aggregate} by"].format(field=field, by=by) + ": "
        shown = (f"{value}: {round(n or 0, 2):.12g}" for value, n in groups.counts)
        self._parts.append(most + ", ".join(shown))

    def added_up(self, field: str, found: tuple[float, float, int] | None, aggregate: str) -> None:
        """Say the sum or the average of a field."""
        if found is None:
            self.say("none", field=field)
            return
        known = {"sum": f"{found[0]:.12g}", "average": f"{round(found[1], 2):.12g}"}
        self.say(aggregate, field=field, known=found[2], **known)

    def evidence(self, listed: Sequence[Evidence]) -> Evidence:
        """Return the text as evidence that says which records it lists."""
        text = self._messages["join"].join(self._parts) + self._messages["end"]
        named = self._source and text.startswith(self._source)
        return row_evidence(text if named else text[0].upper() + text[1:], self._source, listed)


def together(
    rows: Mapping[str, Evidence], counts: Mapping[str, int], language: str | None
) -> Evidence:
    """Return what several collections counted as one text: their sum, and the share of each."""
    messages = find_language(language).messages["records"]
    shares = " ".join(f"{name}: {rows[name].text}" for name in counts)
    text = messages["together"].format(count=sum(counts.values())) if len(counts) > 1 else ""
    listed = [key for name in counts for key in rows[name].metadata[LISTED_CHUNKS]]
    key = _key(text + shares)
    metadata: dict[str, Any] = {LISTED_CHUNKS: listed}
    if any(EXTRACTS in row.metadata for row in rows.values()):
        own = [rows[name].metadata for name in counts]
        metadata[EXTRACTS] = [one for each in own for one in each[EXTRACTS]]
        metadata[LABELS] = {key: label for each in own for key, label in each[LABELS].items()}
    update = {
        "text": text + shares,
        "metadata": metadata,
        "collection": ", ".join(counts),
    }
    ids = {"evidence_id": key, "chunk_id": key}
    return rows[next(iter(counts))].model_copy(update=update | ids)


def row_evidence(text: str, source: str, listed: Sequence[Evidence]) -> Evidence:
    """Return a text of this program's own as evidence that says which chunks it is about."""
    key = _key(text)
    return Evidence(
        evidence_id=key,
        chunk_id=key,
        document_id=ROW,
        document_key=ROW,
        source=source or ROW,
        title=ROW,
        text=text,
        kind=ROW,
        metadata={LISTED_CHUNKS: [item.chunk_id for item in listed]},
    )


def _key(text: str) -> str:
    return f"records-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
