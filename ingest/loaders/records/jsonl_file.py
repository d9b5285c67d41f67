"""JSON Lines: a line with only an id, a title and a text is a document, any other a record.

A text whose metadata describe it as a catalogue does is a record with that text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from core.errors import DocumentError
from core.metadata import find_title
from ingest.loaders import metadata
from ingest.loaders.formats import suffix_of
from ingest.loaders.limits import LoadLimits
from ingest.loaders.records import record_fields
from ingest.loaders.records.record_fields import flatten, record
from ingest.loaders.text import markdown
from ingest.loaders.text.encoding import TextFile
from ingest.loaders.text.plain_text import first_short_line, text_blocks
from ingest.types import LoadFailure, ParsedDocument

_DOCUMENT_KEYS = {"_id", "id", "title", "text", "metadata"}
# Passages name their article, address or page; an author, a year, pages and a rating are an entry
# of a catalogue.
_LEAST_DESCRIBED = 4
_ESCAPE = len("\\u0416")
_MARKDOWN = re.compile(r"^(?:#{1,6} \S|```|~~~)", re.M)


def load(path: Path, relative: str, limits: LoadLimits) -> Iterator[ParsedDocument | LoadFailure]:
    """Yield a document or a failure per line; of two equal ids the later one fails.

    The file is read as a stream; a line may have 6 characters (an escape) for each of its text.
    """
    text = TextFile(path, suffix_of(path.name), limits.max_records_mb)
    # Hashes: the ids of a long file would take more memory than anything else.
    first_line: dict[int, int] = {}
    longest = _ESCAPE * limits.max_characters
    for number, (line, whole) in enumerate(text.lines(longest), start=1):
        if not line.strip():
            continue
        try:
            if not whole:
                raise DocumentError(
                    f"longer than {longest} characters; the limit of a text is"
                    f" {limits.max_characters} (ingest.max_characters)"
                )
            document = _document(relative, number, line)
        except DocumentError as error:
            yield LoadFailure(path=f"{relative}:{number}", reason=error.rule)
            continue
        earlier = first_line.setdefault(hash(document.document_id), number)
        if earlier != number:
            reason = f"the id {document.document_id!r} is already used on line {earlier}"
            yield LoadFailure(path=f"{relative}:{number}", reason=reason)
        else:
            yield document


def _document(relative: str, number: int, line: str) -> ParsedDocument:
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
    return document(relative, number, found)


def document(relative: str, number: int, found: dict[str, Any]) -> ParsedDocument:
    """Return the document or record that an object holds; raise DocumentError for an empty one."""
    name = record_fields.find_id(key for key in found if isinstance(found[key], str | int))
    document_id = str(found[name]) if name and found[name] != "" else f"{relative}#{number}"
    if not _is_document(found):
        return _record(relative, document_id, found)
    given = found.get("metadata")
    if not isinstance(given, dict) or len(flatten(given)) < _LEAST_DESCRIBED:
        return _prose(relative, document_id, found)
    text = text_blocks(found["text"])
    described = _record(relative, document_id, {k: v for k, v in found.items() if k != "text"})
    return described.model_copy(update={"blocks": [*described.blocks, *text]})


def _is_document(found: dict[str, Any]) -> bool:
    text = found.get("text")
    return set(found) <= _DOCUMENT_KEYS and isinstance(text, str) and bool(text.strip())


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
        source=_source(relative, document_id),
        title=title,
        format="jsonl",
        blocks=blocks,
        fields=dict(fields),
        metadata=described | metadata.normalise(fields),
    )


def _record(relative: str, document_id: str, found: dict[str, Any]) -> ParsedDocument:
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


def _source(relative: str, document_id: str) -> str:
    return f"{relative}#{document_id.removeprefix(relative + '#')}"
