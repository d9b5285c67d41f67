"""Cells of spreadsheets, and whether rows of them are a table.

They are when one of the first rows names (with different short texts, none of them a number) at
least four fifths of the columns used from there on, and at least four fifths of the rows below fill
two cells or more. Rows above that header stay as text of the sheet.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta

from ingest.loaders.records.record_fields import Scalar

Cell = Scalar | None
_HEADER_WITHIN = 10
_SHARE = 0.8
_LONGEST_NAME = 120
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
        used = {column for cells in rows[at:] for column in _filled(cells)}
        filled = _filled(row)
        if len(filled) < 2 or len(filled) < _SHARE * len(used):
            continue
        names = [str(row[column]).casefold() for column in filled]
        if (
            len(set(names)) < len(names)
            or not all(isinstance(row[column], str) for column in filled)
            or any(len(name) > _LONGEST_NAME or _NUMBER.fullmatch(name) for name in names)
        ):
            return None
        full = sum(len(_filled(cells)) > 1 for cells in body)
        return at if body and full >= _SHARE * len(body) else None
    return None


def _filled(cells: list[Cell]) -> list[int]:
    return [at for at, cell in enumerate(cells) if cell is not None]


def names_of(cells: list[Cell]) -> list[str]:
    """Return a name for every column, in one line; unnamed ones are numbered."""
    return [
        " ".join(str(cell).split()) if cell is not None else f"column {at}"
        for at, cell in enumerate(cells, start=1)
    ]


def shown(cell: Cell) -> str:
    """Write a cell as a person reads it."""
    return "" if cell is None else str(cell).lower() if isinstance(cell, bool) else str(cell)
