"""What plain tools share: one collection, one description, and how their results are made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import BaseModel

from core.auth import AuthContext
from core.types import Evidence, ToolSpec
from retrievers.types import Index, RetrievalResult
from tools.arguments import schema_of
from tools.types import ToolResult


class PlainTool:
    """Describe a tool over one collection that is the same for every caller."""

    name: ClassVar[str]
    purpose: ClassVar[str]
    not_for: ClassVar[list[str]]
    arguments: ClassVar[type[BaseModel]]

    def __init__(self, index: Index) -> None:
        """Work on one collection."""
        self._index = index

    def spec(self, auth: AuthContext) -> ToolSpec:
        """Describe the tool."""
        return ToolSpec(
            name=self.name,
            base=self.name,
            purpose=self.purpose,
            not_for=self.not_for,
            arguments=schema_of(self.arguments),
        )


def result_of(found: RetrievalResult, tool: str, auth_filter: dict[str, Any]) -> ToolResult:
    """Return what a search found as a tool's result."""
    return ToolResult(
        evidence=[item.model_copy(update={"tool": tool}) for item in found.evidence],
        auth_filter=auth_filter,
        notes=found.notes,
        stages=found.stages,
        hidden=found.hidden,
        partial=found.partial,
    )


def in_place(evidence: Sequence[Evidence], tool: str, query: str) -> list[Evidence]:
    """Return evidence of a tool, scored 1, 1/2, 1/3 … by its place."""
    return [
        item.model_copy(update={"tool": tool, "query": query, "score": 1.0 / (1 + place)})
        for place, item in enumerate(evidence)
    ]
