"""Spreadsheets: tables give records, other sheets text; XLSX, XLS and ODS alike."""

from __future__ import annotations

import datetime
import struct
from collections.abc import Sequence
from pathlib import Path

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loading import LIMITS, loaded, only, reason, saved, sections, texts, with_parts
from odf_files import ods

from ingest.loaders.sheets import cell_of, find_header

BOOKS: list[list[object]] = [
    ["id", "title", "year", "price", "added"],
    [1, "Кобзар", 1840, 12.5, datetime.date(2024, 1, 2)],
    [2, "Война и мир", 1869, 20.0, datetime.datetime(2024, 1, 3, 10, 30)],
    [3, "红楼梦", 1791, None, None],
]


def xlsx(**sheets: Sequence[Sequence[object]]) -> openpyxl.Workbook:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(list(row))
    return book


def test_a_table_gives_a_record_per_row(tmp_path: Path) -> None:
    documents, failures = loaded(tmp_path / "b.xlsx", saved(xlsx(Books=BOOKS)))
    assert not failures
    assert [document.document_id for document in documents] == ["1", "2", "3"]
    first, second, third = documents
    assert first.is_record and first.title == "Кобзар" and first.source == "b.xlsx#1"
    assert first.fields == {
        "id": 1, "title": "Кобзар", "year": 1840, "price": 12.5, "added": "2024-01-02",
    }  # fmt: skip
    assert second.fields["price"] == 20 and second.fields["added"] == "2024-01-03T10:30:00"
    assert sections(third) == ["Books › row 4"] and "added" not in third.fields


def test_rows_above_the_header_and_other_sheets_are_text(tmp_path: Path) -> None:
    notes = [["Read me first"], ["The prices are in hryvnias", None, "2024"], [5]]
    book = xlsx(Books=[["Catalogue of 2024"], [], *BOOKS], Notes=notes)
    documents, _ = loaded(tmp_path / "b.xlsx", saved(book))
    assert sections(documents[0]) == ["Books › row 4"]
    (text,) = [document for document in documents if not document.is_record]
    assert sections(text) == ["Books", "Notes"] and text.document_id == "b.xlsx"
    assert texts(text)[1] == "Read me first\nThe prices are in hryvnias |  | 2024\n5"


def test_rows_without_an_id_or_a_title(tmp_path: Path) -> None:
    rows = [["Город", "Страна"], ["Киев", "Украина"], ["Львов", "Украина"]]
    documents, _ = loaded(tmp_path / "c.xlsx", saved(xlsx(Cities=rows, More=rows)))
    assert [document.document_id for document in documents] == [
        "c.xlsx#Cities!2", "c.xlsx#Cities!3", "c.xlsx#More!2", "c.xlsx#More!3",
    ]  # fmt: skip
    assert documents[0].title == "Киев"


def test_equal_ids_within_a_sheet_and_in_two(tmp_path: Path) -> None:
    book = xlsx(A=[*BOOKS, [2, "Again", 1, 1, None]], B=BOOKS)
    documents, failures = loaded(tmp_path / "e.xlsx", saved(book))
    assert [document.document_id for document in documents] == ["1", "2", "3", "B#1", "B#2", "B#3"]
    assert failures == {"e.xlsx#A!5": "the id '2' is already used in row 3 of the sheet"}


def test_a_cell_over_several_rows_holds_for_all(tmp_path: Path) -> None:
    rows = [["region", "city"], ["East", "A"], [None, "B"], ["West", "C"]]
    book = xlsx(S=rows)
    book["S"].merge_cells("A2:A3")
    documents, _ = loaded(tmp_path / "m.xlsx", saved(book))
    assert [document.fields["region"] for document in documents] == ["East", "East", "West"]


def test_hidden_sheets_are_named(tmp_path: Path) -> None:
    book = xlsx(Books=BOOKS, Secret=BOOKS)
    book["Secret"].sheet_state = "hidden"
    documents, failures = loaded(tmp_path / "h.xlsx", saved(book))
    assert len(documents) == 3 and list(failures) == ["h.xlsx#Secret"]


def test_a_claimed_size_costs_nothing(tmp_path: Path) -> None:
    def claiming(name: str, part: bytes) -> bytes:
        if not name.endswith("sheet1.xml"):
            return part
        assert b'ref="A1:E4"' in part
        return part.replace(b'ref="A1:E4"', b'ref="A1:XFD1048576"')

    content = with_parts(saved(xlsx(Books=BOOKS)), claiming)
    documents, _ = loaded(tmp_path / "big.xlsx", content)
    assert len(documents) == 3


def test_spreadsheets_that_cannot_be_read(tmp_path: Path) -> None:
    assert "no text in any sheet" in reason(tmp_path / "e.xlsx", saved(xlsx(S=[])))
    assert "damaged" in reason(tmp_path / "d.xlsx", saved(xlsx(S=BOOKS))[:-300])
    assert "OLE container" in reason(
        tmp_path / "p.xlsx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
    )
    assert "damaged" in reason(tmp_path / "x.xls", b"\x09\x08\x10\x00junk" * 50)
    long = xlsx(S=[["word " * 30], *[["word " * 30]] * 40])
    limits = LIMITS.model_copy(update={"max_characters": 500})
    assert "max_characters" in reason(tmp_path / "l.xlsx", saved(long), limits)


