"""All tools of one collection, as its profile names and scopes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from core.auth import AuthContext, reading_for
from core.budget import TimeLimit, TimeUpError, current_ledger, limited_time
from core.metadata import ROW, Filter
from core.profile import BaseTool, ToolProfile
from core.settings import Settings
from core.types import Evidence, FieldInfo, TermWeights, ToolSpec
from models.vectors import Vectors
from retrievers.fusion import RRF_CONSTANT, VECTOR
from retrievers.spelling import corrections, is_visible
from retrievers.stages import RERANK, rerank
from retrievers.types import Index, Query, Searched
from tools.note_tools import KeywordSearch, ReadMemory, SemanticSearch
from tools.query_records import QueryRecords, together
from tools.results import Results
from tools.search import FindCandidates, ReadDocument, Search, SearchClassic, SearchTree
from tools.summarise import Summarise
from tools.types import Tool, ToolError, ToolResult

OWN_ORDER = "each collection is ordered by itself"


def joined_specs(specs: Sequence[Sequence[ToolSpec]]) -> list[ToolSpec]:
    """Describe the tools of several collections, each name once, with the fields of all."""
    found: dict[str, ToolSpec] = {}
    for spec in (one for box in specs for one in box):
        known = found.setdefault(spec.name, spec)
        if known is not spec:
            update: dict[str, Any] = {
                "fields": _fields(known, spec),
                "tables": [*known.tables, *spec.tables],
                "others": known.others + spec.others,
            }
            found[spec.name] = known.model_copy(update=update)
    return list(found.values())


def _fields(one: ToolSpec, other: ToolSpec) -> list[FieldInfo]:
    """Return the fields of both; a field of both has the values of both."""
    found = {field.name: field for field in one.fields}
    for field in other.fields:
        known = found.setdefault(field.name, field)
        examples = list(dict.fromkeys([*known.examples, *field.examples]))
        update = {
            "type": field.type if field.type == known.type else "text",
            "values": max(known.values, field.values, len(examples)),
            "examples": examples,
        }
        found[field.name] = known.model_copy(update=update)
    return list(found.values())


def joined_results(
    calls: Mapping[str, Callable[[], ToolResult]], arguments: Mapping[str, Any]
) -> ToolResult:
    """Make the call in each collection and rank what they found together.

    As many passages stay as `limit` says, else as the longest ranking had. A collection that
    cannot be asked, for it lacks a field, is named in the notes; raises when none can.
    """
    results: dict[str, ToolResult] = {}
    failed: dict[str, ToolError] = {}
    for name, call in calls.items():
        try:
            results[name] = call()
        except ToolError as error:
            failed[name] = error
    if not results:
        raise next(iter(failed.values()))
    ranked = joint_ranking({name: one.evidence for name, one in results.items()})
    most = arguments.get("limit") or max(len(one.evidence) for one in results.values())
    rows = {item.collection: item for item in ranked if item.kind == ROW}
    if rows:  # what was counted comes before what is listed of it
        listed = [item for item in ranked if item.kind != ROW]  # as many of each as asked for
        counts = {name: results[name].total or 0 for name in calls if name in rows}
        ranked = [together(rows, counts, arguments.get("language")), *listed]
        most = len(ranked)
    totals = [one.total for one in results.values() if one.total is not None]
    notes = [f"{name}: {note}" for name, one in results.items() for note in one.notes]
    notes += [f"{name}: {error}" for name, error in failed.items()]
    return ToolResult(
        evidence=ranked[:most],
        auth_filter={**next(iter(results.values())).auth_filter, "collections": list(calls)},
        notes=[*notes, OWN_ORDER] if arguments.get("order_by") else notes,
        stages=[
            stage.model_copy(update={"note": f"{name}: {stage.note}"})
            for name, one in results.items()
            for stage in one.stages
        ],
        hidden=sum(one.hidden for one in results.values()),
        total=sum(totals) if totals else None,
        partial=any(one.partial for one in results.values()),
        remembered=all(one.remembered for one in results.values()),
    )


def joint_ranking(found: Mapping[str, Sequence[Evidence]]) -> list[Evidence]:
    """Rank the evidence of several collections, each best first, by reciprocal rank fusion.

    Scores of words depend on a collection's own statistics, so they say nothing across collections;
    ranks do not either where one of them has nothing to say. The cosines of one embedder do: the
    joint ranking by them is the second one that is fused. Evidence without one counts as the last.
    """
    items = [
        item.model_copy(update={"collection": name, "score": 1 / (RRF_CONSTANT + rank)})
        for name, own in found.items()
        for rank, item in enumerate(own, start=1)
    ]
    if any(VECTOR in item.scores for item in items):
        near = sorted(items, key=lambda item: -item.scores.get(VECTOR, -1.0))
        items = [
            item.model_copy(update={"score": item.score + 1 / (RRF_CONSTANT + rank)})
            for rank, item in enumerate(near, start=1)
        ]
    return sorted(items, key=lambda item: -item.score)


_GENERAL: dict[BaseTool, tuple[str, list[str]]] = {
    "search": (
        "Find passages by meaning and by words together.",
        ["counting or listing records"],
    ),
    "search_vector": (
        "Find passages that mean what the question means, also in other words.",
        ["exact names, codes or numbers", "counting or listing records"],
    ),
    "search_text": (
        "Find passages that contain the words, names, codes or numbers of the question.",
        ["questions in other words than the documents use"],
    ),
    "query_records": (
        "Find records by the values of their fields, ordered by a field when asked.",
        ["prose documents", "questions that name no field value"],
    ),
}
GENERAL = tuple(
    ToolProfile(name=name, base=name, purpose=purpose, not_for=not_for)
    for name, (purpose, not_for) in _GENERAL.items()
)


class Toolbox:
    """Run calls by name for a verified caller; safe to share between threads.

    The same call of the same caller is answered once, as long as the index does not change.
    """

    def __init__(
        self,
        index: Index,
        results: Results | None = None,
        *,
        where: Sequence[Filter] = (),
        beside: Sequence[Toolbox] = (),
    ) -> None:
        """Make the profile's tools, and the general ones beside them.

        Without `results`, those of this run alone are remembered. Every call is made within the
        filters `where`, and also by the toolboxes `beside`, of other collections, for one joint
        ranking.
        """
        self._where = tuple(where)
        self._boxes = (self, *beside)
        self._index = index
        own = index.collection.profile.tools
        named = {profile.name for profile in own}
        made: list[Tool] = [
            (QueryRecords if one.base == "query_records" else Search)(
                index, one, scoped=one.name in named
            )
            for one in (*own, *(one for one in GENERAL if one.name not in named))
        ]
        made += [ReadDocument(index), SearchClassic(index), Summarise(index), SearchTree(index)]
        made += [FindCandidates(index)]
        self._tools = {tool.name: tool for tool in made}
        memory: tuple[Tool, ...] = (KeywordSearch(index), SemanticSearch(index), ReadMemory(index))
        self._memory = {tool.name: tool for tool in memory}
        self._results = results or Results(index)
        self._weights: tuple[int, dict[str, float]] = (-1, {})
        self._specs: tuple[AuthContext, int, list[ToolSpec]] | None = None

    @property
    def settings(self) -> Settings:
        """Return the settings of the collection's searches."""
        return self._index.settings

    @property
    def filters(self) -> list[str]:
        """Return the filters that every call is made within, as they were written."""
        return [str(one) for one in self._where]

    def without_filters(self) -> Toolbox:
        """Return the same tools for calls within the caller's rights alone."""
        beside = [box.without_filters() for box in self._boxes[1:]]
        return Toolbox(self._index, self._results, beside=beside)

    def specs(self, auth: AuthContext) -> list[ToolSpec]:
        """Describe all tools as this caller may see them."""
        return joined_specs([box._own_specs(auth.narrowed(self._where)) for box in self._boxes])

    def _own_specs(self, auth: AuthContext) -> list[ToolSpec]:
        known = self._specs
        try:
            version = self._index.catalogue.index_version()
        except TimeUpError:  # what is known of a moment ago will do
            version = known[1] if known else -1
        if known is None or known[:2] != (auth, version):
            specs = [tool.spec(auth) for tool in self._tools.values() if tool.is_offered]
            known = self._specs = (auth, version, specs)
        return list(known[2])

    def run(
        self,
        name: str,
        arguments: dict[str, Any],
        auth: AuthContext,
        deadline: float,
        *,
        alone: bool = False,
    ) -> ToolResult:
        """Run one call; an unknown tool is an error that lists the known ones.

        With `alone` the toolboxes beside this one are left out. The result keeps to the room of the
        current ledger. Memory is of its owner, not of a collection, and changes while it is asked.
        """
        if name in self._memory:
            with limited_time(TimeLimit(deadline)), reading_for(auth.tenant):
                result = self._memory[name].run(arguments, auth, deadline)
            return result.within(current_ledger().room)
        boxes = [box for box in self._boxes if name in box._tools]
        if not boxes:
            known = dict.fromkeys(tool for box in self._boxes for tool in box._tools)
            raise ToolError(
                "a plan may call known tools only",
                value=name,
                hint=f"tools: {', '.join(known)}",
            )
        if len(self._boxes) > 1 and not alone:
            calls = {
                box._index.collection.name: partial(
                    box.run, name, arguments, auth, deadline, alone=True
                )
                for box in boxes
            }
            return joined_results(calls, arguments).within(current_ledger().room)
        if isinstance(auth, AuthContext):  # else the tool says so
            auth = auth.narrowed(self._where)
        with (
            limited_time(TimeLimit(deadline)),
            reading_for(getattr(auth, "tenant", "")),
            self._results.call(auth, name, arguments, deadline) as call,
        ):
            if call.result is None:
                call.result = self._tools[name].run(arguments, auth, deadline)
        return call.result if alone else call.result.within(current_ledger().room)

    def filter(
        self,
        text: str,
        evidence: list[Evidence],
        auth: AuthContext,
        *,
        threshold: float,
        top_k: int,
        deadline: float,
    ) -> tuple[list[Evidence], str]:
        """Return the `top_k` best hits with a score of at least `threshold` (0..1), and a note.

        Without a cross-encoder that can be asked the first `top_k` stay as they are, and the note
        says why: nothing is dropped unread.
        """
        query = Query(text, auth, deadline=deadline)
        ranked, note = rerank(Searched(self._index, query), evidence)
        if not any(RERANK in item.scores for item in ranked):
            return evidence[:top_k], note
        kept = [item for item in ranked if item.scores.get(RERANK, 0.0) >= threshold]
        return kept[:top_k], f"{note}; {len(kept)} of {len(evidence)} reach {threshold:g}"

    def corrections(self, text: str, language: str, auth: AuthContext) -> dict[str, str]:
        """Return what misspelt words of a question should be, where no collection has them."""
        return self._near_words(text, language, auth, surely=True)

    def respellings(self, text: str, language: str, auth: AuthContext) -> dict[str, str]:
        """Return words of documents that are close to those of a question that none has."""
        return self._near_words(text, language, auth, surely=False)

    def _near_words(
        self, text: str, language: str, auth: AuthContext, *, surely: bool
    ) -> dict[str, str]:
        boxes = [(box._index, auth.narrowed(box._where)) for box in self._boxes]
        asked = [(index, Query(text, own, language=language)) for index, own in boxes]
        try:
            found = [corrections(*one, surely=surely) for one in asked]
        except TimeUpError:
            return {}
        return {word: to for word, to in found[0].items() if all(word in one for one in found)}

    def visible_words(self, words: Sequence[str], language: str, auth: AuthContext) -> list[str]:
        """Return those words that a document has which the caller may see."""
        boxes = [(box._index, auth.narrowed(box._where)) for box in self._boxes]
        asked = [(index, Query("", own, language=language)) for index, own in boxes]
        try:
            return [word for word in words if any(is_visible(*one, word) for one in asked)]
        except TimeUpError:
            return []

    def term_weights(self) -> TermWeights:
        """Return how rare terms are in these collections, for reasoners to weigh words by.

        Of several it is the mean, as none is the measure alone. Each term is looked up once, as
        long as the index does not change.
        """

        def weigh(wanted: list[str]) -> dict[str, float]:
            weighed = [box._weigh(wanted) for box in self._boxes]
            return {term: sum(one[term] for one in weighed) / len(weighed) for term in wanted}

        return weigh

    def sentence_vectors(self, chunk_ids: Sequence[str]) -> dict[str, Vectors]:
        """Return the stored vectors of the sentences of chunks, by chunk id; {} where not served.

        Shape (sentences, dimension), rows of length 1, in the order of `sentence_spans`.
        """
        try:
            return self._index.search.sentence_vectors(self._index.collection.id, chunk_ids)
        except TimeUpError as error:
            current_ledger().note(f"sentences are embedded again: {error}")
            return {}

    def vectors(self, chunk_ids: Sequence[str]) -> Vectors:
        """Return the unit vectors of chunks, shape (n, dimension), zeros where one is missing."""
        return self._index.vectors(chunk_ids)

    def scale(self, cosines: Vectors) -> Vectors:
        """Return cosines of texts as likeness: 0 for unrelated ones, 1 for the same meaning."""
        if self._index.embedder is None:
            return np.zeros_like(cosines)
        grid = np.linspace(-1.0, 1.0, 401)
        likeness = [min(1.0, self._index.embedder.similarity(float(one))) for one in grid]
        return np.asarray(np.interp(cosines, grid, likeness))

    def _weigh(self, wanted: list[str]) -> dict[str, float]:
        catalogue, collection = self._index.catalogue, self._index.collection
        try:
            version = catalogue.index_version()
            if self._weights[0] != version:
                self._weights = version, {}
            known = self._weights[1]
            missing = [term for term in wanted if term not in known]
            if missing:
                known |= catalogue.inverse_frequencies(collection.id, missing)
        except TimeUpError as error:
            current_ledger().note(f"all words weigh the same: {error}")
            return dict.fromkeys(wanted, 1.0)
        return {term: known[term] for term in wanted}
