"""The vocabulary of a segment on disk: sorted terms, found by bisection, never read whole."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from stores.segments.types import Integers


class Vocabulary(Protocol):
    """Give a term its number, as a dict does."""

    def get(self, term: str) -> int | None:
        """Return the number of a term, None when it is not known."""


class SortedTerms:
    """Number terms by their place in the order of their UTF-8 bytes."""

    def __init__(self, blob: memoryview, ends: Integers) -> None:
        """Read terms that stand without gaps in `blob`; `ends` says where each of them ends."""
        self._blob = blob
        self._ends = ends

    def get(self, term: str) -> int | None:
        """Return the number of a term, None when it is not known."""
        wanted = term.encode("utf-8", "surrogatepass")
        low, high = 0, len(self._ends)
        while low < high:
            middle = (low + high) // 2
            if self._term(middle) < wanted:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self._ends) and self._term(low) == wanted else None

    def _term(self, place: int) -> bytes:
        start = self._ends[place - 1] if place else 0
        return bytes(self._blob[start : self._ends[place]])


def encoded(terms: Iterable[str]) -> list[bytes]:
    """Return the terms as bytes, in the order they are given."""
    return [term.encode("utf-8", "surrogatepass") for term in terms]
