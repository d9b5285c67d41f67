"""What was filled into the forms of PDF files is read with their pages."""

from __future__ import annotations

import io
from pathlib import Path

from loading import only, reason, texts
from pypdf import PdfWriter
from pypdf.generic import (
    ArrayObject,
    DictionaryObject,
    FloatObject,
    NameObject,
    NumberObject,
    TextStringObject,
)


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
