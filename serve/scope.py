"""What a question is about, as routes take it: collections, and filters of their documents."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from core.filters import MOST, as_texts
from core.scope import joined_names


def _joined(given: object) -> object:
    named = [given] if isinstance(given, str) else given
    if isinstance(named, list) and named and all(isinstance(one, str) for one in named):
        return joined_names(named)
    return given


def _filters(given: object) -> object:
    return as_texts(given) if isinstance(given, dict) else given


TEXT = {"type": "string"}

# One name, several joined by commas, or a list of names.
Collections = Annotated[
    str,
    BeforeValidator(_joined),
    WithJsonSchema(
        {"anyOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1}], "default": "default"}
    ),
]
# Texts such as "date>=2020", or an object of fields with the values they must have.
Filters = Annotated[
    list[str],
    Field(max_length=MOST),
    BeforeValidator(_filters),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "array", "items": TEXT, "maxItems": MOST},
                {"type": "object", "additionalProperties": True, "maxProperties": MOST},
            ],
            "description": "Filters that documents must meet: FIELD=VALUE, != < <= > >= ~.",
        }
    ),
]
