"""The collections of a question: one name, or several joined by commas, which no name has."""

from __future__ import annotations

from collections.abc import Iterable

SEPARATOR = ","


def joined_names(collections: Iterable[str]) -> str:
    """Return names, of which some may be joined already, as one text, each once."""
    return SEPARATOR.join(names_of(SEPARATOR.join(collections)))


def names_of(collection: str) -> list[str]:
    """Return the names in one text, each once, in their order; an empty one is kept."""
    return list(dict.fromkeys(name.strip() for name in collection.split(SEPARATOR)))
