"""The sheets of an OpenDocument spreadsheet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from core.errors import DocumentError
from ingest.loaders.cells import Cell, cell_of
from ingest.loaders.office.odf_text import text_of
from ingest.loaders.sheets import Row, Sheet
from ingest.loaders.web.xml_tree import attribute, children, descendants, local_name

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_MAX_COLUMNS = 16_384
_MAX_REPEATED = 1_000
_MAX_DEPTH = 20


def sheets(root: Element, book: Element) -> Iterator[Sheet]:
    """Yield the sheets below the body of a content.xml; `root` has the styles that hide them."""
    unseen = {
        attribute(style, "name")
        for style in descendants(root, "style")
        for properties in children(style, "table-properties")
        if attribute(properties, "display") == "false"
    }
    for table in children(book, "table"):
        merged: list[tuple[int, int, int, int]] = []
        rows = list(_rows(table, merged))
        hidden = attribute(table, "style-name") in unseen
        yield Sheet(attribute(table, "name"), iter(rows), merged, hidden)


def _row_elements(table: Element, depth: int = 0) -> Iterator[Element]:
    for part in table:
        name = local_name(part)
        if name == "table-row":
            yield part
        elif name.startswith("table-") and name.endswith(("rows", "group")) and depth < _MAX_DEPTH:
            yield from _row_elements(part, depth + 1)


def _rows(table: Element, merged: list[tuple[int, int, int, int]]) -> Iterator[Row]:
    number = 1
    for element in _row_elements(table):
        repeated = _count(element, "number-rows-repeated")
        cells = _cells(element, number, merged)
        if cells and repeated > _MAX_REPEATED:
            raise DocumentError(
                f"row {number} of the sheet {attribute(table, 'name')!r} is repeated {repeated}"
                f" times; at most {_MAX_REPEATED} are read"
            )
        for at in range(repeated if cells else 0):
            yield number + at, list(cells)
        number += repeated


def _cells(row: Element, number: int, merged: list[tuple[int, int, int, int]]) -> list[Cell]:
    cells: list[Cell] = []
    for element in children(row, "table-cell", "covered-table-cell"):
        value = _value(element) if local_name(element) == "table-cell" else None
        repeated = _count(element, "number-columns-repeated")
        down = _count(element, "number-rows-spanned")
        if down > 1:
            left = len(cells) + 1
            across = _count(element, "number-columns-spanned")
            merged.append((number, left, number + down - 1, left + across - 1))
        cells += [value] * min(repeated, _MAX_COLUMNS - len(cells))
    while cells and cells[-1] is None:
        cells.pop()
    return cells


def _count(element: Element, name: str) -> int:
    value = attribute(element, name)
    return int(value) if value.isdigit() and len(value) < 10 else 1


def _value(cell: Element) -> Cell:
    kind = attribute(cell, "value-type")
    if kind in ("float", "percentage", "currency"):
        try:
            return cell_of(float(attribute(cell, "value")))
        except ValueError:
            pass
    if kind == "date":
        return cell_of(attribute(cell, "date-value").removesuffix("T00:00:00"))
    if kind == "boolean":
        return attribute(cell, "boolean-value") == "true"
    return cell_of(text_of(cell))
