"""JSON and JSON lines, of records or of documents."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from core.errors import DocumentError
from core.metadata import find_title, humanise
from ingest.loaders import metadata
from ingest.loaders.formats import suffix_of
from ingest.loaders.limits import LoadLimits
from ingest.loaders.outline import Outline
from ingest.loaders.records import record_fields
from ingest.loaders.records.record_fields import flatten, record
from ingest.loaders.text import markdown
from ingest.loaders.text.encoding import TextFile, decode
from ingest.loaders.text.plain_text import first_short_line, text_blocks
from ingest.types import Loaded, LoadFailure, ParsedDocument

_DOCUMENT_KEYS = {"_id", "id", "title", "text", "metadata"}
# Passages name their article, address or page; an author, a year, pages and a rating are an entry
# of a catalogue.
_LEAST_DESCRIBED = 4  # chosen, not measured
_ESCAPE = len("\\u0416")
_MARKDOWN = re.compile(r"^(?:#{1,6} \S|```|~~~)", re.M)


def load_lines(path: Path, relative: str, limits: LoadLimits) -> Iterator[Loaded]:
    """Yield a document or a failure per line; of two equal ids the later one fails.

    The file is read as a stream; a line may have 6 characters (an escape) for each of its text.
    """
    text = TextFile(path, suffix_of(path.name), limits.max_records_mb)
    seen: dict[int, int] = {}
    longest = _ESCAPE * limits.max_characters
    for number, (line, complete) in enumerate(text.lines(longest), start=1):
        if not line.strip():
            continue
        try:
            if not complete:
                raise DocumentError(
                    f"longer than {longest} characters; the limit of a text is"
                    f" {limits.max_characters} (ingest.max_characters)"
                )
            document = _line_document(relative, number, line)
            record_fields.check_new(seen, document.document_id, number, "on line")
        except DocumentError as error:
            yield LoadFailure(path=f"{relative}:{number}", reason=error.rule)
        else:
            yield document


def _line_document(relative: str, number: int, line: str) -> ParsedDocument:
    try:
        # No NaN: it is no JSON, and cannot be stored as such.
        found = json.loads(line, parse_constant=lambda _: None)
    except RecursionError as error:
        raise DocumentError("not valid JSON (nested too deeply)") from error
    except ValueError as error:
        why = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise DocumentError(f"not valid JSON ({why})") from error
    if not isinstance(found, dict):
        raise DocumentError(f"a JSON {type(found).__name__} where an object is needed")
    return line_document(relative, number, found)


def line_document(relative: str, number: int, found: dict[str, Any]) -> ParsedDocument:
    """Return the document or record that an object holds; raise DocumentError for an empty one."""
    name = record_fields.find_id(key for key in found if isinstance(found[key], str | int))
    document_id = str(found[name]) if name and found[name] != "" else f"{relative}#{number}"
    text = found.get("text")
    if not (set(found) <= _DOCUMENT_KEYS and isinstance(text, str) and text.strip()):
        return _line_record(relative, document_id, found)
    given = found.get("metadata")
    if not isinstance(given, dict) or len(flatten(given)) < _LEAST_DESCRIBED:
        return _prose(relative, document_id, found)
    described = _line_record(relative, document_id, {k: v for k, v in found.items() if k != "text"})
    marked = _MARKDOWN.search(text)
    blocks = markdown.parse(document_id, text).blocks if marked else text_blocks(text)
    return described.model_copy(update={"blocks": [*described.blocks, *blocks]})


def _prose(relative: str, document_id: str, found: dict[str, Any]) -> ParsedDocument:
    text, given = found["text"], found.get("metadata")
    fields = flatten(given) if isinstance(given, dict) else {}
    title = str(found.get("title") or "").strip()
    described: dict[str, Any] = {}
    if _MARKDOWN.search(text):
        parsed = markdown.parse(document_id, text)
        blocks, described = parsed.blocks, parsed.metadata
        title = title or parsed.title
    else:
        blocks = text_blocks(text)
        title = title or first_short_line(text) or document_id
    return ParsedDocument(
        document_id=document_id,
        source=record_fields.source_of(relative, document_id),
        title=title,
        format="jsonl",
        blocks=blocks,
        fields=dict(fields),
        metadata=described | metadata.normalise(fields),
    )


def _line_record(relative: str, document_id: str, found: dict[str, Any]) -> ParsedDocument:
    nested = found.get("metadata")
    own = {key: value for key, value in found.items() if key not in ("_id", "metadata")}
    if not isinstance(nested, dict) and nested is not None:
        own["metadata"] = nested
    fields = flatten(own)
    if isinstance(nested, dict):
        # A record's own fields win over metadata of the same name.
        fields = fields | {k: v for k, v in flatten(nested).items() if k not in fields}
    if not fields:
        raise DocumentError("no text and no title in this record")
    name = find_title(key for key, value in fields.items() if isinstance(value, str))
    title = str(fields[name]).strip() if name else _first_text(fields) or document_id
    document = record(relative, document_id, fields, title=title[:300], format_name="jsonl")
    if not document.blocks:
        raise DocumentError("no text and no title in this record")
    return document


def _first_text(fields: record_fields.Fields) -> str:
    short = (value for value in fields.values() if isinstance(value, str) and len(value) <= 200)
    return next((value for value in short if any(c.isalpha() for c in value)), "")


_MAX_DEPTH = 50  # a bound against hostile nesting; chosen, not measured
_PROSE_WORDS = 5  # as many make a text of a value; chosen, not measured
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
            yield from load_lines(path, relative, limits)
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
    seen: dict[int, int] = {}
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


def _record(relative: str, number: int, item: dict[str, Any], seen: dict[int, int]) -> Loaded:
    try:
        document = line_document(relative, number, item)
        record_fields.check_new(seen, document.document_id, number, "by item")
    except DocumentError as error:
        return LoadFailure(path=f"{relative}: item {number}", reason=error.rule)
    return document.model_copy(update={"format": "json"})


def _value(relative: str, found: object) -> Iterator[Loaded]:
    rows, rest = _rows(found)
    seen: dict[int, int] = {}
    for number, row in enumerate(rows, start=1):
        yield _record(relative, number, row, seen)
    if not rows or _has_prose(rest, 0):
        yield _document(relative, rest)


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
    return ParsedDocument.of_file(relative, "json", outline.finish(), {}, title)


def _add(outline: Outline, name: str, value: object, level: int) -> None:
    """Write "name: value" lines; objects and arrays of objects are sections."""
    if isinstance(value, dict) and level < _MAX_DEPTH:
        if name:
            outline.heading(level, humanise(name))
        for key, item in sorted(value.items(), key=lambda entry: isinstance(entry[1], dict | list)):
            _add(outline, str(key), item, level + 1)
    elif isinstance(value, list) and level < _MAX_DEPTH:
        scalars = [item for item in value if not isinstance(item, dict | list)]
        _add_line(outline, name, ", ".join(map(_write_value, scalars)))
        for item in value:
            if isinstance(item, dict | list):
                _add(outline, name, item, level)
    else:
        _add_line(outline, name, _write_value(value))


def _write_value(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _add_line(outline: Outline, name: str, text: str) -> None:
    if text.strip():
        label = f"{humanise(name)}: " if name and len(text) <= record_fields.LONG else ""
        outline.prose(label + text, tight=bool(label))
