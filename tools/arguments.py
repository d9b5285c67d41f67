"""Arguments of tools: their schemas and checks, and what tools of one collection share."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ValidationError

from core.auth import AuthContext
from core.errors import CallerError, PolicyError
from core.metadata import parse_filters
from core.profile import ToolProfile
from core.types import Evidence, ToolSpec
from retrievers.types import Index, RetrievalResult
from tools.types import ToolError, ToolResult

Arguments = TypeVar("Arguments", bound=BaseModel)


def checked(
    tool: str,
    schema: type[Arguments],
    arguments: dict[str, Any],
    auth: AuthContext | None,
    deadline: float,
) -> Arguments:
    """Return the validated arguments, or refuse the call: no rights, too late, wrong arguments."""
    if not isinstance(auth, AuthContext):
        raise PolicyError("a tool runs for a verified caller only", value=tool)
    if time.monotonic() > deadline:
        raise ToolError("the time of this run is used up", value=tool)
    try:
        return schema.model_validate(arguments)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "arguments"
        raise ToolError(f"tool {tool}: {place}: {first['msg']}", value=first.get("input")) from None


def narrowed(index: Index, auth: AuthContext, where: Sequence[str]) -> AuthContext:
    """Return the caller within the filters of one call; raises ToolError for what is wrong."""
    try:
        filters = parse_filters(where)
        index.catalogue.check_fields(auth, [index.collection], filters)
    except CallerError as error:
        raise ToolError(error.rule, value=error.value, hint=error.hint) from None
    return auth.narrowed(filters)


@cache
def schema_of(arguments: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments; made once, since every run asks for it."""
    return arguments.model_json_schema()


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


class ProfiledTool:
    """Describe a tool over one collection as a profile names and scopes it."""

    arguments: ClassVar[type[BaseModel]]

    def __init__(self, index: Index, profile: ToolProfile, *, scoped: bool) -> None:
        """Work on the `sources` of the profile (shell patterns, empty for all)."""
        self._index = index
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


def result_of(found: RetrievalResult, tool: str, auth_filter: dict[str, Any]) -> ToolResult:
    """Return what a search found as a tool's result."""
    evidence = [item.model_copy(update={"tool": tool}) for item in found.evidence]
    return ToolResult(**vars(found) | {"evidence": evidence}, auth_filter=auth_filter)


def in_place(evidence: Sequence[Evidence], tool: str, query: str) -> list[Evidence]:
    """Return evidence of a tool, scored 1, 1/2, 1/3 … by its place."""
    return [
        item.model_copy(update={"tool": tool, "query": query, "score": 1.0 / (1 + place)})
        for place, item in enumerate(evidence)
    ]
