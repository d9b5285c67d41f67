"""Read conditions on record fields out of a question, by the values the fields really have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from core.language.analysis import content_terms, terms
from core.tool_spec import ToolSpec

MAX_VALUE_TERMS = 8
DATE_FIELDS = ("created_at", "updated_at", "date", "published_at", "year")


def field_conditions(text: str, language: str, spec: ToolSpec) -> list[dict[str, Any]]:
    """Return conditions whose value the question names in full, the longest value of a field.

    A value is named when all its content words are in the question. Numbers count only when they
    have four digits, as years do, since small numbers mean anything.
    """
    asked = frozenset(terms(text, language))
    conditions = []
    for info in spec.fields:
        named = [value for value in info.examples if _named(value, asked, info.type)]
        if named:
            value = max(named, key=len)
            op = "=" if info.type == "number" else "contains"
            typed: str | float = float(value) if info.type == "number" else value
            conditions.append({"field": info.name, "op": op, "value": typed})
    return conditions


def _named(value: str, asked: frozenset[str], kind: str) -> bool:
    if kind == "number":
        return len(value) == 4 and value.isdigit() and value in asked
    words = content_terms(value)
    if not words or len(words) > MAX_VALUE_TERMS or value.isdigit():
        return False
    return asked.issuperset(words)


def date_field(names: Iterable[str]) -> str | None:
    """Return the field that says how recent a record is, if there is one."""
    known = set(names)
    return next((name for name in DATE_FIELDS if name in known), None)
