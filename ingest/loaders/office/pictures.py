"""Pictures in Office files: which there are, and where each of them stands."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from posixpath import basename, dirname, join, normpath
from typing import Any

from core.errors import DocumentError
from ingest.loaders.limits import MB, LoadLimits
from ingest.loaders.tesseract import HINT
from ingest.loaders.web.xml_tree import attribute, descendants, parse_xml
from ingest.types import Loaded, ParsedDocument

MEDIA = ("word/media/", "ppt/media/", "xl/media/", "Pictures/")  # of Office and OpenDocument
READ = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".bmp")
_LEAST_BYTES = 1_000  # of a picture that may hold text, and is no icon; chosen, not measured
# The part that lists the pages of a file, what it calls one, and how a person knows it.
_LISTS = (
    ("ppt/presentation.xml", "sldId", "slide", ""),
    ("xl/workbook.xml", "sheet", "sheet", "name"),
)


def pictures_in(container: zipfile.ZipFile, limits: LoadLimits) -> Iterator[zipfile.ZipInfo]:
    """Yield the entries of pictures that may be read, in the order of the container."""
    for entry in container.infolist():
        is_picture = entry.filename.startswith(MEDIA) and entry.filename.lower().endswith(READ)
        if is_picture and entry.file_size <= limits.max_file_mb * MB:
            yield entry


def with_pictures(
    items: Iterator[Loaded], path: Path, relative: str, limits: LoadLimits
) -> Iterator[Loaded]:
    """Yield what an Office file gives, with the number of its pictures: there is no OCR."""
    count = 0
    with suppress(zipfile.BadZipFile), zipfile.ZipFile(path) as container:
        count = sum(one.file_size >= _LEAST_BYTES for one in pictures_in(container, limits))
    try:
        for item in items:
            of_file = isinstance(item, ParsedDocument) and not item.is_record
            yield item.model_copy(update={"pictures": count}) if of_file else item
    except DocumentError as error:
        if count and error.rule.startswith("no text"):
            raise DocumentError(f"{error.rule}; {HINT}") from None
        raise


def places_of(container: zipfile.ZipFile) -> dict[str, str]:
    """Return where each picture of a DOCX, PPTX or XLSX first stands: "picture 2 on slide 3"."""
    places: dict[str, str] = {}
    try:
        for part, page in _pages(container):
            shown = [one for one in _targets(container, part) if one.startswith(MEDIA)]
            for number, name in enumerate(dict.fromkeys(shown), start=1):
                places.setdefault(name, f"picture {number}{page}")
    except (DocumentError, KeyError, OSError, ValueError, SyntaxError, zipfile.BadZipFile):
        return places  # of a damaged part; the pictures are read all the same
    return places


def _pages(container: zipfile.ZipFile) -> Iterator[tuple[str, str]]:
    names = container.namelist()
    if "word/document.xml" in names:
        yield "word/document.xml", ""
    for listing, kind, word, named in _LISTS:
        if listing not in names:
            continue
        known = _relations(container, listing)
        for number, entry in enumerate(descendants(_root(container, listing), kind), start=1):
            page = f" on {word} {attribute(entry, named) if named else number}"
            ids = [value for value in entry.attrib.values() if value in known]
            for part in (known[one] for one in ids):
                yield part, page
                for below in _relations(container, part).values():
                    if "/drawings/drawing" in below:
                        yield below, page


def _targets(container: zipfile.ZipFile, part: str) -> Iterator[str]:
    """Yield the parts that one refers to, in the order in which it does."""
    known = _relations(container, part)
    for element in _root(container, part).iter():
        yield from (known[value] for value in element.attrib.values() if value in known)


def _relations(container: zipfile.ZipFile, part: str) -> Mapping[str, str]:
    listing = f"{dirname(part)}/_rels/{basename(part)}.rels"
    if listing not in container.namelist():
        return {}
    return {
        attribute(one, "Id"): normpath(join(dirname(part), attribute(one, "Target"))).lstrip("/")
        for one in descendants(_root(container, listing), "Relationship")
    }


def _root(container: zipfile.ZipFile, part: str) -> Any:  # noqa: ANN401 (of ElementTree)
    return parse_xml(container.read(part))
