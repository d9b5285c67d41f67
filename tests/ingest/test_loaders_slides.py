"""Presentations: a section and a page per slide, in the order of reading; formulas, pictures."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

from loading import LIMITS, loaded, only, reason, saved, sections, texts, with_parts
from lxml import etree
from odf_files import odf
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches


def box(slide: Any, text: str, left: float, top: float) -> None:  # noqa: ANN401 (python-pptx)
    shape = slide.shapes.add_textbox(Inches(left), Inches(top), Inches(2), Inches(1))
    shape.text_frame.text = text


def deck_of(*titles: str) -> Any:  # noqa: ANN401
    deck = Presentation()
    for title in titles:
        slide = deck.slides.add_slide(deck.slide_layouts[5])
        slide.shapes.title.text = title
    return deck


def test_slides_are_sections_and_pages(tmp_path: Path) -> None:
    deck = Presentation()
    first = deck.slides.add_slide(deck.slide_layouts[1])
    first.shapes.title.text = "Итоги года"
    first.placeholders[1].text = "Продажи выросли\nРасходы упали"
    first.notes_slide.notes_text_frame.text = "Говорить медленно"
    deck.slides.add_slide(deck.slide_layouts[6])
    third = deck.slides.add_slide(deck.slide_layouts[6])
    box(third, "без заголовка", 1, 1)
    document = only(tmp_path / "a.pptx", saved(deck))
    assert document.title == "Итоги года" and document.metadata["slides"] == 3
    assert sections(document) == [
        "Slide 1 › Итоги года", "Slide 1 › Итоги года › Notes", "Slide 3",
    ]  # fmt: skip
    assert [block.page for block in document.blocks] == [1, 1, 3]
    assert texts(document)[0] == "Продажи выросли\nРасходы упали"


def test_shapes_are_read_as_they_stand(tmp_path: Path) -> None:
    deck = deck_of("Order")
    slide = deck.slides[0]
    box(slide, "below", 1, 4)
    box(slide, "right", 5, 2)
    box(slide, "left", 1, 2.05)
    group = slide.shapes.add_group_shape()
    group.shapes.add_textbox(0, Inches(6), 9, 9).text_frame.text = "in a group"
    assert texts(only(tmp_path / "o.pptx", saved(deck))) == ["left\n\nright\n\nbelow\n\nin a group"]


def test_tables_and_charts(tmp_path: Path) -> None:
    deck = deck_of("Numbers")
    shapes = deck.slides[0].shapes
    table = shapes.add_table(2, 2, 0, Inches(2), Inches(4), Inches(1)).table
    for at, text in enumerate(["город", "люди", "Киев", "3 млн"]):
        table.cell(at // 2, at % 2).text = text
    data = CategoryChartData()
    data.categories = ["2023", "2024"]
    data.add_series("Sales", (1, 2.5))
    shapes.add_chart(XL_CHART_TYPE.LINE, 0, Inches(5), Inches(3), Inches(2), data)
    document = only(tmp_path / "n.pptx", saved(deck))
    assert [block.kind for block in document.blocks] == ["table", "table"]
    assert texts(document)[0] == "город | люди\nКиев | 3 млн"
    assert texts(document)[1].endswith("2023 | 1\n2024 | 2.5")


def test_hidden_and_missing_slides_are_named(tmp_path: Path) -> None:
    deck = deck_of("One", "Two", "Three")
    deck.slides[1]._element.set("show", "0")
    lacking = with_parts(
        saved(deck), lambda name, part: None if name == "ppt/slides/slide3.xml" else part
    )
    documents, failures = loaded(tmp_path / "h.pptx", lacking)
    if documents:  # python-pptx opens it: what is there is read
        assert "hidden" in failures["h.pptx: slide 2"] and "h.pptx: slide 3" in failures
    else:
        assert "damaged" in failures["h.pptx"]
    deck = deck_of("One", "Two")
    deck.slides[1]._element.set("show", "0")
    documents, failures = loaded(tmp_path / "i.pptx", saved(deck))
    assert len(documents) == 1 and list(failures) == ["i.pptx: slide 2"]


def test_presentations_that_cannot_be_read(tmp_path: Path) -> None:
    empty = Presentation()
    empty.slides.add_slide(empty.slide_layouts[6])
    assert "no text on any slide" in reason(tmp_path / "e.pptx", saved(empty))
    assert "damaged" in reason(tmp_path / "d.pptx", saved(empty)[:5000])
    many = LIMITS.model_copy(update={"max_pages": 1})
    assert "2 slides; the limit is 1" in reason(tmp_path / "m.pptx", saved(deck_of("a", "b")), many)
    assert "password" in reason(tmp_path / "p.odp", odf("presentation", "", manifest=LOCKED))


LOCKED = "<manifest:file-entry><manifest:encryption-data/></manifest:file-entry>"
PAGE = (
    '<draw:page draw:name="p1">'
    '<draw:frame presentation:class="title"><draw:text-box><text:p>Вступ</text:p></draw:text-box>'
    "</draw:frame><draw:frame><draw:text-box><text:list><text:list-item><text:p>перше</text:p>"
    "</text:list-item><text:list-item><text:p>друге</text:p></text:list-item></text:list>"
    '</draw:text-box></draw:frame><draw:frame presentation:class="footer"><draw:text-box>'
    "<text:p>footer</text:p></draw:text-box></draw:frame><presentation:notes><draw:frame>"
    "<draw:text-box><text:p>a note</text:p></draw:text-box></draw:frame></presentation:notes>"
    "</draw:page>"
)


def test_odp(tmp_path: Path) -> None:
    document = only(tmp_path / "a.odp", odf("presentation", PAGE * 2))
    assert sections(document)[:2] == ["Slide 1 › Вступ", "Slide 1 › Вступ › Notes"]
    assert texts(document) == ["- перше\n- друге", "a note"] * 2
    assert [block.page for block in document.blocks] == [1, 1, 2, 2]


MC = "http://schemas.openxmlformats.org/markup-compatibility/2006"
A14 = "http://schemas.microsoft.com/office/drawing/2010/main"
M = "http://schemas.openxmlformats.org/officeDocument/2006/math"
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
FORMULA = (
    f"<a14:m xmlns:a14='{A14}'><m:oMath xmlns:m='{M}'><m:sSup><m:e><m:r><m:t>x</m:t></m:r></m:e>"
    "<m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup></m:oMath></a14:m>"
)


def test_a_box_with_a_formula_is_read_once(tmp_path: Path) -> None:
    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    shape = slide.shapes.add_textbox(0, 0, Inches(2), Inches(1))
    shape.text_frame.text = "Area: "
    run = shape.text_frame.paragraphs[0].add_run()
    run.text = "2"
    run.font._element.set("baseline", "30000")
    shape.text_frame.paragraphs[0]._p.append(etree.fromstring(FORMULA))
    wrapped = etree.fromstring(
        f"<mc:AlternateContent xmlns:mc='{MC}'><mc:Choice Requires='a14'/>"
        "<mc:Fallback><x/></mc:Fallback></mc:AlternateContent>"
    )
    element = shape._element
    element.getparent().replace(element, wrapped)
    wrapped[0].append(element)
    picture = slide.shapes.add_picture(io.BytesIO(PIXEL), 0, Inches(3))
    picture._element.nvPicPr.cNvPr.set("descr", "A map of the town")
    assert texts(only(tmp_path / "m.pptx", saved(deck))) == ["Area: ²x²\n\n[A map of the town]"]
