"""The words of PPTX elements: runs, formulas, raised digits, descriptions of pictures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ingest.loaders.docx_math import linear
from ingest.loaders.pictures import picture_text
from ingest.loaders.raised import raised
from ingest.loaders.xml_tree import attribute, child, children, local_name

# Elements of lxml, which has no types.
Element = Any
_SHOWN = frozenset("sp grpSp graphicFrame cxnSp pic m r br fld".split())


def unwrap(slide: Element) -> None:
    """Put what new versions of PowerPoint show in the place of its choice of versions."""
    for choice in [e for e in slide.iter() if local_name(e) == "AlternateContent"]:
        chosen, around = child(choice, "Choice"), choice.getparent()
        if chosen is None or around is None:
            continue
        at = around.index(choice)
        shown = [part for part in chosen if local_name(part) in _SHOWN]
        for offset, part in enumerate(shown):
            around.insert(at + offset, part)
        around.remove(choice)
    # Ink: python-pptx takes it for a shape and fails.
    for ink in [e for e in slide.iter() if local_name(e) == "contentPart"]:
        ink.getparent().remove(ink)


def text_of(holder: Element) -> str:
    """Return the text of a shape or a cell, a line per paragraph."""
    body = child(holder, "txBody")
    return "" if body is None else "\n".join("".join(_pieces(p)) for p in children(body, "p"))


def _pieces(paragraph: Element) -> Iterator[str]:
    for part in paragraph:
        name = local_name(part)
        if name in ("r", "fld"):
            text = "".join(t.text or "" for t in children(part, "t"))
            yield raised(text) if _is_raised(part) else text
        elif name == "br":
            yield "\n"
        elif name == "m":
            yield "".join(linear(one) for one in part.iter() if local_name(one) == "oMath")


def _is_raised(run: Element) -> bool:
    properties = child(run, "rPr")
    shift = "" if properties is None else attribute(properties, "baseline")
    return bool(shift) and not shift.startswith(("-", "0"))


def picture_of(shape: Element) -> str:
    """Return what the author said of a picture, or ""."""
    named = child(shape, "nvPicPr", "cNvPr")
    return "" if named is None else picture_text(attribute(named, "descr")).strip()
