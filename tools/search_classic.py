"""`search_classic`: the classic baseline behind the same door as every other tool."""

from __future__ import annotations

from typing import Any

from core.auth import AuthContext
from core.tool_spec import ToolSpec
from retrievers.classic import classic_search
from retrievers.types import Index, Query
from tools.arguments import checked, narrowed, schema_of
from tools.search import SearchArguments
from tools.types import ToolResult


class SearchClassic:
    """Elect one document and search inside it."""

    name = "search_classic"

    def __init__(self, index: Index) -> None:
        """Search one collection."""
        self._index = index

    def spec(self, auth: AuthContext) -> ToolSpec:
        """Describe the tool."""
        return ToolSpec(
            name=self.name,
            base=self.name,
            purpose="Find the one document with most hits and return its best passages.",
            not_for=["questions that need several documents"],
            arguments=schema_of(SearchArguments),
        )

    def run(self, arguments: dict[str, Any], auth: AuthContext, deadline: float) -> ToolResult:
        """Return the best permitted chunks of the elected document."""
        given = checked(self.name, SearchArguments, arguments, auth, deadline)
        auth = narrowed(self._index, auth, given.where)
        settings = self._index.settings
        query = Query(given.query, auth, language=given.language, deadline=deadline)
        found = classic_search(
            self._index, query, settings.classic_k, given.limit or settings.top_k
        )
        return ToolResult(
            evidence=[item.model_copy(update={"tool": self.name}) for item in found.evidence],
            auth_filter=auth.describe(),
            notes=found.notes,
            stages=found.stages,
            hidden=found.hidden,
            partial=found.partial,
        )
