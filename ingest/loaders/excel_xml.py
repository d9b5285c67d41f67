"""Workbooks that Excel 2002 and 2003 wrote as one XML file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ingest.loaders.cells import Cell, cell_of
from ingest.loaders.sheets import Row, Sheet
from ingest.loaders.web.xml_tree import attribute, children, words

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_MAX_COLUMNS = 16_384


def sheets(root: Element) -> Iterator[Sheet]:
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
