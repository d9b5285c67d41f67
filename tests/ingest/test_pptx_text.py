"""Slides: what new versions of PowerPoint wrap in a choice, formulas, raised digits, pictures."""

from __future__ import annotations

import base64
import io
from pathlib import Path

from loading import only, texts
from lxml import etree
from pptx import Presentation
from pptx.util import Inches

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
    out = io.BytesIO()
    deck.save(out)
    assert texts(only(tmp_path / "m.pptx", out.getvalue())) == ["Area: ²x²\n\n[A map of the town]"]
