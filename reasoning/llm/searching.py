"""Check a search that the model proposes and compile it to calls."""

from __future__ import annotations

from collections.abc import Sequence

from core.types import Call, ToolSpec
from models.embeddings import Embedder
from reasoning.drift import similarity
from reasoning.llm.deciding import Decider
from reasoning.llm.replies import Unfit
from reasoning.llm.schemas import Schema, items, one_of, text
from reasoning.rules.plan import RECORDS, calls_for, general_tools

SEARCHES = frozenset({"search", "search_vector", "search_text", RECORDS})
MOST_TOOLS = 3


def searches(tools: Sequence[ToolSpec], *, everywhere: bool = False) -> list[ToolSpec]:
    """Return the tools that take a search text: the scoped ones alone, else the general ones.

    `everywhere` gives all of them: a channel alone is worth asking where both together failed.
    """
    found = [spec for spec in tools if spec.base in SEARCHES]
    if everywhere:
        return found
    return [spec for spec in found if spec.scoped] or general_tools(found) or found


def search_fields(offered: Sequence[ToolSpec]) -> dict[str, Schema]:
    """Return the schemas of the fields that name tools and a search text."""
    names = one_of([spec.name for spec in offered])
    return {"tools": items(names, 1, MOST_TOOLS), "query": text()}


def folded(query: str) -> str:
    """Return a text in which only words count."""
    return " ".join(query.casefold().split())


class ProposedSearch:
    """Compile proposed searches of one language to calls of the offered tools."""

    def __init__(
        self,
        language: str,
        offered: Sequence[ToolSpec],
        decider: Decider,
        embedder: Embedder | None,
    ) -> None:
        self._language = language
        self._offered = {spec.name: spec for spec in offered}
        self._settings = decider.settings
        self._embedder = embedder

    def compiled(
        self, query: str, tools: Sequence[str], original: str
    ) -> tuple[str, list[Call], float]:
        """Return the search text, its calls and its similarity to the original; raises Unfit."""
        query, specs, kept = self.checked(query, tools, original)
        calls = []
        for spec in specs:
            # Conditions on records are found in the question's own words, not in key words.
            named = original if spec.base == RECORDS else query
            calls += calls_for(named, self._language, [spec])
        if not calls:
            raise Unfit(f"the question names no field value for {specs[0].name}; take another tool")
        return query, calls, kept

    def similarity(self, original: str, query: str) -> float:
        """Return how much of the original a search text asks for, 0..1."""
        return similarity(original, query, self._language, self._embedder)

    def checked(
        self, query: str, tools: Sequence[str], original: str
    ) -> tuple[str, list[ToolSpec], float]:
        """Return the search text, its tools and its similarity to the original; raises Unfit."""
        query = " ".join(query.split())
        if not query or len(query) > self._settings.answering.max_question_chars:
            raise Unfit("query must hold a few words to search for")
        names = list(dict.fromkeys(tools))
        unknown = [name for name in names if name not in self._offered]
        if unknown:
            raise Unfit(f"no tool is called {unknown[0]}; tools: {', '.join(self._offered)}")
        if not 1 <= len(names) <= MOST_TOOLS:
            raise Unfit(f"tools must name 1 to {MOST_TOOLS} tools")
        kept = self.similarity(original, query)
        if kept < self._settings.answering.drift_similarity:
            raise Unfit(f"the query '{query}' drifts from '{original}' (similarity {kept:.2f})")
        return query, [self._offered[name] for name in names], kept
