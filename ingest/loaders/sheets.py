"""Spreadsheets of any format: a sheet that is a table gives records, any other one text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from itertools import chain, islice
from typing import Any

from core.errors import DocumentError
from core.metadata import find_title
from ingest.loaders.limits import LoadLimits
from ingest.loaders.outline import SECTION_SEPARATOR, Outline, table_text
from ingest.loaders.records import record_fields
from ingest.loaders.records.record_fields import Fields, Scalar
from ingest.types import Loaded, LoadFailure, ParsedDocument

Cell = Scalar | None
_HEADER_WITHIN = 10  # rows; chosen, not measured
_SHARE = 0.8  # of cells that are filled; source not recorded
_LONGEST_NAME = 120  # characters of a column's name; chosen, not measured
_NUMBER = re.compile(r"[-+]?[\d\s.,]+%?")
_ERRORS = frozenset(
    ("#REF!", "#N/A", "#DIV/0!", "#VALUE!", "#NAME?", "#NULL!", "#NUM!", "#GETTING_DATA")
)


def cell_of(value: object) -> Cell:
    """Return the value of a cell: dates as ISO text, whole numbers as int, errors as nothing."""
    if isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 1e15 else value
    if isinstance(value, datetime):
        return (value.date() if value.time() == time() else value).isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(value)
    text = "" if value is None else str(value).strip()
    return None if not text or text in _ERRORS else text


def find_header(rows: list[list[Cell]]) -> int | None:
    """Return where the header of a table is, or None when the rows are no table."""
    for at, row in enumerate(rows[:_HEADER_WITHIN]):
        body = rows[at + 1 :]
        used = {column for cells in rows[at:] for column in _filled_columns(cells)}
        filled = _filled_columns(row)
        if len(filled) < 2 or len(filled) < _SHARE * len(used):
            continue
        names = [str(row[column]).casefold() for column in filled]
        if (
            len(set(names)) < len(names)
            or not all(isinstance(row[column], str) for column in filled)
            or any(len(name) > _LONGEST_NAME or _NUMBER.fullmatch(name) for name in names)
        ):
            return None
        full = sum(len(_filled_columns(cells)) > 1 for cells in body)
        return at if body and full >= _SHARE * len(body) else None
    return None


def _filled_columns(cells: list[Cell]) -> list[int]:
    return [at for at, cell in enumerate(cells) if cell is not None]


def names_of(cells: list[Cell]) -> list[str]:
    """Return a name for every column, in one line; unnamed ones are numbered."""
    return [
        " ".join(str(cell).split()) if cell is not None else f"column {at}"
        for at, cell in enumerate(cells, start=1)
    ]


Row = tuple[int, list[Cell]]
_SAMPLED = 200  # rows that show whether there is a table; chosen, not measured


@dataclass
class Sheet:
    """Hold one sheet: its rows with their numbers from 1, and the areas that are one cell.

    An area is (first row, first column, last row, last column), counted from 1.
    """

    name: str
    rows: Iterator[Row]
    merged: list[tuple[int, int, int, int]] = field(default_factory=list)
    hidden: bool = False
    unseen: int = 0  # rows and columns of it that are hidden and not among its rows
    pale: list[int] = field(default_factory=list)  # rows so far of cells that nobody can make out


class Workbook:
    """Turn the sheets of one file into documents; make one per file."""

    def __init__(self, relative: str, format_name: str, limits: LoadLimits) -> None:
        self._relative = relative
        self._format = format_name
        self._limits = limits
        self._outline = Outline()
        self._ids: dict[str, tuple[str, int]] = {}

    def documents(self, sheets: Iterable[Sheet], described: dict[str, Any]) -> Iterator[Loaded]:
        """Yield the records of the tables, then one document with the text of the other sheets."""
        found = False
        for sheet in sheets:
            if sheet.hidden:
                reason = "a hidden sheet is not read; show it in the spreadsheet to have it read"
                yield LoadFailure(path=f"{self._relative}#{sheet.name}", reason=reason)
                continue
            if sheet.unseen:
                reason = f"{sheet.unseen} hidden rows or columns are not read; show them"
                yield LoadFailure(path=f"{self._relative}#{sheet.name}", reason=reason)
            for item in self._sheet(sheet):
                found = True
                yield item
            if sheet.pale:
                reason = f"{len(sheet.pale)} cells in the colour of their paper are not read"
                yield LoadFailure(path=f"{self._relative}#{sheet.name}", reason=reason)
        blocks = self._outline.finish()
        if not blocks and not found:
            raise DocumentError("no text in any sheet")
        if blocks:
            title = described.get("title")
            yield ParsedDocument.of_file(self._relative, self._format, blocks, described, title)

    def _sheet(self, sheet: Sheet) -> Iterator[Loaded]:
        rows = (row for row in _fill_merged(sheet) if any(cell is not None for cell in row[1]))
        first = list(islice(rows, _SAMPLED))
        at = find_header([cells for _, cells in first])
        if at is None:
            self._add_text(sheet.name, chain(first, rows))
            return
        self._add_text(sheet.name, first[:at])
        yield from self._records(sheet.name, first[at][1], chain(first[at + 1 :], rows))

    def _add_text(self, name: str, rows: Iterable[Row]) -> None:
        lines: list[list[str]] = []
        size = 0
        for _, cells in rows:
            lines.append(
                ["" if cell is None else record_fields.write_value(cell) for cell in cells]
            )
            size += sum(map(len, lines[-1]))
            if size > self._limits.max_characters:
                raise DocumentError(
                    f"more than {self._limits.max_characters} characters (ingest.max_characters) in"
                    f" the sheet {name!r}; split the file or raise it"
                )
        if lines:
            self._outline.heading(1, name)
            self._outline.add(table_text(lines), "table")

    def _records(self, sheet: str, first: list[Cell], rows: Iterable[Row]) -> Iterator[Loaded]:
        header = names_of(first)
        id_name, title_name = record_fields.find_id(header), find_title(header)
        figures, last = Counter[int](), 0
        for number, cells in rows:
            apart, last = last and number > last + 1, number
            if apart and _begins_table(cells, figures):
                header, figures = names_of(cells), Counter()
                id_name, title_name = record_fields.find_id(header), find_title(header)
                continue
            figures.update(at for at, cell in enumerate(cells) if isinstance(cell, int | float))
            more = (f"column {at}" for at in range(len(header) + 1, len(cells) + 1))
            named_cells = dict(zip([*header, *more], cells, strict=False))
            fields: Fields = {name: cell for name, cell in named_cells.items() if cell is not None}
            try:
                document_id = self._id(sheet, number, named_cells.get(id_name or ""))
            except DocumentError as error:
                yield LoadFailure(path=f"{self._relative}#{sheet}!{number}", reason=error.rule)
                continue
            named = fields.get(title_name or "") or record_fields.first_text(fields, id_name)
            named = named or f"{sheet}, row {number}"
            document = record_fields.record(
                self._relative,
                document_id,
                fields,
                title=str(named)[:300],
                format_name=self._format,
            )
            place = {"section": f"{sheet}{SECTION_SEPARATOR}row {number}"}
            blocks = [block.model_copy(update=place) for block in document.blocks]
            yield document.model_copy(update={"blocks": blocks})

    def _id(self, sheet: str, number: int, given: Cell) -> str:
        """Return the record's own id; two sheets may count from 1, one sheet may not do so twice.

        Raises DocumentError.
        """
        if given is None or isinstance(given, bool | float):
            return f"{self._relative}#{sheet}!{number}"
        for document_id in (str(given), f"{sheet}#{given}"):
            other, row = self._ids.setdefault(document_id, (sheet, number))
            if (other, row) == (sheet, number):
                return document_id
            if other == sheet:
                break
        raise DocumentError(f"the id '{given}' is already used in row {row} of the sheet")


def _begins_table(cells: list[Cell], figures: Counter[int]) -> bool:
    """Tell whether a row below a gap heads another table: it has names where there were numbers."""
    named = {str(cells[at]) for at in _filled_columns(cells) if isinstance(cells[at], str)}
    below = any(at < len(cells) and isinstance(cells[at], str) for at in figures)
    return below and len(named) == len(_filled_columns(cells)) > 1


def _fill_merged(sheet: Sheet) -> Iterator[Row]:
    """Write the value of each merged area of several rows into all rows of it.

    Across columns it stays once: a title over the whole table is one text.
    """
    areas = sorted((area for area in sheet.merged if area[2] > area[0]), reverse=True)
    active: dict[tuple[int, int, int, int], Cell] = {}
    for number, cells in sheet.rows:
        active = {area: value for area, value in active.items() if area[2] >= number}
        while areas and areas[-1][0] <= number:
            area = areas.pop()
            if area[0] == number and area[1] <= len(cells):
                active[area] = cells[area[1] - 1]
        for (_, left, _, _), value in active.items():
            cells += [None] * (left - len(cells))
            cells[left - 1] = value
        yield number, cells
