"""Rows of a table written in lines: their cells, and what each is called."""

from __future__ import annotations

import re
from typing import NamedTuple

MARK = "|"
NAMED, GAP = " — ", "; "  # behind the name of a row, and between its cells
PAIR = 2  # columns
DIGIT = re.compile(r"\d")
RULE = frozenset("-: ")  # of the line that Markdown puts below the first


class Cell(NamedTuple):
    """Hold a cell with the name of its column, "" for none, and its column, from 0."""

    label: str
    text: str
    column: int


def cells_of(line: str) -> list[str]:
    """Return the cells of a line; none where it is no row."""
    bare = line.strip()
    if bare.startswith(MARK) and bare.endswith(MARK):
        bare = bare[1:-1]  # else a mark at an end stands beside an empty cell
    cells = [one.strip() for one in bare.split(MARK)]
    return cells if len(cells) > 1 and any(cells) else []


def is_rule(cells: list[str]) -> bool:
    """Tell whether cells are the line between the names of the columns and the rows."""
    return all(one and RULE.issuperset(one) for one in cells)


def label_cells(header: str, row: str) -> list[Cell]:
    """Return the cells of a row that hold something; none where header and row differ in length."""
    labels, cells = cells_of(header), cells_of(row)
    if len(labels) != len(cells):
        return []
    pairs = enumerate(zip(labels, cells, strict=True))
    return [Cell(label, text, column) for column, (label, text) in pairs if text]


def is_header(cells: list[str], rows: list[list[str]]) -> bool:
    """Tell whether cells name columns; of two a first row as "Name | Ann" may be one of the others.

    So two are names only of what begins with a number.
    """
    if len(cells) > PAIR:
        return True
    numbers = sum(DIGIT.match(row[-1]) is not None for row in rows if len(row) == len(cells))
    return DIGIT.search(cells[-1]) is None and numbers * 2 > len(rows)


def write_cells(cells: list[Cell], columns: frozenset[int] = frozenset()) -> str:
    """Return a row as "Name — Column: cell; Column: cell", of these columns where any are given.

    The name is the cell of the first column.
    """
    name = next((one.text for one in cells if one.column == 0), "")
    rest = [one for one in cells if one.column and (not columns or one.column in columns)]
    written = GAP.join(f"{one.label}: {one.text}" if one.label else one.text for one in rest)
    return NAMED.join(part for part in (name, written) if part)
