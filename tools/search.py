"""Search tools: `search`, its channels alone as `search_vector` and `search_text`, the baseline.

`search` fuses both channels over a deep pool, weighs a weak channel down and follows links. A
channel alone returns the first of its own hits, for a caller that knows which one it wants.
Beside them: reading around a hit, all documents that fit a need, and the tree for overviews.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Literal

from pydantic import Field

from core.auth import AuthContext
from core.budget import TimeUpError
from core.metadata import MOST_FILTERS
from core.metadata import MOST_FILTERS as MOST
from core.profile import ToolProfile
from core.types import Evidence, FrozenModel, ToolSpec
from retrievers.expansion import fuse_wordings, reciprocal_ranks
from retrievers.fusion import TEXT, VECTOR, serves
from retrievers.hybrid import hybrid_search
from retrievers.pipelines import CLASSIC_VOTERS, classic_search
from retrievers.stages import trace_stage
from retrievers.tree.search import TREE, TreeQuery, TreeSearch
from retrievers.tree.view import open_view
from retrievers.types import Index, Query, RetrievalResult
from tools.types import ProfiledTool, Tool, ToolResult, schema_of


class SearchArguments(FrozenModel):
    """Say what to look for; `limit` asks for more results, `extended` for wider pools.

    What `also` says in other words is searched for too, and fused by reciprocal ranks.
    `links` overrides the setting `agent_links`; a channel alone follows none. `where` narrows the
    search to documents that meet all its filters, such as "author=Smith" and "date>=2020".
    """

    query: str = Field(min_length=1, max_length=8000)
    also: list[str] = Field(default_factory=list, max_length=3)
    limit: int | None = Field(None, ge=1, le=100)
    extended: bool = False
    links: bool | None = None
    language: str | None = Field(None, max_length=8)
    where: list[str] = Field(default_factory=list, max_length=MOST)


class Search(ProfiledTool):
    """Search chunks by meaning, by words, or by both."""

    arguments: ClassVar[type[SearchArguments]] = SearchArguments

    def __init__(self, index: Index, profile: ToolProfile, *, scoped: bool) -> None:
        """Search the profile's `kinds` of chunks, empty for all, with the channels of its base."""
        super().__init__(index, profile, scoped=scoped)
        self._channels = {"search_vector": [VECTOR], "search_text": [TEXT]}.get(
            profile.base, [VECTOR, TEXT]
        )
        self._kinds = tuple(profile.kinds)

    def run(self, arguments: dict[str, Any], auth: AuthContext, deadline: float) -> ToolResult:
        """Return the best permitted chunks of the tool's scope."""
        given = self._checked(SearchArguments, arguments, auth, deadline)
        auth = self._narrowed(auth, given.where)
        query = Query(given.query, auth, self._sources, given.language, deadline, self._kinds)
        top_k, pools = self._sizes(given)
        links = self._index.settings.links.agent if given.links is None else given.links
        found: dict[str, RetrievalResult] = {}
        index, balance = _balanced(self._index) if given.extended else (self._index, "")
        for text in dict.fromkeys([given.query, *given.also]):
            one = replace(query, text=text)
            found[text] = hybrid_search(index, one, self._channels, pools, top_k, links=links)
        fused = fuse_wordings(found)
        fused.notes += [balance] if balance and len(self._channels) > 1 else []
        kinds = {"kinds": list(self._kinds)} if self._kinds else {}
        return self._result(fused, self._scope(auth) | kinds)

    def _sizes(self, given: SearchArguments) -> tuple[int, dict[str, int]]:
        """Return how many results there are at most, and the pool of each channel."""
        sizes = self._index.settings.retrieval
        pools = {
            VECTOR: sizes.vector_k_extended if given.extended else sizes.vector_k,
            TEXT: sizes.text_k_extended if given.extended else sizes.text_k,
        }
        if given.limit is not None:
            pools = {name: max(pool, given.limit) for name, pool in pools.items()}
        top_k = given.limit or sizes.top_k
        if given.extended:
            top_k = max(top_k, *pools.values())
        if len(self._channels) > 1:  # what one channel ranks low, the other may lift
            pools = dict.fromkeys(pools, max(top_k, sizes.pool))
        return top_k, pools


def _balanced(index: Index) -> tuple[Index, str]:
    """Return the index with the channels weighed as a second search has them, and a note."""
    settings = index.settings
    moved = settings.selection.amounts["retry"]
    weight = round(min(1.0, max(0.0, settings.retrieval.weight_vector - moved)), 2)
    if not moved:
        return index, ""
    changed = settings.model_copy(update={"retrieval.weight_vector": weight})
    return replace(index, settings=changed), f"searched again with vectors at {weight}"


