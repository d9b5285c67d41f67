"""XML of any kind: its root element says how it is read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from core.errors import DocumentError
from core.metadata import find_title
from ingest.loaders import excel_xml, metadata
from ingest.loaders.limits import LoadLimits
from ingest.loaders.marc import marc
from ingest.loaders.office import odf
from ingest.loaders.records import record_fields
from ingest.loaders.sheets import Workbook
from ingest.loaders.text.encoding import decode
from ingest.loaders.web import feed, fiction_book, html, xml_text
from ingest.loaders.web.xml_tree import child, descendants, local_name, parse_xml, words
from ingest.types import LoadFailure, ParsedDocument

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_FEEDS = {"rss", "feed", "RDF"}
_MIN_RECORDS = 2


def load(path: Path, relative: str, limits: LoadLimits) -> Iterator[ParsedDocument | LoadFailure]:
    """Yield the records or the document of an XML file."""
    data = path.read_bytes()
    if not data.strip():
        raise DocumentError("the file holds only white space")
    try:
        root = parse_xml(data)
    except DocumentError as error:
        yield from marc.load_damaged_xml(data, relative, error)
        return
    name = local_name(root)
    if name == "svg":
        raise DocumentError("an SVG drawing, no text")
    if next(descendants(root, "datafield"), None) is not None:
        yield from marc.load_xml(root, relative)
    elif name == "html":
        yield from html.load(relative, decode(data, ".html"))
    elif name in _FEEDS and (entries := feed.entries(root)):
        yield from feed.documents(entries, relative)
    elif name == "Workbook" and "spreadsheet" in str(root.tag):
        yield from Workbook(relative, "xls", limits).documents(excel_xml.sheets(root), {})
    elif name == "FictionBook":
        yield fiction_book.document(root, relative)
    elif name == "document" and child(root, "body") is not None and "opendocument" in str(root.tag):
        yield from odf.load_flat(root, relative, limits)
    elif rows := _rows(root):
        yield from _records(rows, relative)
    else:
        yield _document(root, relative)


def _rows(root: Element) -> list[Element]:
    """Return the children of the root when they are one kind of flat record."""
    rows = [element for element in root if local_name(element)]
    names = {local_name(row) for row in rows}
    if len(rows) < _MIN_RECORDS or len(names) != 1 or names & xml_text.TEXT_NAMES:
        return []
    flat = all(
        len(row) > 1 and all(len(part) == 0 for part in row) and not (row.text or "").strip()
        for row in rows
    )
    return rows if flat else []


def _records(rows: list[Element], relative: str) -> Iterator[ParsedDocument | LoadFailure]:
    seen: dict[str, int] = {}
    for number, row in enumerate(rows, start=1):
        values: dict[str, list[str]] = {key: [value] for key, value in row.attrib.items()}
        for part in row:
            if local_name(part) and (text := words(part)):
                values.setdefault(local_name(part), []).append(text)
        fields: record_fields.Fields = {
            name: found[0] if len(found) == 1 else list[record_fields.Scalar](found)
            for name, found in values.items()
        }
        id_name, title_name = record_fields.find_id(fields), find_title(fields)
        document_id = str(fields[id_name]) if id_name else f"{relative}#{number}"
        title = str(fields[title_name]) if title_name else f"{local_name(row)} {number}"
        path = f"{relative}: {local_name(row)} {number}"
        earlier = seen.setdefault(document_id, number)
        if not fields:
            yield LoadFailure(path=path, reason="no text in this record")
        elif earlier != number:
            reason = f"the id {document_id!r} is already used by number {earlier}"
            yield LoadFailure(path=path, reason=reason)
        else:
            yield record_fields.record(
                relative, document_id, fields, title=title[:300], format_name="xml"
            )


def _document(root: Element, relative: str) -> ParsedDocument:
    described = metadata.normalise(xml_text.described(root))
    blocks, heading = xml_text.blocks(root)
    if not blocks:
        raise DocumentError("no text found in it")
    return ParsedDocument(
        document_id=relative,
        source=relative,
        title=str(described.get("title") or heading or PurePosixPath(relative).stem),
        format="xml",
        blocks=blocks,
        metadata=described,
    )
