"""What a tool is, checks and returns."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ValidationError

from core.auth import AuthContext
from core.budget import Room
from core.errors import CallerError, PolicyError
from core.metadata import parse_filters
from core.profile import ToolProfile
from core.types import Evidence, ToolSpec
from retrievers.types import Index, RetrievalResult


class ToolError(CallerError):
    """Report a call that names no tool, breaks its argument schema or comes too late."""


@dataclass
class ToolResult(RetrievalResult):
    """Hold what one call returned, and what was enforced.

    `auth_filter` is the caller's filter as the trace records it; `total` is how many rows a record
    query matched; `remembered` says that no search was made; `dropped` counts passages that found
    no room in the run's tokens.
    """

    auth_filter: dict[str, Any] = field(default_factory=dict)
    total: int | None = None
    remembered: bool = False
    dropped: int = 0

    def within(self, room: Room | None) -> ToolResult:
        """Return the result with the passages for which a run has room."""
        kept = self.evidence if room is None else room.fitting(self.evidence)
        dropped = len(self.evidence) - len(kept)
        if not dropped:
            return self
        note = f"passages left out, as the run's tokens are used up: {dropped}"
        return replace(self, evidence=kept, dropped=dropped, notes=[*self.notes, note])


Arguments = TypeVar("Arguments", bound=BaseModel)


@cache
def schema_of(arguments: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments; made once, since every run asks for it."""
    return arguments.model_json_schema()


class Tool:
    """Fetch evidence of one collection for a verified caller."""

    name: str
    purpose: ClassVar[str]
    not_for: ClassVar[list[str]]
    arguments: ClassVar[type[BaseModel]]

    def __init__(self, index: Index) -> None:
        self._index = index

    def spec(self, auth: AuthContext) -> ToolSpec:
        """Describe the tool as this caller may see it."""
        return ToolSpec(
            name=self.name,
            base=self.name,
            purpose=self.purpose,
            not_for=self.not_for,
            arguments=schema_of(self.arguments),
        )

    @property
    def is_offered(self) -> bool:
        """Tell whether there is anything here that the tool can search."""
        return True

    def run(self, arguments: dict[str, Any], auth: AuthContext, deadline: float) -> ToolResult:
        """Validate the arguments and return permitted evidence, best first.

        `deadline` is a time of `time.monotonic()`; a call that starts after it is refused.
        """
        raise NotImplementedError

    def _checked(
        self,
        schema: type[Arguments],
        arguments: dict[str, Any],
        auth: AuthContext | None,
        deadline: float,
    ) -> Arguments:
        """Return the validated arguments, or refuse: no rights, too late, wrong arguments."""
        if not isinstance(auth, AuthContext):
            raise PolicyError("a tool runs for a verified caller only", value=self.name)
        if time.monotonic() > deadline:
            raise ToolError("the time of this run is used up", value=self.name)
        try:
            return schema.model_validate(arguments)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"]) or "arguments"
            rule = f"tool {self.name}: {place}: {first['msg']}"
            raise ToolError(rule, value=first.get("input")) from None

    def _narrowed(self, auth: AuthContext, where: Sequence[str]) -> AuthContext:
        """Return the caller within the filters of one call; raises ToolError for what is wrong."""
        try:
            filters = parse_filters(where)
            self._index.catalogue.check_fields(auth, [self._index.collection], filters)
        except CallerError as error:
            raise ToolError(error.rule, value=error.value, hint=error.hint) from None
        return auth.narrowed(filters)

    def _result(self, found: RetrievalResult, auth_filter: dict[str, Any]) -> ToolResult:
        evidence = [item.model_copy(update={"tool": self.name}) for item in found.evidence]
        return ToolResult(**vars(found) | {"evidence": evidence}, auth_filter=auth_filter)

    def _in_place(self, evidence: Sequence[Evidence], query: str) -> list[Evidence]:
        """Return evidence of the tool, scored 1, 1/2, 1/3 … by its place."""
        return [
            item.model_copy(update={"tool": self.name, "query": query, "score": 1.0 / (1 + place)})
            for place, item in enumerate(evidence)
        ]


class ProfiledTool(Tool):
    """Describe a tool as a profile names and scopes it."""

    def __init__(self, index: Index, profile: ToolProfile, *, scoped: bool) -> None:
        """Work on the `sources` of the profile (shell patterns, empty for all)."""
        super().__init__(index)
        self.name = profile.name
        self._sources = tuple(profile.sources)
        self._spec = ToolSpec(
            **profile.model_dump(include={"name", "base", "purpose", "not_for", "examples"}),
            arguments=schema_of(self.arguments),
            scoped=scoped,
        )

    def spec(self, auth: AuthContext) -> ToolSpec:
        """Describe the tool; what depends on the caller is added by the tool itself."""
        return self._spec

    def _scope(self, auth: AuthContext) -> dict[str, Any]:
        """Return what a call is narrowed to, for the trace."""
        return {**auth.describe(), "sources": list(self._sources)}
