"""Office files as other programs write them, and old ones, which are refused with advice."""

from __future__ import annotations

import datetime
import io
import re
import zipfile
from pathlib import Path

import docx
import openpyxl
import pptx
import pytest
from loading import loaded, only, reason, saved, texts, with_parts
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE

from ingest.loaders.formats import known_formats


def strict(_name: str, part: bytes) -> bytes:
    address = rb"http://schemas\.openxmlformats\.org/(officeDocument|\w+ml)/2006/"
    return re.sub(address, rb"http://purl.oclc.org/ooxml/\1/", part)


def workbook() -> bytes:
    book = openpyxl.Workbook()
    book.active.append(["name", "added", "price"])
    for name in ("a", "b"):
        book.active.append([name, datetime.date(2024, 1, 2), 5])
    return saved(book)


def letter() -> bytes:
    document = docx.Document()
    document.add_paragraph("Words of a letter")
    return saved(document)


def slides() -> bytes:
    deck = pptx.Presentation()
    deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = "Words of a slide"
    return saved(deck)


def test_strict_open_xml_is_read(tmp_path: Path) -> None:
    assert texts(only(tmp_path / "s.docx", with_parts(letter(), strict))) == ["Words of a letter"]
    found = only(tmp_path / "s.pptx", with_parts(slides(), strict))
    assert found.title == "Words of a slide"
    documents, failures = loaded(tmp_path / "s.xlsx", with_parts(workbook(), strict))
    assert not failures and documents[0].fields == {"name": "a", "added": "2024-01-02", "price": 5}


def test_styles_that_the_library_refuses_cost_no_dates(tmp_path: Path) -> None:
    def spoiled(name: str, part: bytes) -> bytes:
        return (
            part.replace(b"<fills ", b"<fills><fill/></fills><fills ") if "styles" in name else part
        )

    documents, failures = loaded(tmp_path / "f.xlsx", with_parts(workbook(), spoiled))
    assert not failures
    assert [document.fields["added"] for document in documents] == ["2024-01-02"] * 2


def test_a_workbook_that_is_damaged_stays_so(tmp_path: Path) -> None:
    def cut(name: str, part: bytes) -> bytes:
        return part[:100] if "styles" in name else part

    assert "damaged" in reason(tmp_path / "c.xlsx", with_parts(workbook(), cut))


def retyped(raw: bytes, main: bytes, other: bytes) -> bytes:
    assert main in zipfile.ZipFile(io.BytesIO(raw)).read("[Content_Types].xml")
    return with_parts(raw, lambda _, part: part.replace(main, other))


def test_templates_slide_shows_and_files_with_macros_are_read(tmp_path: Path) -> None:
    start, word = b"application/vnd.", b"openxmlformats-officedocument.wordprocessingml."
    for name, kind in (
        ("a.docm", b"ms-word.document.macroEnabled"),
        ("a.dotx", word + b"template"),
        ("a.dotm", b"ms-word.template.macroEnabledTemplate"),
    ):
        raw = retyped(letter(), start + word + b"document.main", start + kind + b".main")
        assert texts(only(tmp_path / name, raw)) == ["Words of a letter"]
    show = b"openxmlformats-officedocument.presentationml."
    for name, kind in (
        ("a.pptm", b"ms-powerpoint.presentation.macroEnabled"),
        ("a.ppsx", show + b"slideshow"),
        ("a.ppsm", b"ms-powerpoint.slideshow.macroEnabled"),
        ("a.potx", show + b"template"),
    ):
        raw = retyped(slides(), start + show + b"presentation.main", start + kind + b".main")
        assert only(tmp_path / name, raw).title == "Words of a slide"


def test_charts_of_kinds_that_the_library_does_not_know(tmp_path: Path) -> None:
    data = CategoryChartData()
    data.categories = [datetime.date(2024, 1, 1), datetime.date(2024, 2, 1)]
    data.add_series("Sales", (1.5, 2))
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    slide.shapes.add_chart(XL_CHART_TYPE.AREA, 0, 0, 999, 999, data)
    raw = with_parts(saved(deck), lambda _, part: part.replace(b"c:areaChart", b"c:area3DChart"))
    assert texts(only(tmp_path / "c.pptx", raw)) == [" | Sales\n2024-01-01 | 1.5\n2024-02-01 | 2"]


OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)


@pytest.mark.parametrize(("name", "target"), [("a.doc", "DOCX"), ("a.ppt", "PPTX")])
def test_refused(tmp_path: Path, name: str, target: str) -> None:
    expected = f"format .{name.split('.')[1]} is not read; save it as {target}"
    assert reason(tmp_path / name, OLE) == expected
    assert ".doc " not in known_formats() and ".ppt " not in known_formats()


def test_read_as_what_it_is(tmp_path: Path) -> None:
    assert texts(only(tmp_path / "r.doc", b"{\\rtf1 rich text}")) == ["rich text"]
    page = b"<html><body><p>a page</p></body></html>"
    assert texts(only(tmp_path / "h.doc", page)) == ["a page"]


@pytest.mark.parametrize("charset", ["windows-1251", "koi8-r", "gb2312", "iso-8859-1"])
def test_the_declared_encoding_of_a_page(tmp_path: Path, charset: str) -> None:
    text = {"gb2312": "图书馆开放", "iso-8859-1": "Käse"}.get(charset, "Дом")
    page = f"<html><head><meta charset='{charset}'></head><body><p>{text}</p></body></html>"
    assert texts(only(tmp_path / "p.html", page.encode(charset))) == [text]


def test_a_wrong_declaration_is_not_believed(tmp_path: Path) -> None:
    page = "<html><head><meta charset='iso-8859-1'></head><body>Библиотека открыта</body></html>"
    assert texts(only(tmp_path / "w.html", page.encode("cp1251"))) == ["Библиотека открыта"]