class SearchClassic(Tool):
    """Elect one document and search inside it."""

    name = "search_classic"
    purpose = "Find the one document with most hits and return its best passages."
    not_for: ClassVar = ["questions that need several documents"]
    arguments = SearchArguments

    def run(self, arguments: dict[str, Any], auth: AuthContext, deadline: float) -> ToolResult:
        """Return the best permitted chunks of the elected document."""
        given = self._checked(SearchArguments, arguments, auth, deadline)
        auth = self._narrowed(auth, given.where)
        settings = self._index.settings
        query = Query(given.query, auth, language=given.language, deadline=deadline)
        found = classic_search(
            self._index, query, CLASSIC_VOTERS, given.limit or settings.retrieval.top_k
        )
        return self._result(found, auth.describe())


MAX_TEXTS = 10  # volumes of one book


class ReadArguments(FrozenModel):
    """Name the chunk and how many chunks on either side to read.

    With `full_text`, the chunk is one of a book's record, and its full texts are read from their
    beginning.
    """

    chunk_id: str = Field(min_length=1, max_length=64)
    reach: int = Field(1, ge=0, le=5)
    full_text: bool = False


class ReadDocument(Tool):
    """Read around a chunk."""

    name = "read_document"
    purpose = "Read the chunks next to one that was found, in reading order."
    not_for: ClassVar = ["finding documents: it needs the id of a chunk that was found"]
    arguments = ReadArguments

    def run(self, arguments: dict[str, Any], auth: AuthContext, deadline: float) -> ToolResult:
        """Return the chunk and its neighbours; a chunk the caller may not see gives nothing."""
        given = self._checked(ReadArguments, arguments, auth, deadline)
        catalogue, collection = self._index.catalogue, self._index.collection.id
        begun = [given.chunk_id]
        if given.full_text:
            texts = catalogue.full_texts(auth, collection, given.chunk_id)
            begun = [text.chunk_id for text in texts[:MAX_TEXTS]]
        evidence = [item for chunk_id in begun for item in self._around(auth, chunk_id, given)]
        return ToolResult(evidence=evidence, auth_filter=auth.describe())

    def _around(self, auth: AuthContext, chunk_id: str, given: ReadArguments) -> list[Evidence]:
        """Return a chunk and those next to it, the nearest with the best score."""
        chunks = self._index.catalogue.neighbours(
            auth, self._index.collection.id, chunk_id, given.reach
        )
        centre = next((c.ordinal for c in chunks if c.chunk_id == chunk_id), 0)
        return [
            chunk.model_copy(
                update={
                    "tool": self.name,
                    "query": given.chunk_id,
                    "score": 1.0 / (1 + abs(chunk.ordinal - centre)),
                }
            )
            for chunk in chunks
        ]


FIND_CANDIDATES = "find_candidates"
MOST_CANDIDATES = 200  # documents at most; chosen, not measured


class CandidateArguments(FrozenModel):
    """Say what is needed; `where` are filters that each document meets, such as "stars>=1000"."""

    query: str = Field(min_length=1, max_length=8000)
    where: list[str] = Field(default_factory=list, max_length=MOST_FILTERS)
    language: str | None = Field(None, max_length=8)
    limit: int = Field(MOST_CANDIDATES, ge=1, le=MOST_CANDIDATES)


class FindCandidates(Tool):
    """Rank documents by their best passage; no stage cuts the ranking to an answer."""

    name = FIND_CANDIDATES
    purpose = "Find the documents that fit a need."
    not_for: ClassVar = ["questions with an answer"]
    arguments = CandidateArguments

    @property
    def is_offered(self) -> bool:
        """Tell that no planner is offered it: it makes lists, and answers nothing."""
        return False

    def run(self, arguments: dict[str, Any], auth: AuthContext, deadline: float) -> ToolResult:
        """Return the best passage of each document, best first, each followed by its card."""
        given = self._checked(CandidateArguments, arguments, auth, deadline)
        auth = self._narrowed(auth, given.where)
        pools = {VECTOR: given.limit, TEXT: given.limit}
        query = Query(given.query, auth, language=given.language, deadline=deadline)
        found = hybrid_search(
            self._index, query, [VECTOR, TEXT], pools, given.limit, choose=False, links=False
        )
        best: dict[str, Evidence] = {}
        for item in found.evidence:
            known = best.setdefault(item.document_key, item)
            if known.kind == "record" and item.kind != "record":  # which says more to a reader
                best[item.document_key] = item.model_copy(
                    update={"score": known.score, "scores": known.scores}
                )
        if not best and given.where:  # in words that no document here has
            best = self._filtered(auth, given.limit)
        cards = self._index.catalogue.cards(auth, self._index.collection.id, [*best])
        own = {card.document_key: card for card in cards}
        found.evidence = []
        for key, passage in best.items():
            card = own.get(key, passage)
            found.evidence += [passage] if card.chunk_id == passage.chunk_id else [passage, card]
        return self._result(found, auth.describe())

    def _filtered(self, auth: AuthContext, limit: int) -> dict[str, Evidence]:
        """Return the first passage of each document that meets the filters, unranked."""
        catalogue, collection = self._index.catalogue, self._index.collection.id
        first = [one.first for one in catalogue.document_names(auth, collection)[:limit]]
        found = catalogue.evidence(auth, collection, first)
        return {found[key].document_key: found[key] for key in first if key in found}


