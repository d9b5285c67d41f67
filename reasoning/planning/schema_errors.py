"""Say in plain words what does not fit a schema."""

from __future__ import annotations

from pydantic import ValidationError

from core.errors import shorten
from core.operations import OPERATIONS

_BRANCHES = {*OPERATIONS, "str", "Reference"}  # of unions: they are no part of a field's name


def schema_error(error: ValidationError) -> str:
    """Say the first thing that does not fit: the field, what it should be, what it is."""
    first = error.errors(include_url=False)[0]
    place = [str(part) for part in first["loc"] if part not in _BRANCHES]
    if first["type"] == "extra_forbidden":
        return f"there is no key '{shorten(place[-1], 64)}' here"
    if first["type"] == "missing":
        return f"'{place[-1]}' is missing"
    if first["type"] == "union_tag_invalid":
        return (
            f"there is no operation {shorten(first['ctx']['tag'], 64)}; operations: "
            + ", ".join(OPERATIONS)
        )
    if first["type"] == "union_tag_not_found":
        return "'op' is missing"
    message = first["msg"][0].lower() + first["msg"][1:]
    return f"{'.'.join(place) or 'entry'}: {message} (it is {shorten(repr(first['input']), 60)})"
