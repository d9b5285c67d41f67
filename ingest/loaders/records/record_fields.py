"""What CSV rows and JSON objects have in common: names, fields, and the text of a record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from core.errors import DocumentError
from core.metadata import find_title, humanise
from ingest.loaders import metadata
from ingest.loaders.limits import LoadLimits
from ingest.types import Block, BlockKind, Loaded, LoadFailure, ParsedDocument

Scalar = str | int | float | bool
Fields = dict[str, Scalar | list[Scalar]]

LONG = 200  # characters; a longer value is text, not a field; chosen, not measured
_LONG_LIST = 2_000  # characters of all its values; chosen, not measured
_MAX_DEPTH = 8  # of fields within fields; chosen, not measured
_ID_NAMES = (
    "_id", "id", "document_id", "doc_id", "record_id", "book_id", "item_id", "uid", "uuid",
)  # fmt: skip
_TEXT_NAMES = frozenset((
    "text", "description", "annotation", "abstract", "body", "content", "summary", "synopsis",
    "описание", "аннотация", "опис", "анотація", "текст", "简介", "摘要", "描述", "内容",
))  # fmt: skip
_BODY_NAMES = frozenset(("text", "body", "content", "текст", "内容"))


def find_id(names: Iterable[str]) -> str | None:
    """Return the field that identifies a record; "author_id" does so only when it comes first."""
    listed = list(names)
    lower = {name.lower(): name for name in reversed(listed)}
    for name in _ID_NAMES:
        if name in lower:
            return lower[name]
    return listed[0] if listed and listed[0].lower().endswith("_id") else None


def source_of(relative: str, document_id: str) -> str:
    """Return the source shown for a record: its file, and its id there."""
    return f"{relative}#{document_id.removeprefix(relative + '#')}"


def check_new(seen: dict[int, int], document_id: str, number: int, place: str) -> None:
    """Raise DocumentError for an id that a record of the file has already; else note its place.

    Hashes are kept: the ids of a long file would take more memory than anything else.
    """
    earlier = seen.setdefault(hash(document_id), number)
    if earlier != number:
        raise DocumentError(f"the id {document_id!r} is already used {place} {earlier}")


def first_text(fields: Mapping[str, object], id_name: str | None) -> str:
    """Return the first text among the fields that is not the id, or ""."""
    return next((v for name, v in fields.items() if isinstance(v, str) and name != id_name), "")


def flatten(raw: Mapping[str, Any]) -> Fields:
    """Return scalars and lists of scalars; nested objects get dotted names, nulls go."""
    found: Fields = {}
    _flatten("", raw, found, 0)
    return found


def _flatten(name: str, value: object, found: Fields, depth: int) -> None:
    if isinstance(value, Mapping) and depth < _MAX_DEPTH:
        for key, item in value.items():
            _flatten(f"{name}.{key}" if name else str(key), item, found, depth + 1)
    elif isinstance(value, list) and depth < _MAX_DEPTH:
        if value and all(isinstance(item, Mapping) for item in value):
            columns: dict[str, list[Any]] = {}
            for item in value:
                for key, part in item.items():
                    columns.setdefault(key, []).append(part)
            for key, column in columns.items():
                _flatten(f"{name}.{key}", column, found, depth + 1)
        else:
            items = [part for item in value for part in _scalars(item)]
            if items:
                found[name] = items
    else:
        scalars = _scalars(value)
        if scalars and scalars[0] != "":
            found[name] = scalars[0]


def _scalars(value: object) -> list[Scalar]:
    if isinstance(value, list):
        return [str(item) if isinstance(item, list | dict) else item for item in value if item]
    if value is None or isinstance(value, Mapping):
        return [] if not value else [str(value)]
    return [value if isinstance(value, str | int | float | bool) else str(value)]


def record(
    relative: str,
    document_id: str,
    fields: Fields,
    *,
    title: str,
    format_name: str,
    labels: Mapping[str, str] = MappingProxyType({}),
) -> ParsedDocument:
    """Build the document of one record: a block of short fields, and one per long text.

    `labels` are the names that its text shows instead of those of the fields.
    """
    queryable = {
        name: value
        for name, value in fields.items()
        if not (name.lower() in _TEXT_NAMES and isinstance(value, str))
    }
    return ParsedDocument(
        document_id=document_id,
        source=source_of(relative, document_id),
        title=title,
        format=format_name,
        blocks=_blocks(fields, title, labels),
        is_record=True,
        fields=queryable,
        metadata=metadata.normalise(queryable),
    )


def _blocks(fields: Fields, title: str, labels: Mapping[str, str]) -> list[Block]:
    lines: list[str] = []
    texts: list[Block] = []
    for name, value in fields.items():
        shown = write_value(value)
        longest = max(map(len, map(str, value)), default=0) if isinstance(value, list) else 0
        if max(longest, len(value) if isinstance(value, str) else 0) > LONG:
            texts.append(Block(text=shown, kind=_kind(name)))
        elif len(shown) > _LONG_LIST:
            texts.append(Block(text=f"{labels.get(name) or humanise(name)}: {shown}"))
        else:
            lines.append(f"{labels.get(name) or humanise(name)}: {shown}")
    named = find_title(fields)
    if named and str(fields[named]).strip() == title and len(title) <= LONG:
        line = f"{labels.get(named) or humanise(named)}: {write_value(fields[named])}"
        lines = [line, *(other for other in lines if other != line)]
    elif title not in fields.values():
        lines.insert(0, f"title: {title}")
    return [Block(text="\n".join(lines), kind="record"), *texts] if lines else texts


def _kind(name: str) -> BlockKind:
    last = name.lower().rsplit(".", 1)[-1]
    return "annotation" if last in _TEXT_NAMES - _BODY_NAMES else "text"


def is_annotation_line(text: str) -> bool:
    """Tell whether one line of a record's block is an annotation, short as it is."""
    names = {line.partition(":")[0] for line in text.split("\n")}
    return any(humanise(name) in names for name in _TEXT_NAMES - _BODY_NAMES)


