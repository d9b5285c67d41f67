"""OpenDocument: texts (ODT), spreadsheets (ODS) and presentations (ODP)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from core.errors import DocumentError
from ingest.loaders import metadata
from ingest.loaders.limits import LoadLimits
from ingest.loaders.odf_sheets import sheets
from ingest.loaders.office.odf_text import OdfNumbering, add_blocks, text_of
from ingest.loaders.outline import Outline
from ingest.loaders.sheets import Workbook
from ingest.loaders.web.xml_tree import (
    attribute,
    child,
    children,
    descendants,
    local_name,
    parse_xml,
    words,
)
from ingest.loaders.zip_safe import SafeZip
from ingest.types import Block, LoadFailure, ParsedDocument

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_MANIFEST = "META-INF/manifest.xml"
_CONTENT = "content.xml"
_META = "meta.xml"
_STYLES = "styles.xml"
_FURNITURE = {"date-time", "footer", "header", "page-number"}


def load(path: Path, relative: str, limits: LoadLimits) -> Iterator[ParsedDocument | LoadFailure]:
    """Yield the document of a text or a presentation, or those of a spreadsheet."""
    with SafeZip(path, limits) as container:
        names = container.names()
        if _MANIFEST in names and b"encryption-data" in container.read(_MANIFEST):
            raise DocumentError(
                "the OpenDocument file is password-protected; save it again without a password"
            )
        if _CONTENT not in names:
            raise DocumentError("no OpenDocument file: the container has no content.xml")
        root = parse_xml(container.read(_CONTENT))
        try:
            described = _metadata(parse_xml(container.read(_META))) if _META in names else {}
        except DocumentError:  # the text is what matters
            described = {}
        try:
            styles = parse_xml(container.read(_STYLES)) if _STYLES in names else None
        except DocumentError:
            styles = None
    yield from documents(root, described, relative, limits, styles)


def load_flat(
    root: Element, relative: str, limits: LoadLimits
) -> Iterator[ParsedDocument | LoadFailure]:
    """Yield the documents of an OpenDocument file that is one XML file (.fodt, .fods)."""
    yield from documents(root, _metadata(root), relative, limits)


def documents(
    root: Element,
    described: dict[str, Any],
    relative: str,
    limits: LoadLimits,
    styles: Element | None = None,
) -> Iterator[ParsedDocument | LoadFailure]:
    """Yield what the body of a content.xml holds; `styles` are those beside it."""
    body = child(root, "body")
    if (book := child(body, "spreadsheet")) is not None:
        workbook = Workbook(relative, "ods", limits)
        yield from workbook.documents(sheets(root, book), described)
        return
    heading = ""
    if (deck := child(body, "presentation")) is not None:
        format_name, blocks = "odp", _slides(deck)
    elif (text := child(body, "text")) is not None:
        outline = Outline()
        add_blocks(outline, text, OdfNumbering(root, styles))
        format_name, blocks, heading = "odt", outline.finish(), outline.first_heading
    else:
        raise DocumentError("an OpenDocument file that is no text, spreadsheet or presentation")
    if not blocks:
        raise DocumentError("no text found in it")
    yield ParsedDocument(
        document_id=relative,
        source=relative,
        title=str(described.get("title") or heading or PurePosixPath(relative).stem),
        format=format_name,
        blocks=blocks,
        metadata=described,
    )


def _slides(deck: Element) -> list[Block]:
    blocks: list[Block] = []
    for number, page in enumerate(children(deck, "page"), start=1):
        outline = Outline(page=number)
        outline.heading(1, f"Slide {number}")
        shapes = [
            shape
            for shape in page
            if attribute(shape, "class") not in _FURNITURE and local_name(shape) != "notes"
        ]
        titles = [shape for shape in shapes if attribute(shape, "class") == "title"]
        title = " ".join(text_of(shape).replace("\n", " ") for shape in titles)
        outline.heading(2, title)
        for shape in shapes:
            if shape not in titles:
                add_blocks(outline, shape)
        for notes in children(page, "notes"):
            outline.heading(3, "Notes")
            add_blocks(outline, notes)  # the picture of the slide beside them has no text
        found = outline.finish()
        if title or [block.text for block in found] != [f"Slide {number}"]:
            blocks += [block for block in found if block.text != "Notes"]
    return blocks


def _metadata(root: Element) -> dict[str, Any]:
    meta = next(descendants(root, "meta"), None)
    if meta is None:
        return {}
    said: dict[str, list[str]] = {}
    for element in meta:
        if text := words(element):
            said.setdefault(str(element.tag).rsplit("}", 1)[-1], []).append(text)
    return metadata.normalise(
        {
            "title": "".join(said.get("title", [])),
            "authors": said.get("initial-creator") or said.get("creator") or [],
            "keywords": said.get("keyword", []),
            "language": "".join(said.get("language", [])),
            "subject": "".join(said.get("subject", [])),
            "description": "".join(said.get("description", [])),
            "created": next(iter(said.get("creation-date", [])), ""),
            "updated_at": next(iter(said.get("date", []) + said.get("creation-date", [])), ""),
        }
    )
