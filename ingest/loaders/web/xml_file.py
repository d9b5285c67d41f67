"""XML: feeds, FictionBook, Excel 2003, MARCXML and OpenDocument; else records, else text."""

from __future__ import annotations

from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path
from xml.etree.ElementTree import Element

from core.errors import DocumentError
from core.metadata import find_title, humanise
from ingest.loaders import marc, metadata
from ingest.loaders.limits import LoadLimits
from ingest.loaders.office import odf
from ingest.loaders.outline import Outline, table_text
from ingest.loaders.records import record_fields
from ingest.loaders.sheets import Cell, Row, Sheet, Workbook, cell_of
from ingest.loaders.text.encoding import decode
from ingest.loaders.web import html
from ingest.loaders.web.xml_tree import (
    attribute,
    child,
    children,
    descendants,
    local_name,
    parse_xml,
    words,
)
from ingest.types import Block, Loaded, LoadFailure, ParsedDocument

_TEXTS = ("encoded", "content", "description", "summary")
_AUTHORS = ("author", "creator")
_DATES = ("updated", "published", "pubDate", "date", "modified")


def feed_documents(found: list[Element], relative: str) -> Iterator[Loaded]:
    """Yield a document per entry; its id is what the feed calls it, within the file."""
    seen: set[str] = set()
    for number, entry in enumerate(found, start=1):
        given = words(child(entry, "guid")) or words(child(entry, "id")) or _link(entry)
        name = f"{relative}#{given or number}"
        if name in seen:
            name = f"{relative}#{number}"
        seen.add(name)
        title = " ".join(html_text(words(child(entry, "title"))).split())
        blocks = _blocks(entry) or ([Block(text=title)] if title else [])
        if not blocks:
            yield LoadFailure(path=f"{relative}: entry {number}", reason="no text in this entry")
            continue
        authors = [words(child(one, "name")) or words(one) for one in children(entry, *_AUTHORS)]
        described = metadata.normalise(
            {
                "title": title,
                "authors": authors,
                "keywords": [words(one) for one in children(entry, "category") if words(one)],
                "url": _link(entry),
                "updated_at": _date(entry),
            }
        )
        yield ParsedDocument(
            document_id=name,
            source=name,
            title=title or name,
            format="feed",
            blocks=blocks,
            metadata=described,
        )


def html_text(text: str) -> str:
    """Return the words of a piece of HTML."""
    return "\n\n".join(block.text for block in html.blocks_of(text)) if "<" in text else text


def _blocks(entry: Element) -> list[Block]:
    for name in _TEXTS:
        for element in children(entry, name):
            # HTML is written as text; XHTML stands there as elements.
            text = "".join(element.itertext())
            if text.strip():
                return html.blocks_of(text) if "<" in text else [Block(text=text.strip())]
    return []


def _link(entry: Element) -> str:
    for link in children(entry, "link"):
        if (link.get("rel") or "alternate") == "alternate":
            return link.get("href") or words(link)
    return ""


def _date(entry: Element) -> str:
    for name in _DATES:
        if text := words(child(entry, name)):
            try:
                return parsedate_to_datetime(text).isoformat()
            except (ValueError, TypeError):
                return text
    return ""


_LINES = frozenset(("p", "v", "subtitle", "text-author", "date"))
_MAX_BOOK_DEPTH = 100  # a bound against hostile nesting; chosen, not measured


def fiction_book(root: Element, relative: str) -> ParsedDocument:
    """Return the document of a book: its sections, and its annotation as a block of its own."""
    info = child(root, "description", "title-info")
    described = _metadata(info, child(root, "description", "publish-info"))
    outline = Outline()
    for body in children(root, "body"):
        if name := attribute(body, "name"):
            outline.heading(1, name.capitalize())
        _add(outline, body, 1)
    blocks = outline.finish()
    if annotation := _paragraphs(child(info, "annotation")):
        blocks.insert(0, Block(text=annotation, kind="annotation"))
    titles = described.get("title"), outline.first_heading
    return ParsedDocument.of_file(relative, "fb2", blocks, described, *titles)


def _paragraphs(element: Element | None) -> str:
    if element is None:
        return ""
    return "\n\n".join(text for part in descendants(element, *_LINES) if (text := words(part)))


