"""Rows of tables in documents are records, in their place; what is no table stays text."""

from __future__ import annotations

from pathlib import Path

import docx
import pytest
from loading import LIMITS, loaded

from core.metadata import TABLE_FORMAT
from ingest.loaders.parse import table_records
from ingest.types import Block, ParsedDocument

PLAN = """# Hall 2

| Machine | Pressure (bar) | Status |
|---|---|---|
| Pump P-1 | 12.5 | open |
| Pump P-2 | 1,600 | closed |
| Total | 1,612.5 | |
"""


def rows_of(text: str, **limits: int) -> list[ParsedDocument]:
    block = Block(text=text, kind="table", section="Guide › Hall 2")
    document = ParsedDocument.of_file("a.md", "markdown", [block], {"version": "2"})
    return list(table_records(document, LIMITS.model_copy(update=limits)))


def test_a_row_has_numbers_its_place_and_what_is_known_of_its_document(tmp_path: Path) -> None:
    documents, failures = loaded(tmp_path / "a.md", PLAN.encode())
    whole, first, second = documents
    assert not failures and not whole.is_record and "Pump P-1 | 12.5" in whole.blocks[0].text
    assert first.is_record and first.format == TABLE_FORMAT and first.title == "Pump P-1"
    assert first.document_id == first.source == "a.md#Hall 2!1"
    assert second.fields == {"Machine": "Pump P-2", "Pressure": 1600, "Status": "closed"}
    assert first.blocks[0].text == "machine: Pump P-1\npressure: 12.5 bar\nstatus: open"
    assert first.blocks[0].section == "Hall 2 › row 1"
    row = rows_of("A | B\nx | 1\ny | 2")[0]
    assert row.metadata == {"version": "2"}


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["1,200", "3,400"], [1200, 3400]),
        (["1,5", "12,25"], [1.5, 12.25]),
        (["1,250", "3,5"], [1.25, 3.5]),
        (["1.250", "2"], [1.25, 2]),
        (["1 200 ₽", "3 400 ₽"], [1200, 3400]),
        (["$1,200.50", "$3"], [1200.5, 3]),
        (["−3", "+4"], [-3, 4]),
        (["5%", "12 %"], [5, 12]),
        (["16 bar", "2 kg"], ["16 bar", "2 kg"]),
        (["007", "008"], ["007", "008"]),
        (["1.2.3", "1.2.3"], ["1.2.3", "1.2.3"]),
        (["12:30", "1"], ["12:30", "1"]),
    ],
)
def test_a_column_of_numbers_is_read_as_it_is_written(cells: list[str], numbers: list[str]) -> None:
    found = rows_of("\n".join(["What | How many | Kind", *(f"{c} | {c} | k" for c in cells)]))
    assert [row.fields["How many"] for row in found] == numbers


@pytest.mark.parametrize(
    "text",
    [
        "Only one\n1\n2",
        "Name | Size\nx | 1",  # one row
        "1 | 2\n3 | 4\n5 | 6",  # no header
        "Name | Name\nx | 1\ny | 2",
        "Name | Size\nx | 1\ny | 2 | 3",  # a cell too many: of which column is not known
        "Weight | twelve\nHeight | three\nColour | red",  # about one thing
        "Name | What it does\nopen | opens a file\nclose | closes it",  # nothing to filter
        "",
        "|\n|\n|",
    ],
)
def test_what_is_no_table_of_things_stays_text(text: str) -> None:
    assert rows_of(text) == []


def test_a_table_that_is_too_long_or_wide_stays_text() -> None:
    text = "\n".join(["Name | Size", *(f"n{n} | {n}" for n in range(1, 100_001))])
    assert rows_of(text) == []
    assert len(rows_of(text, max_table_rows=100_000)) == 100_000
    assert rows_of("Name | Size\nx | 1\ny | 2", max_fields=1) == []
    assert rows_of("Name | Size\nx | 1\ny | 2", max_table_rows=0) == []


def test_headings_within_a_table_are_no_rows_and_equal_names_are_numbered() -> None:
    found = rows_of("Name | Size, m² | № | Size m\nBig ones\nx | 1 | 7 | 2\ny | 2 | 8 | 3")
    assert [row.fields for row in found] == [
        {"Name": "x", "Size m²": 1, "column 3": 7, "Size m": 2},
        {"Name": "y", "Size m²": 2, "column 3": 8, "Size m": 3},
    ]


def test_tables_of_html_and_word_are_read(tmp_path: Path) -> None:
    rows = [("Ticket", "State", "Hours"), ("T-1", "open", "4"), ("T-2", "open", "9")]
    cells = "".join(f"<tr>{''.join(f'<td>{c}</td>' for c in row)}</tr>" for row in rows)
    page = f"<h1>Desk</h1><p>Words.</p><table>{cells}</table>"
    word = docx.Document()
    table = word.add_table(rows=3, cols=3)
    for at, row in enumerate(rows):
        for column, cell in enumerate(row):
            table.cell(at, column).text = cell
    word.save(str(tmp_path / "c.docx"))
    for name, content in (("a.html", page.encode()), ("c.docx", None)):
        documents, failures = loaded(tmp_path / name, content)
        assert not failures
        assert [one.fields for one in documents if one.is_record] == [
            {"Ticket": "T-1", "State": "open", "Hours": 4},
            {"Ticket": "T-2", "State": "open", "Hours": 9},
        ], name


def test_a_table_goes_on_at_the_top_of_the_next_page() -> None:
    texts = ["Words.\n\nName | Size\nx | 1\ny | 2", "Name | Size\nz | 3\n\nWords."]
    blocks = [Block(text=text, page=page) for page, text in enumerate(texts, start=1)]
    document = ParsedDocument.of_file("a.pdf", "pdf", blocks, {})
    found = list(table_records(document, LIMITS))
    assert [(row.title, row.blocks[0].page) for row in found] == [("x", 1), ("y", 1), ("z", 2)]
    assert found[2].source == "a.pdf#table!3"
