"""How many fields a file of records may have: each is described to every question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from core.errors import DocumentError
from ingest.loaders.limits import LoadLimits
from ingest.loaders.table import Loaded
from ingest.types import LoadFailure, ParsedDocument

# A file with too many fields is refused before any of it is kept where that shows in so many
# documents, or so much of their text; later it ends there, like a file that is damaged there.
_FIRST_DOCUMENTS = 1000
_FIRST_CHARACTERS = 4_000_000


class FieldsError(DocumentError):
    """Report a file with too many fields."""


def limited_fields(items: Iterable[Loaded], limits: LoadLimits) -> Iterator[Loaded]:
    """Yield what a loader gives of one file; raise FieldsError when it has too many fields.

    A record with too many values is a failure of its own.
    """
    first: list[Loaded] = []
    try:
        yield from _limited(items, limits, first)
    except FieldsError:
        raise
    except Exception:  # what a loader gave before its fault is kept
        yield from first
        raise
    yield from first


def _limited(items: Iterable[Loaded], limits: LoadLimits, first: list[Loaded]) -> Iterator[Loaded]:
    """Yield all but the first documents, which are kept in `first` until there are enough."""
    names: set[str] = set()
    characters = 0
    waits = True
    for item in items:
        if isinstance(item, ParsedDocument):
            names.update(item.fields)
            check_fields(len(names), limits)
            characters += sum(len(block.text) for block in item.blocks)
            item = _within_values(item, limits)
        first.append(item)
        waits = waits and len(first) < _FIRST_DOCUMENTS and characters < _FIRST_CHARACTERS
        if not waits:
            yield from first
            first.clear()


def check_fields(count: int, limits: LoadLimits) -> None:
    """Raise FieldsError for a file of so many fields when that is too many."""
    if count > limits.max_fields:
        raise FieldsError(
            f"{count:,} columns or fields; at most {limits.max_fields:,} are read of one file"
            " (max_fields); split the file, leave some out, or raise it"
        )


def _within_values(item: ParsedDocument, limits: LoadLimits) -> Loaded:
    count = sum(len(one) if isinstance(one, list) else 1 for one in item.fields.values())
    if count <= limits.max_field_values:
        return item
    reason = (
        f"{count:,} values in its fields; the limit of one record is"
        f" {limits.max_field_values:,} (max_field_values); split it or raise it"
    )
    return LoadFailure(path=item.source, reason=reason)