def _add(outline: Outline, element: Element, level: int) -> None:
    for part in element:
        name = local_name(part)
        if name == "title":
            outline.heading(level, " ".join(words(line) for line in part))
        elif name == "v":
            outline.prose(words(part), tight=True)
        elif name in _LINES:
            outline.prose(words(part))
        elif name == "table":
            rows = [[words(cell) for cell in row] for row in children(part, "tr")]
            outline.add(table_text(rows), "table")
        elif name and level < _MAX_BOOK_DEPTH:  # sections, epigraphs, poems, citations
            _add(outline, part, level + 1)


def _metadata(info: Element | None, published: Element | None) -> dict[str, object]:
    if info is None:
        return {}
    people = []
    for author in children(info, "author"):
        names = [words(child(author, part)) for part in ("first-name", "middle-name", "last-name")]
        if any(names):
            people.append(" ".join(name for name in names if name))
    return metadata.normalise(
        {
            "title": words(child(info, "book-title")),
            "authors": people,
            "language": words(child(info, "lang")),
            "keywords": [words(one) for one in children(info, "genre")]
            + words(child(info, "keywords")).split(","),
            "year": words(child(published, "year")) or words(child(info, "date")),
            "publisher": words(child(published, "publisher")),
            "isbn": words(child(published, "isbn")),
        }
    )


_MAX_COLUMNS = 16_384  # as many as Excel has


def excel_sheets(root: Element) -> Iterator[Sheet]:
    """Yield the worksheets of a workbook."""
    for sheet in children(root, "Worksheet"):
        merged: list[tuple[int, int, int, int]] = []
        rows = [row for table in children(sheet, "Table") for row in _excel_rows(table, merged)]
        yield Sheet(attribute(sheet, "Name"), iter(rows), merged)


def _excel_rows(table: Element, merged: list[tuple[int, int, int, int]]) -> Iterator[Row]:
    number = 0
    for row in children(table, "Row"):
        number = _number(row, "Index", number + 1)
        cells: list[Cell] = []
        for cell in children(row, "Cell"):
            column = min(_number(cell, "Index", len(cells) + 1), _MAX_COLUMNS)
            cells += [None] * (column - 1 - len(cells))
            cells.append(_value(cell))
            if down := _number(cell, "MergeDown", 0):
                merged.append((number, column, number + down, column))
            cells += [None] * min(_number(cell, "MergeAcross", 0), _MAX_COLUMNS - len(cells))
        yield number, cells


def _number(element: Element, name: str, otherwise: int) -> int:
    value = attribute(element, name)
    return int(value) if value.isdigit() and len(value) < 8 else otherwise


def _value(cell: Element) -> Cell:
    data = next(children(cell, "Data"), None)
    text, kind = words(data), "" if data is None else attribute(data, "Type")
    if kind == "Number":
        try:
            return cell_of(float(text))
        except ValueError:
            return cell_of(text)
    if kind == "Boolean":
        return text == "1"
    return cell_of(text.removesuffix("T00:00:00.000") if kind == "DateTime" else text)


_TITLES = frozenset(("title", "head", "heading", "article-title", "bridgehead", "caption-title"))
# Elements whose name says nothing about what they hold.
TEXT_NAMES = frozenset(
    "p para simpara l lg s seg ab line v text item li listitem list-item entry td th cell verse "
    "quote blockquote note abstract dd dt term def description title head row tr sec section "
    "chapter div div1 div2 div3 paragraph string value".split()
)
_CODE = frozenset("programlisting screen literallayout code-block verbatim eg preformat".split())
_TABLES = frozenset(("table", "informaltable", "tgroup"))
_DROPPED = frozenset(
    "binary teiHeader style script journal-meta mathml math svg metadata info".split()
)
_NAMED = ("article-title", "title")
_MAX_DEPTH = 200  # a bound against hostile nesting; chosen, not measured


