"""Small flat JSON schemas: what a server can enforce cheaply; the rest is checked afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Schema = dict[str, Any]


def record(**fields: Schema) -> Schema:
    """Return the schema of an object with exactly these fields, in this order."""
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


def text(pattern: str = "") -> Schema:
    """Return the schema of a string; a bounded expression from ^ to $ stays cheap for servers.

    Limits of length are left out, since grammars unroll them.
    """
    return {"type": "string", **({"pattern": pattern} if pattern else {})}


def one_of(values: Sequence[str]) -> Schema:
    """Return the schema of one of some strings."""
    return {"type": "string", "enum": list(values)}


def number(first: int, last: int) -> Schema:
    """Return the schema of a whole number from `first` to `last`."""
    return {"type": "integer", "enum": list(range(first, last + 1))}


def items(kind: Schema, least: int = 0, most: int = 0) -> Schema:
    """Return the schema of a list; `most` 0 sets no limit, others must be small."""
    limits = {"minItems": least} if least else {}
    limits |= {"maxItems": most} if most else {}
    return {"type": "array", "items": kind, **limits}
