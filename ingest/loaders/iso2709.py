"""ISO 2709 bytes to MARC fields: MARC-8, UTF-8 and the code pages that libraries used instead."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from pymarc import marc8_to_unicode

from core.errors import DocumentError
from ingest.loaders.text.legacy_encoding import guess

# They enclose an article that sorting passes over: "\x88The \x89end".
_SORTING = dict.fromkeys(map(ord, "\x88\x89\x98\x9c"))
RECORD_END, FIELD_END, SUBFIELD = b"\x1d", b"\x1e", b"\x1f"
_LEADER = 24  # bytes, as ISO 2709 has it
_ENTRY = 12  # bytes of a directory entry of MARC 21
_BLOCK = 1 << 20  # bytes read at once; chosen, not measured
_MAX_RECORD = 1 << 22  # bytes; many writers exceed the 99,999 of ISO 2709; chosen, not measured
_SAMPLE = 1 << 20  # bytes that tell the encoding; chosen, not measured
# The places that mean nothing hold anything but a line end, also control characters.
_LEADER_SHAPE = re.compile(rb"\d{5}[^\n\r\x80-\xff]{7}\d{5}[^\n\r\x80-\xff]{7}")
# UNIMARC 100$a positions 26-29 name the character set; these are RUSMARC's code pages.
_UNIMARC_SETS = {"79": "cp866", "89": "cp1251", "99": "koi8-r"}
_WORD_OF_HIGH_BYTES = re.compile(rb"[\x80-\xff]{4}")


class MarcField(NamedTuple):
    """Hold one field: a control field has a value, a data field subfields."""

    tag: str
    value: str = ""
    subfields: tuple[tuple[str, str], ...] = ()


# The undecoded fields of a record, each with its tag.
RawRecord = list[tuple[str, bytes]]


def looks_like_marc(head: bytes) -> bool:
    """Tell whether a file that begins like this holds ISO 2709 records."""
    return bool(_LEADER_SHAPE.match(head.lstrip(b"\xef\xbb\xbf\r\n \x00")))


def chunks(path: Path) -> Iterator[bytes]:
    """Yield the bytes of each record, without its terminator, reading a part at a time.

    Raises DocumentError when no record ends within 4 MB: the file is of another kind.
    """
    rest = b""
    with path.open("rb") as handle:
        while block := handle.read(_BLOCK):
            *complete, rest = (rest + block).split(RECORD_END)
            yield from (record for record in map(_trim, complete) if record)
            if len(rest) > _MAX_RECORD:
                raise DocumentError("a MARC record without an end; the rest of the file is lost")
    if rest := _trim(rest):
        yield rest


def _trim(record: bytes) -> bytes:
    return record.removeprefix(b"\xef\xbb\xbf").strip(b"\r\n\x00\x1a ")


def parse(record: bytes) -> RawRecord:
    """Split a record into its fields; raise DocumentError that names its fault."""
    if not _LEADER_SHAPE.match(record):
        raise DocumentError("the leader is damaged")
    if not record.endswith(FIELD_END):
        raise DocumentError("the record is cut off")
    fields = _fields(record)
    if not fields:
        raise DocumentError("the directory of fields is damaged")
    return fields


def _fields(record: bytes) -> RawRecord:
    """Pair the tags of the directory with the fields as their end marks part them.

    Its numbers tell the order alone: files that were converted to another encoding keep those of
    the old one. Where they do not fit one another, the fields are taken in the order of the tags.
    """
    directory, *fields = record[_LEADER:].removesuffix(FIELD_END).split(FIELD_END)
    starts = range(0, len(directory), _ENTRY)
    try:
        lengths = {at: int(directory[at + 3 : at + 7]) for at in starts}
        begins = {at: int(directory[at + 7 : at + _ENTRY]) for at in starts}
    except ValueError:
        return []
    if len(directory) % _ENTRY or len(starts) != len(fields):
        return []
    order = sorted(starts, key=lambda at: begins[at])
    fit = all(begins[a] + lengths[a] == begins[b] for a, b in pairwise(order))
    by_entry = dict(zip(order if fit else starts, fields, strict=True))
    return [(directory[at : at + 3].decode("ascii", "replace"), by_entry[at]) for at in starts]


def decoder(sample: list[RawRecord]) -> Callable[[bytes], str]:
    """Choose how the fields of a file are decoded, from its first records."""
    text = b"\n".join(value for record in sample for _, value in record)[:_SAMPLE]
    named = _find_character_set(sample)
    if named:
        return partial(str, encoding=named, errors="replace")
    if _is_utf8(text) or (text.isascii() and b"\x1b" not in text):
        return partial(str, encoding="utf-8", errors="replace")
    if b"\x1b" not in text and _WORD_OF_HIGH_BYTES.search(text):
        # MARC-8 writes other scripts with escapes and single accents: these are words.
        return partial(str, encoding=guess(text) or "latin-1", errors="replace")
    return _marc8


def _find_character_set(sample: list[RawRecord]) -> str:
    for record in sample:
        for tag, value in record:
            place = value.find(SUBFIELD + b"a")
            if tag == "100" and place >= 0:
                found = value[place + 2 + 26 : place + 2 + 28].decode("ascii", "replace")
                return _UNIMARC_SETS.get(found, "")
    return ""


def _is_utf8(text: bytes) -> bool:
    decoded = text.decode("utf-8", "replace")
    bad = decoded.count("\ufffd")
    return 20 * bad < sum(c > "\x7f" for c in decoded) - bad


def _marc8(value: bytes) -> str:
    try:
        return str(marc8_to_unicode(value, hide_utf8_warnings=True))
    except (UnicodeDecodeError, ValueError):
        return value.decode("latin-1")


def decode_fields(record: RawRecord, decode: Callable[[bytes], str]) -> list[MarcField]:
    """Return the fields of a record as text; 001-009 are control fields."""
    fields = []
    for tag, value in record:
        if tag < "010" and tag.isdigit():
            fields.append(MarcField(tag, decode(value).strip()))
            continue
        _, *parts = value.split(SUBFIELD)  # the indicators say nothing about the text
        pairs = [
            (decode(part[:1]), decode(part[1:]).translate(_SORTING).strip())
            for part in parts
            if part
        ]
        fields.append(MarcField(tag, subfields=tuple(pairs)))
    return fields