BY_TREE = "search_tree"
NO_TREE = "no tree is built of what the caller may read; hybrid search alone"


class SearchTreeArguments(SearchArguments):
    """Say what to look for, and how the tree is gone through.

    `traversal` follows the `nearest` nodes of each layer from `start_layer` below the root, `depth`
    layers down, none farther than `threshold`; `collapsed` takes the nearest of all nodes that fit
    into `tokens`. With `words` questions and keywords of nodes are compared as well as meaning.
    """

    mode: Literal["traversal", "collapsed"] = TreeQuery.mode
    words: bool = TreeQuery.words
    nearest: int = Field(TreeQuery.nearest, ge=1, le=100)
    depth: int = Field(TreeQuery.depth, ge=1, le=100)
    threshold: float = Field(TreeQuery.threshold, ge=0, le=1)
    start_layer: int = Field(TreeQuery.start_layer, ge=0, le=100)
    tokens: int = Field(TreeQuery.tokens, ge=1, le=100_000)


class SearchTree(Search):
    """Search the tree beside the passages; both rankings are fused by reciprocal ranks."""

    purpose = "Find passages on a broad theme through the tree over the documents."
    not_for: ClassVar = ["exact names, codes or numbers", "counting or listing records"]
    arguments: ClassVar[type[SearchArguments]] = SearchTreeArguments

    def __init__(self, index: Index) -> None:
        profile = ToolProfile(
            name=BY_TREE, base="search", purpose=self.purpose, not_for=self.not_for
        )
        super().__init__(index, profile, scoped=False)

    def spec(self, auth: AuthContext) -> ToolSpec:
        """Describe the tool under a base of its own: it is chosen by another rule than `search`."""
        return self._spec.model_copy(
            update={"base": BY_TREE, "arguments": schema_of(self.arguments)}
        )

    @property
    def is_offered(self) -> bool:
        """Tell whether the collection has a tree."""
        try:
            return bool(self._index.trees.recipes(self._index.collection.id))
        except TimeUpError:  # a run that is over its time searches nothing more
            return False

    def run(self, arguments: dict[str, Any], auth: AuthContext, deadline: float) -> ToolResult:
        """Return the passages that both rankings have best; without a tree those of hybrid."""
        given = self._checked(SearchTreeArguments, arguments, auth, deadline)
        plain = given.model_dump(include=set(SearchArguments.model_fields))
        found = super().run(plain, auth, deadline)
        with trace_stage(found.stages, TREE, len(found.evidence)) as step:
            near = self._near(given, self._narrowed(auth, given.where))
            step["note"] = NO_TREE if near is None else f"{len(near)} passages of the tree"
            if near:
                found.evidence = reciprocal_ranks([found.evidence, near])[: self._sizes(given)[0]]
            step["after"] = len(found.evidence)
        return found

    def _near(self, given: SearchTreeArguments, auth: AuthContext) -> list[Evidence] | None:
        """Return the passages that the tree leads to, best first, None where there is no tree."""
        index = self._index
        query = Query(given.query, auth, language=given.language)
        view = open_view(index, auth) if serves(index, query) else None
        if view is None or index.embedder is None:
            return None
        how = given.model_dump(exclude=set(SearchArguments.model_fields))
        vector = index.embedder.embed_query(given.query)
        asked = TreeQuery(given.query, vector, given.language, **how)
        found: dict[str, Evidence] = {}
        for hit in sorted(TreeSearch(view, asked).hits(), key=lambda one: -one.score):
            scores = {TREE: round(hit.score, 6)}
            update = {"tool": self.name, "query": given.query, "scores": scores}
            found.setdefault(hit.item.chunk_id, hit.item.model_copy(update=update))
        return list(found.values())