def xls(rows: Sequence[Sequence[str | float]]) -> bytes:
    """Write a workbook as Excel 2.1 did: the one XLS that is a plain list of cells."""

    def part(kind: int, data: bytes) -> bytes:
        return struct.pack("<HH", kind, len(data)) + data

    out = part(0x0009, struct.pack("<HH", 2, 0x10)) + part(0x0042, struct.pack("<H", 1251))
    for at, row in enumerate(rows):
        for column, value in enumerate(row):
            place = struct.pack("<HH", at, column) + b"\0\0\0"
            if isinstance(value, str):
                text = value.encode("cp1251")
                out += part(0x0004, place + bytes([len(text)]) + text)
            else:
                out += part(0x0003, place + struct.pack("<d", value))
    return out + part(0x000A, b"")


def test_xls(tmp_path: Path) -> None:
    content = xls([["id", "название", "год"], [1, "Идиот", 1869], [2, "Бесы", 1872]])
    documents, _ = loaded(tmp_path / "old.xls", content)
    assert [document.title for document in documents] == ["Идиот", "Бесы"]
    assert documents[0].fields == {"id": 1, "название": "Идиот", "год": 1869}


def test_ods(tmp_path: Path) -> None:
    content = ods({"Книги": [["id", "title", "year"], [1, "Кобзар", 1840], [2, "红楼梦", 1791]]})
    documents, _ = loaded(tmp_path / "b.ods", content)
    assert [(document.document_id, document.title) for document in documents] == [
        ("1", "Кобзар"),
        ("2", "红楼梦"),
    ]
    assert documents[1].fields["year"] == 1791 and sections(documents[1]) == ["Книги › row 3"]


def test_ods_repeats_within_reason(tmp_path: Path) -> None:
    assert "repeated 1000000 times" in reason(
        tmp_path / "r.ods", ods({"S": [["only text"]]}, repeated=1_000_000)
    )
    assert texts(only(tmp_path / "t.ods", ods({"S": [["only text"]]}, repeated=2))) == [
        "only text\nonly text"
    ]


CELLS = st.one_of(st.none(), st.text(max_size=8), st.integers(), st.floats(), st.booleans())


@given(st.lists(st.lists(CELLS, max_size=5), max_size=8))
def test_a_header_is_names_only(rows: list[list[object]]) -> None:
    cells = [[cell_of(value) for value in row] for row in rows]
    at = find_header(cells)
    if at is not None:
        names = [cell for cell in cells[at] if cell is not None]
        assert len(names) > 1 and all(isinstance(name, str) for name in names)
        assert len({str(name).casefold() for name in names}) == len(names)
        assert cells[at + 1 :]


@pytest.mark.parametrize(
    "rows",
    [
        [["Report"], ["Total", 5], ["Sum", 6]],
        [["a", "a"], [1, 2]],
        [[1, 2], [3, 4]],
        [["Dear all"], ["some text"]],
        [["name", "year"]],
    ],
)
def test_no_table(rows: list[list[object]]) -> None:
    assert find_header([[cell_of(value) for value in row] for row in rows]) is None


EXCEL_XML = """<?xml version="1.0"?><?mso-application progid="Excel.Sheet"?>
<Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet"
 xmlns:ss="urn:schemas-microsoft-com:office:spreadsheet"><Worksheet ss:Name="Книги"><Table>
<Row><Cell><Data ss:Type="String">id</Data></Cell><Cell><Data ss:Type="String">title</Data></Cell>
<Cell><Data ss:Type="String">added</Data></Cell></Row>
<Row ss:Index="5"><Cell><Data ss:Type="Number">1</Data></Cell>
<Cell><Data ss:Type="String">Кобзар</Data></Cell>
<Cell><Data ss:Type="DateTime">2024-01-02T00:00:00.000</Data></Cell></Row>
<Row><Cell><Data ss:Type="Number">2</Data></Cell>
<Cell ss:Index="3"><Data ss:Type="DateTime">2024-01-03T00:00:00.000</Data></Cell></Row>
</Table></Worksheet></Workbook>"""


def test_other_things_under_the_name_of_xls(tmp_path: Path) -> None:
    first, second = loaded(tmp_path / "x.xls", EXCEL_XML.encode())[0]
    assert first.fields == {"id": 1, "title": "Кобзар", "added": "2024-01-02"}
    assert sections(first) == ["Книги › row 5"] and second.fields["added"] == "2024-01-03"
    tabs, _ = loaded(tmp_path / "t.xls", "id\tназвание\n7\tИдиот\n".encode("cp1251"))
    assert tabs[0].fields == {"id": "7", "название": "Идиот"}
    page = "<html><body><table><tr><td>a</td><td>b</td></tr></table></body></html>"
    assert texts(only(tmp_path / "h.xls", page.encode())) == ["a | b"]


def test_a_second_table_below_a_gap_has_names_of_its_own(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in (
        ["Machine", "Pressure"], ["P-1", 12.5], ["P-2", 16], [], ["P-3", 9],
        [], ["Person", "City"], ["Ann", "Kyiv"], ["Bob", "Lviv"],
    ):  # fmt: skip
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    documents, failures = loaded(tmp_path / "a.xlsx")
    assert not failures
    assert [one.fields for one in documents][-2:] == [
        {"Person": "Ann", "City": "Kyiv"},
        {"Person": "Bob", "City": "Lviv"},
    ]
    assert documents[2].fields == {"Machine": "P-3", "Pressure": 9}
