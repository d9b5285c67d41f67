"""Library catalogues in MARC (ISO 2709 and XML): every bibliographic record is a document."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import DocumentError
from ingest.loaders import marc_iso2709, records
from ingest.loaders.encoding import decode
from ingest.loaders.limits import LoadLimits
from ingest.loaders.marc_fields import describe, is_unimarc
from ingest.loaders.marc_iso2709 import MarcField
from ingest.loaders.xml_safe import parse_xml
from ingest.loaders.xml_tree import descendants, local_name
from ingest.types import Block, LoadFailure, ParsedDocument

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

# A record that can be read, or why it cannot.
Found = Sequence[MarcField] | DocumentError
_PARTS = ("leader", "controlfield", "datafield")
_XML_RECORD = re.compile(
    r"<(\w+:)?record\b(?![^>]*/>)(?:(?!<(?:\w+:)?record\b).)*?</(?:\w+:)?record\s*>", re.S
)
_PREFIX = re.compile(r"<(/?)\w+:")
_SAMPLED = 200
_NO_MARC = "no MARC records in it; such a file is read only when it holds ISO 2709 records"


def load(path: Path, relative: str, limits: LoadLimits) -> Iterator[ParsedDocument | LoadFailure]:
    """Yield the document of each record of an ISO 2709 file, and what each damaged one lacks."""
    with path.open("rb") as handle:
        if not marc_iso2709.looks_like_marc(handle.read(64)):
            raise DocumentError(_NO_MARC)
    yield from documents(relative, _read(path), "marc")


def _read(path: Path) -> Iterator[Found]:
    parsed = _parsed(path)
    first = list(islice(parsed, _SAMPLED))
    decode = marc_iso2709.decoder([item for item in first if not isinstance(item, DocumentError)])
    for group in (first, parsed):
        for item in group:
            yield (item if isinstance(item, DocumentError) else marc_iso2709.decoded(item, decode))


def _parsed(path: Path) -> Iterator[marc_iso2709.RawRecord | DocumentError]:
    try:
        for chunk in marc_iso2709.chunks(path):
            try:
                yield marc_iso2709.parse(chunk)
            except DocumentError as error:
                yield error
    except DocumentError as error:  # what comes after is lost, what came before is not
        yield error


def load_xml(root: Element, relative: str) -> Iterator[ParsedDocument | LoadFailure]:
    """Yield the document of each record of a parsed MARCXML file."""
    yield from documents(relative, map(_from_xml, _record_elements(root)), "marcxml")


def load_damaged_xml(
    data: bytes, relative: str, error: DocumentError
) -> Iterator[ParsedDocument | LoadFailure]:
    """Yield the records of a MARCXML file that is not well formed, each parsed by itself.

    Raises `error` when the file holds no such record.
    """
    text = decode(data, ".xml")
    found = _XML_RECORD.finditer(text)
    first = next(found, None)
    if first is None or "datafield" not in text:
        raise error
    pieces = (match.group() for match in chain([first], found))
    yield from documents(relative, map(_damaged_record, pieces), "marcxml")


def _damaged_record(piece: str) -> Found:
    # Prefixes are declared at the root, which is not at hand.
    unprefixed = _PREFIX.sub(r"<\1", piece)
    try:
        return next(map(_from_xml, _record_elements(parse_xml(unprefixed.encode()))), [])
    except DocumentError as error:
        return error


def _record_elements(root: Element) -> Iterator[Element]:
    """OAI-PMH puts one record into another; that of MARC has fields."""
    for element in descendants(root, "record"):
        if any(local_name(part) in _PARTS for part in element):
            yield element


def _from_xml(record: Element) -> list[MarcField]:
    fields = []
    for element in record:
        tag = (element.get("tag") or "").strip()
        if local_name(element) == "controlfield":
            fields.append(MarcField(tag, (element.text or "").strip()))
        elif local_name(element) == "datafield":
            pairs = tuple(
                ((part.get("code") or "").strip(), "".join(part.itertext()).strip())
                for part in element
                if local_name(part) == "subfield"
            )
            marks = (element.get("ind1") or " ")[:1] + (element.get("ind2") or " ")[:1]
            fields.append(MarcField(tag, indicators=marks, subfields=pairs))
    return fields


def documents(
    relative: str, found: Iterator[Found], format_name: str
) -> Iterator[ParsedDocument | LoadFailure]:
    """Yield a document or a failure per record; records count from 1.

    A control number that a different record has already used is replaced by the record's place in
    the file; the same record once more is a failure.
    """
    first = list(islice(found, _SAMPLED))
    unimarc = is_unimarc([item for item in first if not isinstance(item, DocumentError)])
    seen: dict[str, tuple[int, int]] = {}
    number = 0
    for group in (first, found):
        for item in group:
            number += 1
            try:
                yield _document(relative, number, item, seen, format_name, unimarc=unimarc)
            except DocumentError as error:
                yield LoadFailure(path=f"{relative}: record {number}", reason=error.rule)


def _document(
    relative: str,
    number: int,
    found: Found,
    seen: dict[str, tuple[int, int]],
    format_name: str,
    *,
    unimarc: bool,
) -> ParsedDocument:
    if isinstance(found, DocumentError):
        raise found
    said = describe(found, unimarc=unimarc)
    if not said.title:
        raise DocumentError("no title and no heading in this record")
    document_id = said.number or f"{relative}#{number}"
    content = hash(json.dumps([(f.tag, f.value, f.subfields) for f in found]))
    earlier, same = seen.setdefault(document_id, (number, content))
    if earlier != number:
        if same == content:
            raise DocumentError(f"the same as record {earlier} ({document_id})")
        document_id = f"{relative}#{number}"
    document = records.record(
        relative,
        document_id,
        said.fields,
        title=said.title[:300],
        format_name=format_name,
        labels=said.labels,
    )
    texts = []
    if said.annotation:
        texts.append(Block(text=said.annotation, kind="annotation"))
    if said.contents:
        texts.append(Block(text=said.contents, section="Contents"))
    return document.model_copy(update={"blocks": [*document.blocks, *texts]})
