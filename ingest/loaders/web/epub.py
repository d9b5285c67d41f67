"""EPUB books: the files of the spine in order, under the titles of the table of contents."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag
from xml.etree.ElementTree import Element

from selectolax.lexbor import LexborHTMLParser

from core.errors import DocumentError
from ingest.loaders import metadata
from ingest.loaders.limits import LoadLimits
from ingest.loaders.outline import SECTION_SEPARATOR
from ingest.loaders.text.encoding import decode
from ingest.loaders.web import html
from ingest.loaders.web.xml_tree import child, descendants, parse_xml, value_of, words
from ingest.loaders.zip_safe import SafeZip
from ingest.types import Block, Loaded, LoadFailure, ParsedDocument

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
# Fonts made unusable outside the book are no copy protection of its text.
_FONTS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")


@dataclass
class Package:
    """Hold the spine as members of the container ("" for one the manifest lacks), and the rest.

    `titles` are those of the table of contents by member, `types` the media types.
    """

    spine: list[str] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    described: dict[str, Any] = field(default_factory=dict)
    nav: str = ""


def read(container: SafeZip) -> Package:
    """Read the package; raise DocumentError when there is none or its texts are encrypted."""
    name = _package_name(container)
    root = parse_xml(container.read(name))
    package = Package(described=_metadata(child(root, "metadata")))
    items: dict[str, Element] = {}
    for item in descendants(root, "item"):
        items[item.get("id") or ""] = item
        package.types[member(name, item.get("href") or "")] = item.get("media-type") or ""
        if "nav" in (item.get("properties") or "").split():
            package.nav = member(name, item.get("href") or "")
    for reference in descendants(root, "itemref"):
        found = items.get(reference.get("idref") or "")
        package.spine.append("" if found is None else member(name, found.get("href") or ""))
    if not package.spine:
        raise DocumentError("the book has no spine: no order of its files")
    _check_drm(container, package)
    package.titles = _titles(container, package)
    return package


def member(base: str, href: str) -> str:
    """Return the member of the container that a link in the member `base` points to."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(base), unquote(urldefrag(href).url)))


def _package_name(container: SafeZip) -> str:
    names = container.names()
    if _CONTAINER in names:
        for found in descendants(parse_xml(container.read(_CONTAINER)), "rootfile"):
            if found.get("full-path") in names:
                return str(found.get("full-path"))
    name = next((name for name in names if name.lower().endswith(".opf")), "")
    if not name:
        raise DocumentError("no EPUB: the container has no package (.opf)")
    return name


def _check_drm(container: SafeZip, package: Package) -> None:
    if _ENCRYPTION not in container.names():
        return
    encrypted = set()
    for data in descendants(parse_xml(container.read(_ENCRYPTION)), "EncryptedData"):
        method = next(descendants(data, "EncryptionMethod"), None)
        if method is not None and method.get("Algorithm") in _FONTS:
            continue
        encrypted |= {
            posixpath.normpath(unquote(reference.get("URI") or ""))
            for reference in descendants(data, "CipherReference")
        }
    if encrypted & set(package.spine):
        raise DocumentError("the book is encrypted (DRM); ingest a copy without it")


def _metadata(found: Element | None) -> dict[str, Any]:
    if found is None:
        return {}
    texts: dict[str, list[str]] = {}
    for element in found.iter():
        name = str(element.tag).rsplit("}", 1)[-1]
        name = (
            f"{name}:{element.get('property') or element.get('name')}" if name == "meta" else name
        )
        if text := words(element) or element.get("content") or "":
            texts.setdefault(name, []).append(text)
    dates = texts.get("date", [])
    changed = texts.get("meta:dcterms:modified", [])
    isbn = [text for text in texts.get("identifier", []) if "isbn" in text.lower()]
    return metadata.normalise(
        {
            "title": next(iter(texts.get("title", [])), ""),
            "authors": texts.get("creator", []),
            "language": next(iter(texts.get("language", [])), ""),
            "updated_at": next(iter(dates or changed), ""),
            "published": next(iter(dates), ""),
            "year": next(iter(dates), ""),
            "publisher": next(iter(texts.get("publisher", [])), ""),
            "keywords": texts.get("subject", []),
            "description": next(iter(texts.get("description", [])), ""),
            "isbn": isbn[0].lower().rsplit("isbn", 1)[-1].strip(": ") if isbn else "",
        }
    )


def _titles(container: SafeZip, package: Package) -> dict[str, str]:
    """Return the first title that the table of contents gives each file, if it can be read."""
    titles: dict[str, str] = {}
    ncx = [name for name, kind in package.types.items() if kind == "application/x-dtbncx+xml"]
    for name, read_links in ((package.nav, _nav_links), *((name, _ncx_links) for name in ncx)):
        if not name:
            continue
        try:
            for title, href in read_links(container.read(name)):
                if title and href:
                    titles.setdefault(member(name, href), title)
        except DocumentError:
            continue
    return titles


def _nav_links(data: bytes) -> Iterator[tuple[str, str]]:
    for nav in LexborHTMLParser(decode(data, ".xhtml")).css("nav"):
        kind = nav.attributes.get("epub:type") or "toc"
        if "toc" in kind.split():
            for link in nav.css("a[href]"):
                yield " ".join(link.text(deep=True).split()), link.attributes.get("href") or ""


def _ncx_links(data: bytes) -> Iterator[tuple[str, str]]:
    for point in descendants(parse_xml(data), "navPoint"):
        yield words(child(point, "navLabel")), value_of(point, "content", name="src")


_HTML_TYPES = ("application/xhtml+xml", "text/html", "application/xml", "text/x-oeb1-document", "")


def load(path: Path, relative: str, limits: LoadLimits) -> Iterator[Loaded]:
    """Yield the one document of a book, and a failure for each file of the spine that is lost."""
    with SafeZip(path, limits) as container:
        package = read(container)
        blocks: list[Block] = []
        for at, name in enumerate(package.spine, start=1):
            try:
                blocks += _chapter(container, package, name)
                if sum(len(block.text) for block in blocks) > limits.max_characters:
                    most = f"{limits.max_characters} characters (ingest.max_characters)"
                    raise DocumentError(f"more than {most}")
            except DocumentError as error:
                lost = f"{relative}: {name or f'item {at} of the spine'}"
                yield LoadFailure(path=lost, reason=error.rule)
    if not blocks:
        raise DocumentError("no text in any file of the book; if its pages are images, OCR them")
    described = package.described
    yield ParsedDocument.of_file(relative, "epub", blocks, described, described.get("title"))


def _chapter(container: SafeZip, package: Package, name: str) -> Iterator[Block]:
    if not name:
        raise DocumentError("the spine names a file that the manifest does not have")
    if name == package.nav or package.types.get(name, "") not in _HTML_TYPES:
        return
    text = decode(container.read(name), posixpath.splitext(name)[1])
    chapter = package.titles.get(name, "")
    for block in html.blocks_of(text):
        yield block.model_copy(update={"section": _section(chapter, block)})


def _section(chapter: str, block: Block) -> str:
    """Put the title that the contents give a file before its headings, unless they say it."""
    own = block.section.casefold()
    if not chapter or own.startswith(chapter.casefold()):
        return block.section
    heading = own.split(SECTION_SEPARATOR)[0]
    if heading and heading in chapter.casefold():  # "I" below "Chapter I"
        return chapter + block.section[len(heading) :]
    return SECTION_SEPARATOR.join(part for part in (chapter, block.section) if part)
