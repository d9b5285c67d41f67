"""DOCX to blocks: heading styles are sections, tables rows of cells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from core.errors import DocumentError
from ingest.loaders import ooxml
from ingest.loaders.docx_text import (
    CONTAINERS,
    is_contents,
    note_names,
    notes,
    rows_of,
    text_boxes,
    text_of,
)
from ingest.loaders.limits import LoadLimits
from ingest.loaders.outline import Outline, table_text
from ingest.loaders.reasons import because
from ingest.loaders.xml_tree import local_name
from ingest.types import ParsedDocument

if TYPE_CHECKING:
    from docx.document import Document
    from docx.text.paragraph import Paragraph

_HEADING_STYLE = re.compile(r"heading\s*(\d)", re.I)
_LIST_STYLE = re.compile(r"list", re.I)
_MAX_DEPTH = 5
_MAX_NESTING = 50


def load(path: Path, relative: str, limits: LoadLimits) -> Iterator[ParsedDocument]:
    """Yield the one document of a DOCX file; call it in a child process."""
    document = _open(path, limits)
    reader = _Reader(document)
    reader.read(document.element.body, 0)
    described = ooxml.described(document.core_properties)
    named = " ".join(reader.title.split())
    blocks = reader.outline.finish()
    yield ParsedDocument(
        document_id=relative,
        source=relative,
        title=named
        or described.get("title")
        or reader.outline.first_heading
        or PurePosixPath(relative).stem,
        format="docx",
        blocks=blocks,
        metadata=described,
    )


def _open(path: Path, limits: LoadLimits) -> Document:
    ooxml.check(path, "DOCX", limits, "word")
    try:
        import docx

        return docx.Document(str(path))
    except MemoryError:
        raise
    except Exception as error:
        raise DocumentError(f"the DOCX is damaged{because(error)}") from error


class _Reader:
    """Go through the body of a document, also where python-docx does not."""

    def __init__(self, document: Document) -> None:
        self.outline = Outline()
        self.title = ""
        self._parent = document._body
        self._notes = notes(document)

    def read(self, container: Any, depth: int) -> None:  # noqa: ANN401 (elements of lxml)
        """Add the paragraphs and tables of an element in reading order."""
        for element in container:
            name = local_name(element)
            if name == "p":
                self._paragraph(element, depth)
            elif name == "tbl":
                self.outline.add(table_text(rows_of(element)), "table")
            elif name in CONTAINERS and depth < _MAX_NESTING and not is_contents(element):
                self.read(element, depth + 1)

    def _paragraph(self, element: Any, depth: int) -> None:  # noqa: ANN401
        from docx.text.paragraph import Paragraph

        paragraph = Paragraph(element, self._parent)
        text = text_of(element)
        level = _heading_level(paragraph)
        if level:
            self.outline.heading(level, text)
        elif (paragraph.style and paragraph.style.name) == "Title":
            self.title = self.title or text
            self.outline.prose(text)
        else:
            text += "".join(f" [{self._notes[name]}]" for name in note_names(element, self._notes))
            properties = element.pPr
            listed = properties is not None and properties.numPr is not None
            named = paragraph.style is not None and _LIST_STYLE.match(paragraph.style.name or "")
            is_item = bool(text.strip()) and (listed or bool(named))
            self.outline.prose(f"- {text}" if is_item else text, tight=is_item)
        if depth < _MAX_NESTING:
            for box in text_boxes(element):
                self.read(box, depth + 1)


def _heading_level(paragraph: Paragraph) -> int | None:
    """Return 1-9 for a heading; in other languages only the style's id or parent is "Heading"."""
    style: Any = paragraph.style
    for _ in range(_MAX_DEPTH):
        if style is None:
            return None
        match = _HEADING_STYLE.match(style.name or "") or _HEADING_STYLE.match(style.style_id or "")
        if match:
            return int(match.group(1))
        style = style.base_style
    return None
