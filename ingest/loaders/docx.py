"""DOCX to blocks: heading styles are sections, tables rows of cells."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from core.errors import DocumentError
from ingest.loaders import ooxml
from ingest.loaders.charts import chart_rows
from ingest.loaders.docx_numbers import BULLET, Numbers
from ingest.loaders.docx_styles import Styles
from ingest.loaders.docx_text import (
    CONTAINERS,
    charts,
    is_contents,
    note_names,
    notes,
    part_of,
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

        opened = ooxml.opened(path)
        return docx.Document(str(opened) if isinstance(opened, Path) else opened)
    except MemoryError:
        raise
    except Exception as error:
        raise DocumentError(f"the DOCX is damaged{because(error)}") from error


class _Reader:
    """Go through the body of a document, also where python-docx does not."""

    def __init__(self, document: Document) -> None:
        self.outline = Outline()
        self.title = ""
        self._styles = Styles(part_of(document, "styles"))
        self._numbers = Numbers(part_of(document, "numbering"), self._styles)
        self._notes = notes(document)
        self._document = document

    def read(self, container: Any, depth: int) -> None:  # noqa: ANN401 (elements of lxml)
        """Add the paragraphs and tables of an element in reading order."""
        for element in container:
            name = local_name(element)
            if name == "p":
                self._paragraph(element, depth)
            elif name == "tbl":
                self.outline.add(table_text(rows_of(element, self._in_cell)), "table")
            elif name in CONTAINERS and depth < _MAX_NESTING and not is_contents(element):
                self.read(element, depth + 1)

    def _paragraph(self, element: Any, depth: int) -> None:  # noqa: ANN401
        text = text_of(element)
        level = self._styles.heading_level(element)
        label = self._numbers.label(element)
        if level:
            is_numbered = label not in ("", BULLET) and text.strip()
            self.outline.heading(level, f"{label} {text}" if is_numbered else text)
        elif self._styles.name(element) == "Title":
            self.title = self.title or text
            self.outline.prose(text)
        else:
            text += self._notes_of(element)
            label = label or (BULLET if self._styles.is_list(element) else "")
            is_item = bool(text.strip() and label)
            self.outline.prose(f"{label} {text}" if is_item else text, tight=is_item)
        for chart in charts(element, self._document):
            self.outline.add(table_text(chart_rows(chart)), "table")
        if depth < _MAX_NESTING:
            for box in text_boxes(element):
                self.read(box, depth + 1)

    def _in_cell(self, element: Any) -> str:  # noqa: ANN401
        """Return a paragraph of a table; a column of numbers may have nothing but labels."""
        label = self._numbers.label(element)
        text = text_of(element) + self._notes_of(element)
        return f"{label} {text}" if label not in ("", BULLET) else text

    def _notes_of(self, element: Any) -> str:  # noqa: ANN401
        return "".join(f" [{self._notes[name]}]" for name in note_names(element, self._notes))
