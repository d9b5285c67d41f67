"""Rows of tables that are written in lines."""

from __future__ import annotations

import pytest

from core.language.table_rows import cells_of, is_header, label_cells, write_cells

HEADER, ROW = "Ticket | Adults | Children", "| Single | 4 EUR |  |"


def test_cells_have_the_names_of_their_columns() -> None:
    cells = label_cells(HEADER, "| Single | 4 EUR | 2 EUR |")
    assert write_cells(cells) == "Single — Adults: 4 EUR; Children: 2 EUR"
    assert write_cells(cells, frozenset({2})) == "Single — Children: 2 EUR"


def test_empty_cells_are_left_out() -> None:
    assert write_cells(label_cells(HEADER, "Single | 4 EUR | ")) == "Single — Adults: 4 EUR"
    assert write_cells(label_cells("A | B | C", " | 4 | 5")) == "B: 4; C: 5"


@pytest.mark.parametrize("row", ["", "Single", "Single | 4 EUR", "a | b | c | d"])
def test_a_row_of_another_length_has_no_cells(row: str) -> None:
    assert label_cells(HEADER, row) == []


def test_two_columns_have_names_where_numbers_follow() -> None:
    names, numbers = [["Phone", "Ann"], ["Room", "Attic"]], [["North", "80"], ["South", "60"]]
    assert not is_header(["Name", "Ann"], names)
    assert is_header(["Track", "Speed"], numbers)
    assert is_header(cells_of(HEADER), names)
