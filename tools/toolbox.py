"""All tools of one collection, as its profile names and scopes them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from core.auth import AuthContext
from core.budget import current_ledger
from core.metadata import Filter
from core.profile import ToolProfile
from core.settings import Settings
from core.time_limit import TimeLimit, TimeUpError, limited_time
from core.types import Evidence, TermWeights, ToolSpec
from models.vectors import Vectors
from retrievers.fusion import RRF_CONSTANT
from retrievers.rerank import RERANK, rerank
from retrievers.spelling import corrections
from retrievers.types import Index, Query, Searched
from tools.joining import joined_results, joined_specs
from tools.query_records import QueryRecords
from tools.read_document import ReadDocument
from tools.results import Results
from tools.search import Search, SearchClassic
from tools.summarise import Summarise
from tools.types import Tool, ToolError, ToolResult

GENERAL = (
    ToolProfile(
        name="search",
        base="search",
        purpose="Find passages by meaning and by words together.",
        not_for=["counting or listing records"],
    ),
    ToolProfile(
        name="search_vector",
        base="search_vector",
        purpose="Find passages that mean what the question means, also in other words.",
        not_for=["exact names, codes or numbers", "counting or listing records"],
    ),
    ToolProfile(
        name="search_text",
        base="search_text",
        purpose="Find passages that contain the words, names, codes or numbers of the question.",
        not_for=["questions in other words than the documents use"],
    ),
    ToolProfile(
        name="query_records",
        base="query_records",
        purpose="Find records by the values of their fields, ordered by a field when asked.",
        not_for=["prose documents", "questions that name no field value"],
    ),
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
        profiles = [*index.collection.profile.tools]
        named = {profile.name for profile in profiles}
        scoped = {profile.name for profile in profiles}
        profiles += [profile for profile in GENERAL if profile.name not in named]
        made: list[Tool] = [_make(index, p, scoped=p.name in scoped) for p in profiles]
        made += [ReadDocument(index), SearchClassic(index), Summarise(index)]
        self._tools = {tool.name: tool for tool in made}
        self._results = results or Results(index)
        self._weights: tuple[int, dict[str, float]] = (-1, {})
        self._specs: tuple[AuthContext, int, list[ToolSpec]] | None = None

    @property
    def settings(self) -> Settings:
        """Return the settings of the collection's searches."""
        return self._index.settings

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
            specs = [tool.spec(auth) for tool in self._tools.values()]
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

        With `alone` the toolboxes beside this one are left out.
        """
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
            return joined_results(calls, arguments, RRF_CONSTANT)
        if isinstance(auth, AuthContext):  # else the tool says so
            auth = auth.narrowed(self._where)
        with (
            limited_time(TimeLimit(deadline)),
            self._results.call(auth, name, arguments, deadline) as call,
        ):
            if call.result is None:
                call.result = self._tools[name].run(arguments, auth, deadline)
            return call.result

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
        boxes = [(box._index, auth.narrowed(box._where)) for box in self._boxes]
        try:
            found = [corrections(one, Query(text, own, language=language)) for one, own in boxes]
        except TimeUpError:
            return {}
        return {word: to for word, to in found[0].items() if all(word in one for one in found)}

    def term_weights(self) -> TermWeights:
        """Return how rare terms are in this collection, for reasoners to weigh words by.

        Each term is looked up once, as long as the index does not change.
        """
        return self._weigh if len(self._boxes) == 1 else self._weigh_all

    def _weigh_all(self, wanted: list[str]) -> dict[str, float]:
        """Weigh words by their mean over the collections, none of which is the measure alone."""
        weighed = [box._weigh(wanted) for box in self._boxes]
        return {term: sum(one[term] for one in weighed) / len(weighed) for term in wanted}

    def sentence_vectors(self, chunk_ids: Sequence[str]) -> dict[str, Vectors]:
        """Return the stored vectors of the sentences of chunks, by chunk id; {} where not served.

        Shape (sentences, dimension), rows of length 1, in the order of `sentence_spans`.
        """
        try:
            return self._index.search.sentence_vectors(self._index.collection.id, chunk_ids)
        except TimeUpError as error:
            current_ledger().note(f"sentences are embedded again: {error}")
            return {}

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


def _make(index: Index, profile: ToolProfile, *, scoped: bool) -> Tool:
    if profile.base == "query_records":
        return QueryRecords(
            index,
            profile.name,
            profile.purpose,
            not_for=profile.not_for,
            examples=profile.examples,
            sources=profile.sources,
            scoped=scoped,
        )
    return Search(
        index,
        profile.name,
        profile.base,
        profile.purpose,
        not_for=profile.not_for,
        examples=profile.examples,
        sources=profile.sources,
        kinds=profile.kinds,
        scoped=scoped,
    )
