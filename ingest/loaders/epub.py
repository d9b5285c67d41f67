"""EPUB books: the files of the spine in order, under the titles of the table of contents."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from core.errors import DocumentError
from ingest.loaders import epub_package, html
from ingest.loaders.encoding import decode
from ingest.loaders.epub_package import Package
from ingest.loaders.limits import LoadLimits
from ingest.loaders.outline import SECTION_SEPARATOR
from ingest.loaders.zip_safe import SafeZip
from ingest.types import Block, LoadFailure, ParsedDocument

_HTML_TYPES = ("application/xhtml+xml", "text/html", "application/xml", "text/x-oeb1-document", "")


@dataclass
class _Book:
    blocks: list[Block] = field(default_factory=list)
    size: int = 0


def load(path: Path, relative: str, limits: LoadLimits) -> Iterator[ParsedDocument | LoadFailure]:
    """Yield the one document of a book, and a failure for each file of the spine that is lost."""
    with SafeZip(path, limits) as container:
        package = epub_package.read(container)
        book = _Book()
        for at, name in enumerate(package.spine, start=1):
            try:
                _add(book, container, package, name, limits)
            except DocumentError as error:
                reason = error.rule
                yield LoadFailure(
                    path=f"{relative}: {name or f'item {at} of the spine'}", reason=reason
                )
    if not book.blocks:
        raise DocumentError("no text in any file of the book; if its pages are images, OCR them")
    described = package.described
    yield ParsedDocument(
        document_id=relative,
        source=relative,
        title=str(described.get("title") or PurePosixPath(relative).stem),
        format="epub",
        blocks=book.blocks,
        metadata=described,
    )


def _add(book: _Book, container: SafeZip, package: Package, name: str, limits: LoadLimits) -> None:
    if not name:
        raise DocumentError("the spine names a file that the manifest does not have")
    if name == package.nav or package.types.get(name, "") not in _HTML_TYPES:
        return
    text = decode(container.read(name), posixpath.splitext(name)[1])
    chapter = package.titles.get(name, "")
    for document in html.load(name, text):
        for block in document.blocks:
            book.blocks.append(block.model_copy(update={"section": _section(chapter, block)}))
            book.size += len(block.text)
    if book.size > limits.max_characters:
        raise DocumentError(f"more than {limits.max_characters} characters (max_characters)")


def _section(chapter: str, block: Block) -> str:
    """Put the title that the contents give a file before its headings, unless they say it."""
    own = block.section.casefold()
    if not chapter or own.startswith(chapter.casefold()):
        return block.section
    heading = own.split(SECTION_SEPARATOR)[0]
    if heading and heading in chapter.casefold():  # "I" below "Chapter I"
        return chapter + block.section[len(heading) :]
    return SECTION_SEPARATOR.join(part for part in (chapter, block.section) if part)
