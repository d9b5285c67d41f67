"""Feeds, FictionBook and Excel's XML, known by the root element."""

from __future__ import annotations

from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from core.errors import DocumentError
from ingest.loaders import metadata
from ingest.loaders.outline import Outline, table_text
from ingest.loaders.sheets import Cell, Row, Sheet, cell_of
from ingest.loaders.web import html
from ingest.loaders.web.xml_tree import attribute, child, children, descendants, local_name, words
from ingest.types import Block, LoadFailure, ParsedDocument

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_TEXTS = ("encoded", "content", "description", "summary")
_AUTHORS = ("author", "creator")
_DATES = ("updated", "published", "pubDate", "date", "modified")


def feed_entries(root: Element) -> list[Element]:
    """Return the entries of a feed."""
    return list(descendants(root, "item", "entry"))


def feed_documents(found: list[Element], relative: str) -> Iterator[ParsedDocument | LoadFailure]:
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
    return "\n\n".join(block.text for block in _html_blocks(text)) if "<" in text else text


def _html_blocks(text: str) -> list[Block]:
    return [block for document in html.load("entry", text) for block in document.blocks]


def _blocks(entry: Element) -> list[Block]:
    for name in _TEXTS:
        for element in children(entry, name):
            # HTML is written as text; XHTML stands there as elements.
            text = "".join(element.itertext())
            if text.strip():
                return _html_blocks(text) if "<" in text else [Block(text=text.strip())]
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
_MAX_DEPTH = 100


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
    if not blocks:
        raise DocumentError("no text found in it")
    return ParsedDocument(
        document_id=relative,
        source=relative,
        title=str(described.get("title") or outline.first_heading or PurePosixPath(relative).stem),
        format="fb2",
        blocks=blocks,
        metadata=described,
    )


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
        elif name and level < _MAX_DEPTH:  # sections, epigraphs, poems, citations
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


_MAX_COLUMNS = 16_384


def excel_sheets(root: Element) -> Iterator[Sheet]:
    """Yield the worksheets of a workbook."""
    for sheet in children(root, "Worksheet"):
        merged: list[tuple[int, int, int, int]] = []
        rows = [row for table in children(sheet, "Table") for row in _rows(table, merged)]
        yield Sheet(attribute(sheet, "Name"), iter(rows), merged)


def _rows(table: Element, merged: list[tuple[int, int, int, int]]) -> Iterator[Row]:
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
