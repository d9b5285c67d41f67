"""The Tool protocol, its result and its failures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from core.auth import AuthContext
from core.errors import CallerError
from core.trace import StageStep
from core.types import Evidence, ToolSpec


class ToolError(CallerError):
    """Report a call that names no tool, breaks its argument schema or comes too late."""


@dataclass
class ToolResult:
    """Hold what one call returned, and what was enforced.

    `notes` say how the search was done, `stages` what each of its stages did. `auth_filter` is the
    caller's filter as the trace records it; `hidden` counts rows that an index returned and the
    catalogue did not permit; `total` is how many rows a record query matched.
    `partial` says that a model failed or time ran out, `remembered` that no search was made.
    """

    evidence: list[Evidence] = field(default_factory=list)
    auth_filter: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    stages: list[StageStep] = field(default_factory=list)
    hidden: int = 0
    total: int | None = None
    partial: bool = False
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
