"""`search_tree`: the tree and the passages together, for overviews."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from core.auth import AuthContext
from core.profile import ToolProfile
from core.time_limit import TimeUpError
from core.types import Evidence, ToolSpec
from retrievers.channels import serves
from retrievers.expansion import reciprocal_ranks
from retrievers.stages import trace_stage
from retrievers.tree.search import TREE, TreeQuery, TreeSearch
from retrievers.tree.view import open_view
from retrievers.types import Index, Query
from tools.search import Search, SearchArguments
from tools.types import ToolResult, schema_of

NAME = "search_tree"
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
        profile = ToolProfile(name=NAME, base="search", purpose=self.purpose, not_for=self.not_for)
        super().__init__(index, profile, scoped=False)

    def spec(self, auth: AuthContext) -> ToolSpec:
        """Describe the tool under a base of its own: it is chosen by another rule than `search`."""
        return self._spec.model_copy(update={"base": NAME, "arguments": schema_of(self.arguments)})

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
