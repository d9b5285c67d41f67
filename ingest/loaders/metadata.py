"""Bring the many spellings of library metadata to one set of names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from core.metadata import CANONICAL, SYNONYMS

_LISTS = {"authors", "keywords"}
_MAX_VALUE = 10_000  # characters; chosen, not measured


def normalise(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Rename synonyms and fix value types; unknown names stay, empty values go.

    A name given exactly wins over its synonyms.
    """
    found: dict[str, Any] = {}
    for key in sorted(raw, key=lambda name: str(name).lower() in CANONICAL):
        name = CANONICAL.get(str(key).lower(), str(key))
        value = _value(name, raw[key])
        if value not in (None, "", []) and name not in found:
            found[name] = value
    if "published" in found:
        found.setdefault("updated_at", found["published"])
    return found


def _value(name: str, value: object) -> object:
    if name in _LISTS:
        return _names(value, name)
    if isinstance(value, list) and name in SYNONYMS:
        # A catalogue record may name several languages or classes; the first is the main one.
        value = value[0] if value else None
    if name == "year":
        match = re.search(r"\d{4}", str(value))
        return int(match.group()) if match else None
    if isinstance(value, date):  # datetime too
        return value.isoformat()
    if name in {"title", "language", "version", "updated_at", "published", "url", "udc"}:
        return " ".join(str(value).split()) if isinstance(value, str | int | float) else None
    if isinstance(value, list):
        return [item for item in value if isinstance(item, str | int | float)]
    if isinstance(value, str):
        return value.strip()[:_MAX_VALUE]
    return value if isinstance(value, bool | int | float) else None


def _names(value: object, name: str) -> list[str]:
    """Split "A; B" and "A, B", but not the one author "Doe, John"."""
    if isinstance(value, list | tuple):
        items = [str(item) for item in value if isinstance(item, str | int | float)]
    elif isinstance(value, str):
        items = value.split(";")
        commas = [part.strip() for part in value.split(",")]
        if len(items) == 1 and (name == "keywords" or all(" " in part for part in commas)):
            items = commas
    else:
        return []
    return list(dict.fromkeys(text for item in items if (text := " ".join(item.split()))))
