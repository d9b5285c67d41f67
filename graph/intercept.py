"""Stand between a run and what it asks: its tools, its reasoner, and what depends on the index.

A record keeps what was said, a replay says it again, and an experiment says something else.
"""

from __future__ import annotations

from collections.abc import Callable
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

    @property
    def settings(self) -> Settings:
        """Return the settings of the collection's searches."""
        return self._inner.settings

    def specs(self, auth: AuthContext) -> list[ToolSpec]:
        """Describe all tools as this caller may see them."""
        return cast(list[ToolSpec], self._intercept("specs", (), lambda: self._inner.specs(auth)))

    def run(
        self,
        name: str,
        arguments: dict[str, Any],
        auth: AuthContext,
        deadline: float,
        *,
        alone: bool = False,
    ) -> ToolResult:
        """Run one call."""
        return cast(
            ToolResult,
            self._intercept(
                "run",
                (name, arguments),
                lambda: self._inner.run(name, arguments, auth, deadline, alone=alone),
            ),
        )

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
        """Return the best hits, and a note."""
        limits: dict[str, Any] = {"threshold": threshold, "top_k": top_k, "deadline": deadline}
        return cast(
            tuple[list[Evidence], str],
            self._intercept(
                "filter",
                (text, evidence, threshold, top_k),
                lambda: self._inner.filter(text, evidence, auth, **limits),
            ),
        )

    def corrections(self, text: str, language: str, auth: AuthContext) -> dict[str, str]:
        """Return what misspelt words of a question should be."""
        return cast(
            dict[str, str],
            self._intercept(
                "corrections",
                (text, language),
                lambda: self._inner.corrections(text, language, auth),
            ),
        )

    def term_weights(self) -> TermWeights:
        """Return how rare terms are in these collections."""

        def weigh(wanted: list[str]) -> dict[str, float]:
            return cast(
                dict[str, float],
                self._intercept(
                    "term_weights", (wanted,), lambda: self._inner.term_weights()(wanted)
                ),
            )

        return weigh

    def sentence_vectors(self, chunk_ids: Any) -> dict[str, Vectors]:  # noqa: ANN401
        """Return the stored vectors of the sentences of chunks."""
        return self._inner.sentence_vectors(chunk_ids)