def read_metadata(root: Element) -> dict[str, object]:
    """Return the title, authors, keywords and date that known vocabularies give."""
    found: dict[str, object] = {}
    language = attribute(root, "lang")
    # DocBook's info, JATS' article-meta, TEI's fileDesc, Dublin Core's metadata.
    head = next(
        descendants(root, "article-meta", "fileDesc", "info", "articleinfo", "metadata"), None
    )
    if language:
        found["language"] = language
    if head is None:
        return found
    title = next(descendants(head, *_NAMED), None)
    authors = [words(one) for one in descendants(head, "author", "creator") if words(one)]
    for contributor in descendants(head, "contrib"):
        name = child(contributor, "name")
        parts = [words(child(name, part)) for part in ("given-names", "surname")]
        if any(parts):
            authors.append(" ".join(part for part in parts if part))
    keywords = [words(one) for one in descendants(head, "kwd", "keyword", "subject") if words(one)]
    year = next(descendants(head, "year", "pubdate", "date"), None)
    return found | {
        "title": words(title),
        "authors": authors,
        "keywords": keywords,
        "year": words(year),
    }


def _walk(outline: Outline, element: Element, level: int) -> None:
    name = local_name(element)
    if name in _TABLES and (rows := _rows(element)):
        outline.add(table_text(rows), "table")
    elif name in _CODE:
        outline.add("".join(element.itertext()).strip("\n"), "code")
    elif _is_text(element) or level > _MAX_DEPTH:
        _add_text(outline, element, name)
    else:
        for part in element:
            own = local_name(part)
            if own in _TITLES:
                outline.heading(level, words(part))
            elif own and own not in _DROPPED:
                _walk(outline, part, level + 1)


def _is_text(element: Element) -> bool:
    """Tell whether an element holds words itself, and not only elements that do."""
    if len(element) == 0:
        return True
    return bool((element.text or "").strip()) or any((part.tail or "").strip() for part in element)


def _add_text(outline: Outline, element: Element, name: str) -> None:
    """Add a paragraph; a short value of data is written with its name."""
    text = words(element)
    is_data = len(element) == 0 and name not in TEXT_NAMES and len(text) <= record_fields.LONG
    if text and is_data:
        outline.prose(f"{humanise(name)}: {text}", tight=True)
    else:
        outline.prose(text)


def _rows(table: Element) -> list[list[str]]:
    return [
        [words(cell) for cell in row if local_name(cell) in ("td", "th", "entry", "cell")]
        for row in descendants(table, "tr", "row")
    ]


_FEEDS = {"rss", "feed", "RDF"}
_MIN_RECORDS = 2  # one alone is a text; chosen, not measured


def load(path: Path, relative: str, limits: LoadLimits) -> Iterator[Loaded]:
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
    elif name in _FEEDS and (entries := list(descendants(root, "item", "entry"))):
        yield from feed_documents(entries, relative)
    elif name == "Workbook" and "spreadsheet" in str(root.tag):
        yield from Workbook(relative, "xls", limits).documents(excel_sheets(root), {})
    elif name == "FictionBook":
        yield fiction_book(root, relative)
    elif name == "document" and child(root, "body") is not None and "opendocument" in str(root.tag):
        yield from odf.documents(root, odf.metadata_of(root), relative, limits)
    elif rows := _find_records(root):
        yield from _records(rows, relative)
    else:
        yield _document(root, relative)


def _find_records(root: Element) -> list[Element]:
    """Return the children of the root when they are one kind of flat record."""
    rows = [element for element in root if local_name(element)]
    names = {local_name(row) for row in rows}
    if len(rows) < _MIN_RECORDS or len(names) != 1 or names & TEXT_NAMES:
        return []
    flat = all(
        len(row) > 1 and all(len(part) == 0 for part in row) and not (row.text or "").strip()
        for row in rows
    )
    return rows if flat else []


def _records(rows: list[Element], relative: str) -> Iterator[Loaded]:
    seen: dict[int, int] = {}
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
        try:
            record_fields.check_new(seen, document_id, number, "by number")
            if not fields:
                raise DocumentError("no text in this record")
        except DocumentError as error:
            path = f"{relative}: {local_name(row)} {number}"
            yield LoadFailure(path=path, reason=error.rule)
        else:
            yield record_fields.record(
                relative, document_id, fields, title=title[:300], format_name="xml"
            )


def _document(root: Element, relative: str) -> ParsedDocument:
    fields = metadata.normalise(read_metadata(root))
    outline = Outline()
    _walk(outline, root, 1)
    titles = fields.get("title"), outline.first_heading
    return ParsedDocument.of_file(relative, "xml", outline.finish(), fields, *titles)
