"""Office files as other programs write them: "Strict Open XML", styles that a library refuses."""

from __future__ import annotations

import datetime
import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import docx
import openpyxl
import pptx
from loading import loaded, only, reason, texts
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE


def rewritten(raw: bytes, change: Callable[[str, bytes], bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))
    return out.getvalue()


def strict(_name: str, part: bytes) -> bytes:
    address = rb"http://schemas\.openxmlformats\.org/(officeDocument|\w+ml)/2006/"
    return re.sub(address, rb"http://purl.oclc.org/ooxml/\1/", part)


def workbook() -> bytes:
    out = io.BytesIO()
    book = openpyxl.Workbook()
    book.active.append(["name", "added", "price"])
    for name in ("a", "b"):
        book.active.append([name, datetime.date(2024, 1, 2), 5])
    book.save(out)
    return out.getvalue()


def test_strict_open_xml_is_read(tmp_path: Path) -> None:
    letter, deck, out, slides = docx.Document(), pptx.Presentation(), io.BytesIO(), io.BytesIO()
    letter.add_paragraph("Words of a letter")
    letter.save(out)
    deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = "Words of a slide"
    deck.save(slides)
    assert texts(only(tmp_path / "s.docx", rewritten(out.getvalue(), strict))) == [
        "Words of a letter"
    ]
    found = only(tmp_path / "s.pptx", rewritten(slides.getvalue(), strict))
    assert found.title == "Words of a slide"
    documents, failures = loaded(tmp_path / "s.xlsx", rewritten(workbook(), strict))
    assert not failures and documents[0].fields == {"name": "a", "added": "2024-01-02", "price": 5}


def test_styles_that_the_library_refuses_cost_no_dates(tmp_path: Path) -> None:
    def spoiled(name: str, part: bytes) -> bytes:
        return (
            part.replace(b"<fills ", b"<fills><fill/></fills><fills ") if "styles" in name else part
        )

    documents, failures = loaded(tmp_path / "f.xlsx", rewritten(workbook(), spoiled))
    assert not failures
    assert [document.fields["added"] for document in documents] == ["2024-01-02"] * 2


def test_a_workbook_that_is_damaged_stays_so(tmp_path: Path) -> None:
    def cut(name: str, part: bytes) -> bytes:
        return part[:100] if "styles" in name else part

    assert "damaged" in reason(tmp_path / "c.xlsx", rewritten(workbook(), cut))


def retyped(raw: bytes, main: bytes, other: bytes) -> bytes:
    assert main in zipfile.ZipFile(io.BytesIO(raw)).read("[Content_Types].xml")
    return rewritten(raw, lambda _, part: part.replace(main, other))


def test_templates_slide_shows_and_files_with_macros_are_read(tmp_path: Path) -> None:
    letter, deck, out, slides = docx.Document(), pptx.Presentation(), io.BytesIO(), io.BytesIO()
    letter.add_paragraph("Words of a letter")
    letter.save(out)
    deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = "Words of a slide"
    deck.save(slides)
    start, word = b"application/vnd.", b"openxmlformats-officedocument.wordprocessingml."
    for name, kind in (
        ("a.docm", b"ms-word.document.macroEnabled"),
        ("a.dotx", word + b"template"),
        ("a.dotm", b"ms-word.template.macroEnabledTemplate"),
    ):
        raw = retyped(out.getvalue(), start + word + b"document.main", start + kind + b".main")
        assert texts(only(tmp_path / name, raw)) == ["Words of a letter"]
    show = b"openxmlformats-officedocument.presentationml."
    for name, kind in (
        ("a.pptm", b"ms-powerpoint.presentation.macroEnabled"),
        ("a.ppsx", show + b"slideshow"),
        ("a.ppsm", b"ms-powerpoint.slideshow.macroEnabled"),
        ("a.potx", show + b"template"),
    ):
        raw = retyped(
            slides.getvalue(), start + show + b"presentation.main", start + kind + b".main"
        )
        assert only(tmp_path / name, raw).title == "Words of a slide"


def test_charts_of_kinds_that_the_library_does_not_know(tmp_path: Path) -> None:
    data = CategoryChartData()
    data.categories = [datetime.date(2024, 1, 1), datetime.date(2024, 2, 1)]
    data.add_series("Sales", (1.5, 2))
    deck, out = pptx.Presentation(), io.BytesIO()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    slide.shapes.add_chart(XL_CHART_TYPE.AREA, 0, 0, 999, 999, data)
    deck.save(out)
    raw = rewritten(out.getvalue(), lambda _, part: part.replace(b"c:areaChart", b"c:area3DChart"))
    assert texts(only(tmp_path / "c.pptx", raw)) == [" | Sales\n2024-01-01 | 1.5\n2024-02-01 | 2"]
