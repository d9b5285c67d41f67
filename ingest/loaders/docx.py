"""DOCX to blocks: heading styles are sections, tables rows of cells."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from core.errors import DocumentError
from ingest.loaders import metadata
from ingest.loaders.limits import LoadLimits
from ingest.loaders.outline import Outline, table_text
from ingest.loaders.reasons import because
from ingest.types import ParsedDocument

if TYPE_CHECKING:
    from docx.document import Document
    from docx.table import Table, _Cell
    from docx.text.paragraph import Paragraph

_OLE_MAGIC = b"\xd0\xcf\x11\xe0"
_HEADING_STYLE = re.compile(r"heading\s*(\d)", re.I)
_LIST_STYLE = re.compile(r"list", re.I)
_MAX_DEPTH = 5


def load(path: Path, relative: str, limits: LoadLimits) -> Iterator[ParsedDocument]:
    """Yield the one document of a DOCX file; call it in a child process."""
    from docx.table import Table

    document = _open(path, limits)
    outline = Outline()
    titles: list[str] = []
    for item in document.iter_inner_content():
        if isinstance(item, Table):
            _add_table(outline, item)
        elif (item.style and item.style.name) == "Title":
            titles.append(item.text)
            outline.prose(item.text)
        else:
            _add_paragraph(outline, item)
    described = _metadata(document)
    named = " ".join(titles[0].split()) if titles else ""
    blocks = outline.finish()
    yield ParsedDocument(
        document_id=relative,
        source=relative,
        title=named
        or described.get("title")
        or outline.first_heading
        or PurePosixPath(relative).stem,
        format="docx",
        blocks=blocks,
        metadata=described,
    )


def _open(path: Path, limits: LoadLimits) -> Document:
    with path.open("rb") as handle:
        if handle.read(4) == _OLE_MAGIC:
            raise DocumentError(
                "the DOCX is password-protected or an old .doc; save it again as .docx without a"
                " password"
            )
    try:
        with zipfile.ZipFile(path) as package:
            size = sum(entry.file_size for entry in package.infolist())
        if size > limits.memory_mb * 2**20:
            raise DocumentError(
                f"the DOCX unpacks to {size / 2**20:.0f} MB; the limit is {limits.memory_mb} MB"
                " (memory_mb)"
            )
        import docx

        return docx.Document(str(path))
    except (DocumentError, MemoryError):
        raise
    except Exception as error:
        raise DocumentError(f"the DOCX is damaged{because(error)}") from error


def _add_paragraph(outline: Outline, paragraph: Paragraph) -> None:
    level = _heading_level(paragraph)
    if level:
        outline.heading(level, paragraph.text)
        return
    properties = paragraph._p.pPr
    listed = properties is not None and properties.numPr is not None
    named = paragraph.style is not None and _LIST_STYLE.match(paragraph.style.name or "")
    if listed or named:
        outline.prose(f"- {paragraph.text}" if paragraph.text.strip() else "", tight=True)
    else:
        outline.prose(paragraph.text)


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


def _add_table(outline: Outline, table: Table) -> None:
    outline.add(table_text(_rows(table, 0)), "table")


def _rows(table: Table, depth: int) -> list[list[str]]:
    rows = []
    for row in table.rows:
        cells: list[str] = []
        last: object = None
        for cell in row.cells:
            if cell._tc is not last:  # a merged cell is given once per column
                cells.append(_cell_text(cell, depth))
            last = cell._tc
        rows.append(cells)
    return rows


def _cell_text(cell: _Cell, depth: int) -> str:
    parts = [cell.text]
    if depth < _MAX_DEPTH:
        parts += [table_text(_rows(inner, depth + 1)) for inner in cell.tables]
    return "; ".join(part for part in parts if part.strip())


def _metadata(document: Document) -> dict[str, Any]:
    try:
        core = document.core_properties
        found = {
            "title": core.title,
            "authors": core.author,
            "keywords": core.keywords,
            "language": core.language,
            "version": core.version,
            "subject": core.subject,
            "updated_at": core.modified,
        }
    except Exception:  # any part of a damaged property sheet; the text is what matters
        return {}
    if found["authors"] == "python-docx":
        found["authors"] = ""
    return metadata.normalise(found)
