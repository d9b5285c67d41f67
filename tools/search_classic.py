"""`search_classic`: the classic baseline behind the same door as every other tool."""

from __future__ import annotations

from typing import Any, ClassVar

from core.auth import AuthContext
from retrievers.classic import CLASSIC_VOTERS, classic_search
from retrievers.types import Query
from tools.arguments import checked, narrowed
from tools.plain import PlainTool, result_of
from tools.search import SearchArguments
from tools.types import ToolResult


class SearchClassic(PlainTool):
    """Elect one document and search inside it."""

    name = "search_classic"
    purpose = "Find the one document with most hits and return its best passages."
    not_for: ClassVar = ["questions that need several documents"]
    arguments = SearchArguments

    def run(self, arguments: dict[str, Any], auth: AuthContext, deadline: float) -> ToolResult:
        """Return the best permitted chunks of the elected document."""
        given = checked(self.name, SearchArguments, arguments, auth, deadline)
        auth = narrowed(self._index, auth, given.where)
        settings = self._index.settings
        query = Query(given.query, auth, language=given.language, deadline=deadline)
        found = classic_search(
            self._index, query, CLASSIC_VOTERS, given.limit or settings.retrieval.top_k
        )
        return result_of(found, self.name, auth.describe())
