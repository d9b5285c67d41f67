"""Pictures as files, and pictures in Office files: what OCR reads of them."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from PIL import Image, ImageOps

from core.errors import DocumentError
from ingest.loaders.limits import LoadLimits, check_pages, report_damage
from ingest.loaders.ocr import PictureReader
from ingest.loaders.office.pictures import pictures_in, places_of
from ingest.loaders.pdf import page_texts
from ingest.loaders.text.plain_text import first_short_line
from ingest.types import Block, Loaded, LoadFailure, ParsedDocument

_LEAST_SIDE = 60  # pixels: of a line of text; chosen, not measured
_LEAST_PIXELS = 40_000  # of a picture in an Office file: an icon has fewer; chosen, not measured
_LEAST_LETTERS = 20  # of one: fewer are a logo; chosen, not measured


def load(path: Path, relative: str, limits: LoadLimits) -> Iterator[Loaded]:
    """Yield the one document of a picture; a TIFF may have several pages."""
    reader = PictureReader(limits)
    blocks: list[Block] = []
    with report_damage("the image is damaged"), _opened(path) as picture:
        frames = int(getattr(picture, "n_frames", 1))
        check_pages(frames, "image", "pages", limits)
        for number in range(1, frames + 1):
            place = f"{relative}: page {number}" if frames > 1 else relative
            try:
                picture.seek(number - 1)
                reader.check_size(*picture.size)
                found = reader.read(_upright(picture))
            except DocumentError as error:
                if frames == 1:
                    raise
                yield LoadFailure(path=place, reason=error.rule)
                continue
            if found.loss:
                yield LoadFailure(path=place, reason=found.loss)
            page = number if frames > 1 else None
            blocks.append(Block(text=page_texts([found.text])[0], page=page))
    if not blocks:
        raise DocumentError("OCR reads no page of it")
    title = first_short_line(blocks[0].text)
    yield ParsedDocument.of_file(relative, "image", blocks, {"pages": frames}, title)


def page_of(path: Path, number: int, limits: LoadLimits) -> Image.Image:
    """Return one page of a picture, from 1; raises DocumentError."""
    with report_damage("the image is damaged"), _opened(path) as picture:
        if not 0 < number <= int(getattr(picture, "n_frames", 1)):
            raise DocumentError("the document has no such page", value=number)
        picture.seek(number - 1)
        PictureReader(limits).check_size(*picture.size)
        return _upright(picture)


@contextmanager
def _opened(file: Path | BinaryIO) -> Iterator[Image.Image]:
    Image.MAX_IMAGE_PIXELS = None  # they are compared with `ocr_megapixels`, before any is decoded
    with Image.open(file) as picture:
        yield picture


def _upright(picture: Image.Image) -> Image.Image:
    """Return a picture as its camera was held, on white where it is transparent."""
    turned = ImageOps.exif_transpose(picture)
    if turned.mode in ("RGBA", "LA", "P", "PA"):
        layer = turned.convert("RGBA")
        turned = Image.new("RGBA", layer.size, "white")
        turned.alpha_composite(layer)
    return turned.convert("RGB")


def with_pictures(
    items: Iterator[Loaded], path: Path, relative: str, limits: LoadLimits
) -> Iterator[Loaded]:
    """Yield what an Office file gives, its document with what OCR reads of its pictures.

    A file without other text is one of pictures alone.
    """
    problem: DocumentError | None = None
    last: ParsedDocument | None = None
    try:
        for item in items:
            if isinstance(item, ParsedDocument) and not item.is_record:
                last = item
            else:
                yield item
    except DocumentError as error:
        problem = error
    if problem is not None and not problem.rule.startswith("no text"):
        raise problem
    blocks, failures = _pictures_of(path, limits)
    yield from (LoadFailure(path=f"{relative}: {name}", reason=why) for name, why in failures)
    if last is None and problem is not None and blocks:
        last = ParsedDocument.of_file(relative, path.suffix.lstrip("."), [], {})
    elif problem is not None:
        raise problem
    if last is not None:
        yield last.model_copy(update={"blocks": [*last.blocks, *blocks]})


def _pictures_of(path: Path, limits: LoadLimits) -> tuple[list[Block], list[tuple[str, str]]]:
    """Return the text of each picture of a ZIP container, and why others were not read.

    What shows no text, as most pictures do, is no failure.
    """
    reader, blocks, failures = PictureReader(limits), list[Block](), list[tuple[str, str]]()
    with suppress(zipfile.BadZipFile), zipfile.ZipFile(path) as container:
        places = places_of(container)
        for entry in pictures_in(container, limits):
            name = entry.filename
            shown = places.get(name, f"picture {name.rsplit('/', 1)[-1]}")
            try:
                with _opened(BytesIO(container.read(name))) as picture:
                    reader.check_size(*picture.size)
                    if min(picture.size) < _LEAST_SIDE or math.prod(picture.size) < _LEAST_PIXELS:
                        continue
                    text = reader.read(_upright(picture)).text
            except DocumentError as error:
                if "(ingest." in error.rule:  # a limit, and not that there is no text
                    failures.append((shown, error.rule))
                continue
            except (zipfile.BadZipFile, OSError, ValueError, SyntaxError):
                continue  # one that is damaged costs nothing else
            if sum(map(str.isalnum, text)) >= _LEAST_LETTERS:
                blocks.append(Block(text=page_texts([text])[0], section=shown))
    return blocks, failures