def write_value(value: Scalar | list[Scalar]) -> str:
    """Write the value of a field as text."""
    if not isinstance(value, list):
        return str(value).lower() if isinstance(value, bool) else str(value)
    if any(len(str(item)) > LONG for item in value):
        return "\n\n".join(map(str, value))
    # "Tolstoy, Leo, Chekhov, Anton" would be four people.
    return ("; " if any("," in str(item) for item in value) else ", ").join(map(str, value))


# A file with too many fields is refused before any of it is kept where that shows in so many
# documents, or so much of their text; later it ends there, like a file that is damaged there.
_FIRST_DOCUMENTS = 1000  # chosen, not measured
_FIRST_CHARACTERS = 4_000_000  # held in memory; chosen, not measured


class FieldsError(DocumentError):
    """Report a file with too many fields."""


def limit_fields(items: Iterable[Loaded], limits: LoadLimits) -> Iterator[Loaded]:
    """Yield the items of one file; raise FieldsError when it has too many fields.

    A record with too many values is a failure of its own.
    """
    first: list[Loaded] = []
    try:
        yield from _limit_items(items, limits, first)
    except FieldsError:
        raise
    except Exception:  # what a loader gave before its fault is kept
        yield from first
        raise
    yield from first


def _limit_items(
    items: Iterable[Loaded], limits: LoadLimits, first: list[Loaded]
) -> Iterator[Loaded]:
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
            " (ingest.max_fields); split the file, leave some out, or raise it"
        )


def _within_values(item: ParsedDocument, limits: LoadLimits) -> Loaded:
    count = sum(len(one) if isinstance(one, list) else 1 for one in item.fields.values())
    if count <= limits.max_field_values:
        return item
    reason = (
        f"{count:,} values in its fields; the limit of one record is"
        f" {limits.max_field_values:,} (ingest.max_field_values); split it or raise it"
    )
    return LoadFailure(path=item.source, reason=reason)
