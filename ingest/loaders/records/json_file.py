"""JSON: an array of objects gives records, anything else a document with its texts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from core.errors import DocumentError
from core.metadata import find_title, humanise
from ingest.loaders.limits import LoadLimits
from ingest.loaders.outline import Outline
from ingest.loaders.records import jsonl_file, record_fields
from ingest.loaders.text.encoding import decode
from ingest.types import LoadFailure, ParsedDocument

Loaded = ParsedDocument | LoadFailure
_MAX_DEPTH = 50
_PROSE_WORDS = 5
# NaN and Infinity are no JSON and no numbers that can be asked for.
_decoder = json.JSONDecoder(parse_constant=lambda _: None)


def load(path: Path, relative: str, limits: LoadLimits) -> Iterator[Loaded]:
    """Yield the records or the document of a JSON file.

    An array is read object by object, so that what stands before damage is kept.
    """
    text = decode(path.read_bytes(), ".json")
    if not text.strip():
        raise DocumentError("the file holds only white space")
    if text.lstrip().startswith("["):
        yield from _array(relative, text)
        return
    try:
        found = _decoder.decode(text)
    except (ValueError, RecursionError) as error:
        if getattr(error, "msg", "") == "Extra data":  # several objects: JSON Lines under this name
            yield from jsonl_file.load(path, relative, limits)
            return
        raise _invalid(error) from error
    yield from _value(relative, found)


def _invalid(error: Exception) -> DocumentError:
    if isinstance(error, json.JSONDecodeError):
        return DocumentError(f"not valid JSON ({error.msg}, line {error.lineno})")
    return DocumentError("not valid JSON (nested too deeply)")


def _array(relative: str, text: str) -> Iterator[Loaded]:
    """Yield the records of an array; the first damage ends it and is named."""
    others: list[Any] = []
    seen: dict[str, int] = {}
    number = 0
    at = _skip(text, text.index("[") + 1)
    while at < len(text) and text[at] != "]":
        try:
            item, at = _decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            yield LoadFailure(path=f"{relative}: item {number + 1}", reason=_invalid(error).rule)
            break
        number += 1
        if isinstance(item, dict):
            yield _record(relative, number, item, seen)
        else:
            others.append(item)
        at = _skip(text, at)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != "]":
            reason = "not valid JSON (the array does not go on after it)"
            yield LoadFailure(path=f"{relative}: item {number}", reason=reason)
            break
    if others:
        yield _document(relative, others)
    if not number:
        raise DocumentError("an empty array")


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _record(relative: str, number: int, item: dict[str, Any], seen: dict[str, int]) -> Loaded:
    path = f"{relative}: item {number}"
    try:
        document = jsonl_file.document(relative, number, item)
    except DocumentError as error:
        return LoadFailure(path=path, reason=error.rule)
    earlier = seen.setdefault(document.document_id, number)
    if earlier != number:
        reason = f"the id {document.document_id!r} is already used by item {earlier}"
        return LoadFailure(path=path, reason=reason)
    return document.model_copy(update={"format": "json"})


def _value(relative: str, found: object) -> Iterator[Loaded]:
    rows, rest = _rows(found)
    seen: dict[str, int] = {}
    for number, row in enumerate(rows, start=1):
        yield _record(relative, number, row, seen)
    if not rows or _has_prose(rest, 0):
        document = _document(relative, rest)
        if not document.blocks:
            raise DocumentError("no text found in it")
        yield document


def _rows(found: object) -> tuple[list[dict[str, Any]], object]:
    """Return the records in an object, and what else it holds.

    Records are its one array of objects, or its values when all are objects with fields in common,
    named by their keys.
    """
    if not isinstance(found, dict):
        return [], found
    arrays = {
        key: value
        for key, value in found.items()
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value)
    }
    if len(arrays) == 1:
        ((name, rows),) = arrays.items()
        return rows, {key: value for key, value in found.items() if key != name}
    values = list(found.values())
    if len(values) > 1 and all(isinstance(value, dict) and value for value in values):
        if set.intersection(*(set(value) for value in values)):
            return [{"id": key, **value} for key, value in found.items()], {}
    return [], found


def _has_prose(value: object, depth: int) -> bool:
    if isinstance(value, str):
        return len(value.split()) >= _PROSE_WORDS
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return depth < _MAX_DEPTH and any(_has_prose(item, depth + 1) for item in items)


def _document(relative: str, found: object) -> ParsedDocument:
    outline = Outline()
    _add(outline, "", found, 1)
    title = ""
    if isinstance(found, dict):
        name = find_title(key for key, value in found.items() if isinstance(value, str))
        title = str(found[name]).strip()[:300] if name else ""
    return ParsedDocument(
        document_id=relative,
        source=relative,
        title=title or PurePosixPath(relative).stem,
        format="json",
        blocks=outline.finish(),
    )


def _add(outline: Outline, name: str, value: object, level: int) -> None:
    """Write "name: value" lines; objects and arrays of objects are sections."""
    if isinstance(value, dict) and level < _MAX_DEPTH:
        if name:
            outline.heading(level, humanise(name))
        for key, item in sorted(value.items(), key=lambda entry: isinstance(entry[1], dict | list)):
            _add(outline, str(key), item, level + 1)
    elif isinstance(value, list) and level < _MAX_DEPTH:
        scalars = [item for item in value if not isinstance(item, dict | list)]
        _add_line(outline, name, ", ".join(map(_shown, scalars)))
        for item in value:
            if isinstance(item, dict | list):
                _add(outline, name, item, level)
    else:
        _add_line(outline, name, _shown(value))


def _shown(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _add_line(outline: Outline, name: str, text: str) -> None:
    if text.strip():
        label = f"{humanise(name)}: " if name and len(text) <= record_fields.LONG else ""
        outline.prose(label + text, tight=bool(label))
