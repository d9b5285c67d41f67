"""PDF: pages that are pictures, text layers that are no text, and forms that were filled in."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from loading import loaded, only, reason, texts
from pypdf import PdfWriter
from pypdf.generic import (
    ArrayObject,
    DictionaryObject,
    FloatObject,
    NameObject,
    NumberObject,
    StreamObject,
    TextStringObject,
)

from core.errors import DocumentError
from ingest.loaders.pdf import check_readable, ranges
from ingest.loaders.tesseract import HINT

PICTURE = b"q 100 0 0 100 0 0 cm BI /W 1 /H 1 /CS /G /BPC 8 ID \xff EI Q"


def text_at(*lines: tuple[int, int, str]) -> bytes:
    """Return the content of a page with texts at (x, y)."""
    shown = (f"BT /F1 12 Tf {x} {y} Td ({text}) Tj ET" for x, y, text in lines)
    return "\n".join(shown).encode("latin-1")


def pdf(*contents: bytes) -> bytes:
    writer = PdfWriter()
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    for content in contents:
        page = writer.add_blank_page(600, 800)
        fonts = DictionaryObject({NameObject("/F1"): writer._add_object(font)})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        stream = StreamObject()
        stream.set_data(content)
        page[NameObject("/Contents")] = writer._add_object(stream)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def test_pages_that_are_pictures_are_named(tmp_path: Path) -> None:
    words = text_at((50, 700, "Words of a page"))
    content = pdf(PICTURE, words, PICTURE, PICTURE, b"", PICTURE)
    documents, failures = loaded(tmp_path / "s.pdf", content)
    assert texts(documents[0]) == ["Words of a page"] and documents[0].blocks[0].page == 2
    assert failures == {"s.pdf: pages 1, 3-4, 6": f"no text layer; {HINT}"}
    assert list(loaded(tmp_path / "o.pdf", pdf(PICTURE, words))[1]) == ["o.pdf: page 1"]


def test_a_picture_beside_words_is_no_failure(tmp_path: Path) -> None:
    documents, failures = loaded(
        tmp_path / "w.pdf", pdf(PICTURE + text_at((9, 9, "Caption of it")))
    )
    assert documents and not failures


@pytest.mark.parametrize("numbers", [[], [4], [1, 2], [1, 3, 4, 5, 9]])
def test_ranges(numbers: list[int]) -> None:
    shown = {0: "", 1: "4", 2: "1-2", 5: "1, 3-5, 9"}
    assert ranges(numbers) == shown[len(numbers)]


def test_words_of_mixed_scripts_are_no_text() -> None:
    with pytest.raises(DocumentError) as refused:
        check_readable(["ଋҩǥƹ ୡȥဎ ҩဌʾဎಱ"] * 4)
    assert "OCR" in refused.value.rule
    check_readable(["ଋҩǥƹ ୡȥဎ"])  # too little to tell
    check_readable(["Ελληνικά и русские слова with English ones and 中文日本語カタカナ"] * 9)
    check_readable(["αβx yδz μmol Δtemp"] * 9)


def test_rows_of_a_table_keep_their_cells(tmp_path: Path) -> None:
    rows = [("Name", "Price", "Note"), ("Bread", "5", "fresh"), ("Old milk", "7", "none")]
    cells = [
        (x, 700 - 20 * at, cell)
        for at, row in enumerate(rows)
        for x, cell in zip((50, 200, 350), row, strict=True)
    ]
    before = (50, 720, "A line of words above the table ends here.")
    content = pdf(b"\n".join(text_at(line) for line in (before, *cells)))
    (document, *records), _ = loaded(tmp_path / "t.pdf", content)
    assert [(one.fields["Price"], one.blocks[0].page) for one in records] == [(5, 1), (7, 1)]
    assert texts(document) == [
        "A line of words above the table ends here.\n\n"
        "Name | Price | Note\nBread | 5 | fresh\nOld milk | 7 | none"
    ]


def test_cells_side_by_side_are_parted_by_the_lines_between_them(tmp_path: Path) -> None:
    """Where nothing is drawn between them, they are words of a line."""
    rows = [("Tram", "Fault", "Hours"), ("T-11", "brake", "4"), ("T-12", "doors", "9")]
    cells = [(x, 700 - 20 * n, text) for n, row in enumerate(rows)
             for x, text in zip((50, 84, 120), row, strict=True)]  # fmt: skip
    lines = b"".join(b"%d 650 m %d 716 l S\n" % (x, x) for x in (48, 81, 117, 160))
    ruled, _ = loaded(tmp_path / "r.pdf", pdf(text_at(*cells) + b"\n" + lines))
    assert "T-11 | brake | 4" in ruled[0].blocks[0].text
    assert [one.fields for one in ruled[1:]] == [
        {"Tram": "T-11", "Fault": "brake", "Hours": 4},
        {"Tram": "T-12", "Fault": "doors", "Hours": 9},
    ]
    plain, _ = loaded(tmp_path / "p.pdf", pdf(text_at(*cells)))
    assert "T-11 brake 4" in plain[0].blocks[0].text and len(plain) == 1


def test_a_gap_that_stands_alone_or_follows_a_number_is_none(tmp_path: Path) -> None:
    lines = [(50, 700, "1."), (90, 700, "First item"), (50, 680, "2."), (90, 680, "Second item")]
    lines += [(50, 640, "Words of a line that is as long as others are"), (50, 600, "Left")]
    lines += [(300, 600, "Right"), (50, 560, "More words of a line that is as long as others")]
    content = pdf(b"\n".join(text_at(line) for line in lines))
    (document,), _ = loaded(tmp_path / "g.pdf", content)
    assert " | " not in texts(document)[0] and "Left Right" in texts(document)[0]


def form(*fields: dict[str, object]) -> bytes:
    """Return a PDF of a blank page with these fields."""
    writer = PdfWriter()
    page = writer.add_blank_page(300, 300)
    widgets = ArrayObject()
    for at, entries in enumerate(fields):
        widget = DictionaryObject(
            {
                NameObject("/Type"): NameObject("/Annot"),
                NameObject("/Subtype"): NameObject("/Widget"),
                NameObject("/Rect"): ArrayObject(map(FloatObject, (10, 20 * at, 100, 20 * at + 9))),
            }
        )
        for key, value in entries.items():
            shown = str(value)
            widget[NameObject(key)] = (
                NumberObject(value)
                if isinstance(value, int)
                else NameObject(shown)
                if shown.startswith("/")
                else TextStringObject(shown)
            )
        widgets.append(writer._add_object(widget))
    page[NameObject("/Annots")] = widgets
    root = DictionaryObject({NameObject("/Fields"): widgets})
    writer._root_object[NameObject("/AcroForm")] = writer._add_object(root)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def test_values_with_their_labels(tmp_path: Path) -> None:
    content = form(
        {"/FT": "/Tx", "/T": "f1", "/TU": "Имя", "/V": "Тарас"},
        {"/FT": "/Tx", "/T": "city", "/V": "Київ"},
        {"/FT": "/Tx", "/T": "empty", "/V": ""},
        {"/FT": "/Tx", "/T": "secret", "/V": "hunter2", "/Ff": 1 << 13},
        {"/FT": "/Btn", "/T": "agree", "/AS": "/Yes"},
        {"/FT": "/Btn", "/T": "refuse", "/AS": "/Off"},
        {"/FT": "/Btn", "/T": "send", "/AS": "/Yes", "/Ff": 1 << 16},
    )
    document = only(tmp_path / "f.pdf", content)
    assert texts(document) == ["Имя: Тарас\n\ncity: Київ\n\nagree: Yes"]
    assert document.blocks[0].page == 1


def test_an_empty_form_has_no_text(tmp_path: Path) -> None:
    assert "no text layer" in reason(tmp_path / "e.pdf", form({"/FT": "/Tx", "/T": "name"}))
