"""PPTX to blocks: a section and a page per slide, in the order a viewer reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pptx import Presentation
from pptx.enum.shapes import PP_PLACEHOLDER
from pptx.opc.constants import RELATIONSHIP_TYPE

from core.errors import DocumentError
from ingest.loaders.limits import LoadLimits, because, check_pages, report_damage
from ingest.loaders.office import ooxml
from ingest.loaders.office.docx_text import linear
from ingest.loaders.office.ooxml import chart_rows
from ingest.loaders.office.unseen import empty_unseen_shapes, paper_of, scheme_of
from ingest.loaders.outline import Outline, picture_text, table_text, write_superscript
from ingest.loaders.web.xml_tree import child, children, local_name, parse_xml, value_of
from ingest.types import Block, Loaded, LoadFailure, ParsedDocument

# Elements of lxml, which has no types.
Element = Any
_SHOWN = frozenset("sp grpSp graphicFrame cxnSp pic m r br fld".split())


def unwrap(slide: Element) -> None:
    """Replace each choice between versions by the one that new versions of PowerPoint show."""
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


def _empty_unseen(slide: Any) -> int:  # noqa: ANN401 (a slide of python-pptx)
    """Empty what viewers of a slide do not see; return how much had words."""
    layout = slide.slide_layout
    master = layout.slide_master
    theme = parse_xml(master.part.part_related_by(RELATIONSHIP_TYPE.THEME).blob)
    scheme = scheme_of(theme, master._element)
    masters = [slide._element, layout._element, master._element]
    return empty_unseen_shapes(slide._element, paper_of(masters, scheme), scheme)


def text_of(holder: Element) -> str:
    """Return the text of a shape or a cell, a line per paragraph."""
    body = child(holder, "txBody")
    return "" if body is None else "\n".join("".join(_pieces(p)) for p in children(body, "p"))


def _pieces(paragraph: Element) -> Iterator[str]:
    for part in paragraph:
        name = local_name(part)
        if name in ("r", "fld"):
            text = "".join(t.text or "" for t in children(part, "t"))
            yield write_superscript(text) if _is_raised(part) else text
        elif name == "br":
            yield "\n"
        elif name == "m":
            yield "".join(linear(one) for one in part.iter() if local_name(one) == "oMath")


def _is_raised(run: Element) -> bool:
    shift = value_of(run, "rPr", name="baseline")
    return bool(shift) and not shift.startswith(("-", "0"))


# Shapes of python-pptx have no common type that knows what a graphic frame may hold.
Shape = Any
_MAX_DEPTH = 20  # a bound against hostile nesting; chosen, not measured
# Shapes whose tops differ by less than this share of the slide stand beside each other.
_SAME_LINE = 0.04  # chosen, not measured
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}relIds"
_DIAGRAM_DATA = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}dm"
_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"


def load(path: Path, relative: str, limits: LoadLimits) -> Iterator[Loaded]:
    """Yield the one document of a presentation; a hidden or damaged slide is a failure."""
    ooxml.check(path, "PPTX", limits, "ppt")
    with report_damage("the PPTX is damaged"):
        deck = Presentation(ooxml.make_readable(path))
    height = int(deck.slide_height or 0) or 1
    blocks: list[Block] = []
    first_title, unseen = "", 0
    for number, (slide, problem) in enumerate(_slides(deck, limits), start=1):
        try:
            if problem:
                raise DocumentError(problem)
            unwrap(slide._element)
            unseen += _empty_unseen(slide)
            shape = slide.shapes.title
            title = " ".join(text_of(shape._element).split()) if shape is not None else ""
            blocks += _read_slide(slide, number, title, height)
            first_title = first_title or title
        except DocumentError as error:
            yield LoadFailure(path=f"{relative}: slide {number}", reason=error.rule)
        except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
            reason = f"the slide is damaged{because(error)}"
            yield LoadFailure(path=f"{relative}: slide {number}", reason=reason)
    if not blocks:
        raise DocumentError("no text on any slide; if they are pictures, OCR them first")
    described = ooxml.read_properties(deck.core_properties)
    named = described.get("title") or ""
    if str(named).lower() in {"powerpoint presentation", "presentation"}:
        named = described.pop("title") and ""
    described |= {"slides": len(deck.slides._sldIdLst)}
    found = ParsedDocument.of_file(relative, "pptx", blocks, described, named, first_title)
    yield found.model_copy(update={"unseen": unseen})


def _slides(deck: Any, limits: LoadLimits) -> Iterator[tuple[Any, str]]:  # noqa: ANN401
    ids = list(deck.slides._sldIdLst)
    check_pages(len(ids), "PPTX", "slides", limits)
    for entry in ids:
        try:
            slide = deck.part.related_slide(entry.rId)
        except (KeyError, AttributeError, ValueError, TypeError) as error:
            yield None, f"the slide is missing in the file{because(error)}"
            continue
        hidden = slide._element.get("show") in ("0", "false")
        yield slide, "a hidden slide is not read; show it to have it read" if hidden else ""


def _read_slide(slide: Any, number: int, title: str, height: int) -> list[Block]:  # noqa: ANN401
    outline = Outline(page=number)
    outline.heading(1, f"Slide {number}")
    outline.heading(2, title)
    title_shape = slide.shapes.title
    own = title_shape.shape_id if title_shape is not None else None
    shapes = [shape for shape in slide.shapes if shape.shape_id != own]
    _add_shapes(outline, shapes, height, 0)
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        notes = slide.notes_slide.notes_text_frame.text
        if notes.strip():
            outline.heading(3, "Notes")
            outline.prose(_lines(notes))
    blocks = outline.finish()
    # A slide without any words is no passage.
    return [] if not title and [block.text for block in blocks] == [f"Slide {number}"] else blocks


def _add_shapes(outline: Outline, shapes: Iterable[Shape], height: int, depth: int) -> None:
    for shape in sorted(shapes, key=lambda shape: _place(shape, height)):
        if depth == 0 and (shape.left or 0) + (shape.width or 0) < 0:
            continue  # beside its slide
        if hasattr(shape, "shapes"):
            if depth < _MAX_DEPTH:
                _add_shapes(outline, shape.shapes, height, depth + 1)
        elif getattr(shape, "has_table", False):
            rows = ([c for c in row.cells if not c.is_spanned] for row in shape.table.rows)
            texts = [[text_of(cell._tc) for cell in cells] for cells in rows]
            outline.add(table_text(texts), "table")
        elif getattr(shape, "has_chart", False):
            outline.add(table_text(chart_rows(shape.chart_part._element)), "table")
        elif getattr(shape, "has_text_frame", False):
            if not _is_furniture(shape):
                outline.prose(_lines(text_of(shape._element)))
        else:
            described = value_of(shape._element, "nvPicPr", "cNvPr", name="descr")
            outline.prose("\n".join(_diagram_texts(shape)) or picture_text(described).strip())


def _place(shape: Shape, height: int) -> tuple[int, int]:
    top, left = shape.top or 0, shape.left or 0
    return round(top / (height * _SAME_LINE)), left


def _is_furniture(shape: Shape) -> bool:
    """Date, footer and number stand on every slide."""
    return shape.is_placeholder and shape.placeholder_format.type in (
        PP_PLACEHOLDER.DATE,
        PP_PLACEHOLDER.FOOTER,
        PP_PLACEHOLDER.SLIDE_NUMBER,
    )


def _lines(text: str) -> str:
    lines = (" ".join(line.split()) for line in text.replace("\v", "\n").split("\n"))
    return "\n".join(line for line in lines if line)


def _diagram_texts(shape: Shape) -> list[str]:
    """Return the words of a SmartArt diagram, which stand in a part of their own."""
    frame = next(shape._element.iter(_DIAGRAM), None)
    if frame is None or not frame.get(_DIAGRAM_DATA):
        return []
    root = parse_xml(shape.part.related_part(frame.get(_DIAGRAM_DATA)).blob)
    texts = (
        "".join(run.text or "" for run in paragraph.iter(f"{_DRAWING}t"))
        for paragraph in root.iter(f"{_DRAWING}p")
    )
    return [text for text in texts if text.strip()]
