"""FictionBook (FB2): a book in one XML file."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from core.errors import DocumentError
from ingest.loaders import metadata
from ingest.loaders.outline import Outline, table_text
from ingest.loaders.web.xml_tree import attribute, child, children, descendants, local_name, words
from ingest.types import Block, ParsedDocument

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_LINES = frozenset(("p", "v", "subtitle", "text-author", "date"))
_MAX_DEPTH = 100


def document(root: Element, relative: str) -> ParsedDocument:
    """Return the document of a book: its sections, and its annotation as a block of its own."""
    info = child(root, "description", "title-info")
    described = _metadata(info, child(root, "description", "publish-info"))
    outline = Outline()
    for body in children(root, "body"):
        if name := attribute(body, "name"):
            outline.heading(1, name.capitalize())
        _add(outline, body, 1)
    blocks = outline.finish()
    if annotation := _paragraphs(child(info, "annotation")):
        blocks.insert(0, Block(text=annotation, kind="annotation"))
    if not blocks:
        raise DocumentError("no text found in it")
    return ParsedDocument(
        document_id=relative,
        source=relative,
        title=str(described.get("title") or outline.first_heading or PurePosixPath(relative).stem),
        format="fb2",
        blocks=blocks,
        metadata=described,
    )


def _paragraphs(element: Element | None) -> str:
    if element is None:
        return ""
    return "\n\n".join(text for part in descendants(element, *_LINES) if (text := words(part)))


def _add(outline: Outline, element: Element, level: int) -> None:
    for part in element:
        name = local_name(part)
        if name == "title":
            outline.heading(level, " ".join(words(line) for line in part))
        elif name == "v":
            outline.prose(words(part), tight=True)
        elif name in _LINES:
            outline.prose(words(part))
        elif name == "table":
            rows = [[words(cell) for cell in row] for row in children(part, "tr")]
            outline.add(table_text(rows), "table")
        elif name and level < _MAX_DEPTH:  # sections, epigraphs, poems, citations
            _add(outline, part, level + 1)


def _metadata(info: Element | None, published: Element | None) -> dict[str, object]:
    if info is None:
        return {}
    people = []
    for author in children(info, "author"):
        names = [words(child(author, part)) for part in ("first-name", "middle-name", "last-name")]
        if any(names):
            people.append(" ".join(name for name in names if name))
    return metadata.normalise(
        {
            "title": words(child(info, "book-title")),
            "authors": people,
            "language": words(child(info, "lang")),
            "keywords": [words(one) for one in children(info, "genre")]
            + words(child(info, "keywords")).split(","),
            "year": words(child(published, "year")) or words(child(info, "date")),
            "publisher": words(child(published, "publisher")),
            "isbn": words(child(published, "isbn")),
        }
    )
