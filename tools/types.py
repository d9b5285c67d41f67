"""The Tool protocol, its result and its failures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from core.auth import AuthContext
from core.errors import CallerError
from core.types import ToolSpec
from retrievers.types import RetrievalResult


class ToolError(CallerError):
    """Report a call that names no tool, breaks its argument schema or comes too late."""


@dataclass
class ToolResult(RetrievalResult):
    """Hold what one call returned, and what was enforced.

    `auth_filter` is the caller's filter as the trace records it; `total` is how many rows a record
    query matched; `remembered` says that no search was made.
    """

    auth_filter: dict[str, Any] = field(default_factory=dict)
    total: int | None = None
    remembered: bool = False


class Tool(Protocol):
    """Fetch evidence for a verified caller."""

    @property
    def name(self) -> str:
        """Return the name a plan calls it by."""

    def spec(self, auth: AuthContext) -> ToolSpec:
        """Describe the tool as this caller may see it."""

    def run(self, arguments: dict[str, Any], auth: AuthContext, deadline: float) -> ToolResult:
        """Validate the arguments and return permitted evidence, best first.

        `deadline` is a time of `time.monotonic()`; a call that starts after it is refused.
        """
