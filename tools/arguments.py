"""Check a call before anything is read."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from core.auth import AuthContext
from core.errors import CallerError, PolicyError
from core.metadata import parse_filters
from retrievers.types import Index
from tools.types import ToolError

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
