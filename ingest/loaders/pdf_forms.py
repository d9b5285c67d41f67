"""What was filled into the fields of a PDF form, which is no part of the text of its pages."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_PASSWORD_FIELD = 1 << 13
_PUSH_BUTTON = 1 << 16
_MAX_DEPTH = 20


def filled_in(path: Path) -> dict[int, str]:
    """Return the filled fields by page, counted from 0, as "name: value" paragraphs.

    A form that cannot be read has none: the text of the pages is what matters.
    """
    from pypdf import PdfReader

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    found: dict[int, str] = {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reader = PdfReader(path, strict=False)
            if reader.is_encrypted and not reader.decrypt(""):
                return {}
            for number, page in enumerate(reader.pages):
                if lines := dict.fromkeys(_lines(page)):
                    found[number] = "\n\n".join(lines)
    except MemoryError:
        raise
    except Exception:  # damaged files raise anything
        return found
    return found


def _lines(page: Any) -> Iterator[str]:  # noqa: ANN401 (a pypdf page)
    for reference in page.get("/Annots") or ():
        annotation = reference.get_object()
        if annotation.get("/Subtype") == "/Widget" and (value := _value(annotation)):
            label = _inherited(annotation, "/TU") or _inherited(annotation, "/T")
            yield f"{label}: {value}" if label else value


def _value(widget: Any) -> str:  # noqa: ANN401
    kind = _inherited(widget, "/FT")
    flags = _inherited(widget, "/Ff")
    number = int(flags) if isinstance(flags, int) else 0
    if kind == "/Btn":
        state = str(widget.get("/AS") or "")
        return "" if number & _PUSH_BUTTON or state in ("", "/Off") else state.lstrip("/")
    if kind == "/Tx" and number & _PASSWORD_FIELD:
        return ""
    value = _inherited(widget, "/V")
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    return str(value).strip() if isinstance(value, str) and not value.startswith("/") else ""


def _inherited(widget: Any, key: str) -> Any:  # noqa: ANN401
    """Return an entry of a widget or of the field it belongs to."""
    for _ in range(_MAX_DEPTH):
        if (value := widget.get(key)) is not None:
            return value.get_object() if hasattr(value, "get_object") else value
        if (parent := widget.get("/Parent")) is None:
            return None
        widget = parent.get_object()
    return None
