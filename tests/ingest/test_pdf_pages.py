"""PDF: pages that are pictures, and text layers that are no text."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from loading import loaded, texts
from pypdf import PdfWriter
from pypdf.generic import DictionaryObject, NameObject, StreamObject

from core.errors import DocumentError
from ingest.loaders.pdf_text_layer import check_readable, ranges

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
    assert failures == {"s.pdf: pages 1, 3-4, 6": "no text layer; OCR it first"}
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
