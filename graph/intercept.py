"""Stand between a run and what it asks: its tools, its reasoner, and what depends on the index.

A record keeps what was said, a replay says it again, and an experiment says something else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

from core.auth import AuthContext
from core.settings import Settings
from core.types import Evidence, TermWeights, ToolSpec
from graph.context import Context, Intercept
from models.vectors import Vectors
from reasoning.types import Reasoner
from tools.toolbox import Toolbox
from tools.types import ToolResult


def intercepted(context: Context, intercept: Intercept) -> Context:
    """Return the context whose reasoner and tools are asked through `intercept`."""
    return replace(
        context,
        tools=InterceptedTools(context.tools, intercept),
        reasoner=cast(Reasoner, InterceptedReasoner(context.reasoner, intercept)),
        intercept=intercept,
        bare=context.apart,
    )


class InterceptedReasoner:
    """Ask a reasoner through an intercept, whatever verbs it has."""

    def __init__(self, inner: Reasoner, intercept: Intercept) -> None:
        self._inner = inner
        self._intercept = intercept

    @property
    def name(self) -> str:
        """Return the name of the reasoner within."""
        return self._inner.name

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        def ask(*arguments: Any) -> Any:  # noqa: ANN401
            return self._intercept(verb, arguments, lambda: getattr(self._inner, verb)(*arguments))

        return ask


class InterceptedTools(Toolbox):
    """Ask tools through an intercept; who may see what is decided by the tools within."""

    def __init__(self, inner: Toolbox, intercept: Intercept) -> None:
        self._inner = inner
        self._intercept = intercept

    def _ask(self, name: str, arguments: tuple[Any, ...], *given: Any, **more: Any) -> Any:  # noqa: ANN401
        return self._intercept(name, arguments, lambda: getattr(self._inner, name)(*given, **more))

    @property
    def settings(self) -> Settings:
        """Return the settings of the collection's searches."""
        return self._inner.settings

    @property
    def filters(self) -> list[str]:
        """Return the filters that every call is made within."""
        return cast(list[str], self._intercept("filters", (), lambda: self._inner.filters))

    def specs(self, auth: AuthContext) -> list[ToolSpec]:
        """Describe all tools as this caller may see them."""
        found: list[ToolSpec] = self._ask("specs", (), auth)
        return found

    def run(
        self, name: str, arguments: dict[str, Any], auth: AuthContext, deadline: float, **more: bool
    ) -> ToolResult:
        """Run one call."""
        given = name, arguments, auth, deadline
        found: ToolResult = self._ask("run", (name, arguments), *given, **more)
        return found

    def filter(
        self,
        text: str,
        evidence: list[Evidence],
        auth: AuthContext,
        **limits: Any,  # noqa: ANN401
    ) -> tuple[list[Evidence], str]:
        """Return the best hits, and a note."""
        asked = text, evidence, limits["threshold"], limits["top_k"]
        found: tuple[list[Evidence], str] = self._ask(
            "filter", asked, text, evidence, auth, **limits
        )
        return found

    def corrections(self, text: str, language: str, auth: AuthContext) -> dict[str, str]:
        """Return what misspelt words of a question should be."""
        found: dict[str, str] = self._ask("corrections", (text, language), text, language, auth)
        return found

    def respellings(self, text: str, language: str, auth: AuthContext) -> dict[str, str]:
        """Return words of documents that are close to those of a question that none has."""
        found: dict[str, str] = self._ask("respellings", (text, language), text, language, auth)
        return found

    def visible_words(self, words: Sequence[str], language: str, auth: AuthContext) -> list[str]:
        """Return those words that a document has which the caller may see."""
        given = list(words)
        found: list[str] = self._ask("visible_words", (given, language), given, language, auth)
        return found

    def term_weights(self) -> TermWeights:
        """Return how rare terms are in these collections."""
        return lambda wanted: self._intercept(
            "term_weights", (wanted,), lambda: self._inner.term_weights()(wanted)
        )

    def sentence_vectors(self, chunk_ids: Sequence[str]) -> dict[str, Vectors]:
        """Return the stored vectors of the sentences of chunks."""
        return self._inner.sentence_vectors(chunk_ids)
