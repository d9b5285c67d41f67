"""The kind of a query, which can decide the weights of the channels (SPEC T3)."""

from __future__ import annotations

from typing import Literal

from core.language.cues import cues
from core.language.identifiers import find_identifiers

QueryKind = Literal["identifier", "concept", "general"]


def query_kind(text: str, language: str) -> QueryKind:
    """Tell whether a query names an API, asks for an explanation, or neither."""
    if find_identifiers(text):
        return "identifier"
    return "concept" if cues(language).found("definition", text) else "general"
