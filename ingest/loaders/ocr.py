"""Read pictures of text: RapidOCR what its models know, Tesseract what it has languages for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from core.errors import DocumentError
from ingest.loaders.limits import LoadLimits, report_damage
from ingest.loaders.ocr_lines import TextLine, is_read, text_of_lines
from ingest.loaders.tesseract import CYRILLIC, HINT, RAPID, TESSERACT, Tesseract

if TYPE_CHECKING:
    from PIL.Image import Image

_LEAST_READ = 0.5  # of what stands on a page, by the length of its lines; chosen, not measured


class PageText(NamedTuple):
    """Hold what was read of a picture, and how many of its lines were and were not."""

    text: str
    read: int
    lost: int

    @property
    def loss(self) -> str:
        """Say what was not read, "" for nothing."""
        total = self.read + self.lost
        return f"{self.lost} of its {total} lines are not legible to OCR" if self.lost else ""


_begin: Callable[[], None] = lambda: None  # noqa: E731


def watch(begin: Callable[[], None]) -> None:
    """Have `begin` called before the first picture of each file is read: that takes its time."""
    global _begin
    _begin = begin


class PictureReader:
    """Read the pictures of one file within its limits; make one per file."""

    def __init__(self, limits: LoadLimits) -> None:
        self._limits = limits
        self._pages = 0
        self._until = 0.0

    def check_size(self, width: float, height: float) -> None:
        """Raise DocumentError for a picture of too many pixels."""
        if width * height > self._limits.ocr_megapixels * 1e6:
            raise DocumentError(
                f"the picture has {width * height / 1e6:.0f} megapixels; the limit is"
                f" {self._limits.ocr_megapixels:g} (ingest.ocr_megapixels); make it smaller or"
                " raise it"
            )

    def read(self, picture: Image) -> PageText:
        """Return the text of a picture; raise DocumentError where it is not to be read, or not."""
        limits = self._limits
        if not limits.ocr:
            raise DocumentError(f"no text layer; {HINT}")
        self.check_size(*picture.size)
        if not self._pages:
            _begin()
            self._until = time.monotonic() + limits.ocr_timeout_s
        if self._pages >= limits.ocr_pages:
            raise DocumentError(
                f"OCR reads {limits.ocr_pages} pages of a file (ingest.ocr_pages); split it or"
                " raise it"
            )
        if time.monotonic() > self._until:
            raise DocumentError(
                f"OCR of the file took longer than {limits.ocr_timeout_s:g} s"
                " (ingest.ocr_timeout_s); split it or raise it"
            )
        self._pages += 1
        best = self._best(picture)
        if best is None:
            raise DocumentError("OCR finds no text on it")
        return best

    def _best(self, picture: Image) -> PageText | None:
        """Return the text by the first engine that loses no line, else by the one that loses least.

        One must read most of the page. None for no text.
        """
        read, lost = _read(picture, self._limits)
        if read:
            return PageText(text_of_lines(read), len(read), lost)
        if not lost:
            return None
        names = self._limits.ocr
        raise DocumentError(
            f"OCR ({names}) cannot make out most of its letters"
            + ("" if TESSERACT in names else f"; {CYRILLIC}")
        )


def _read(picture: Image, limits: LoadLimits) -> tuple[list[TextLine], int]:
    """Return the legible lines by the best engine, and how many others it finds; all lost: none."""
    found, pages = 0, list[tuple[list[TextLine], int]]()
    for engine in limits.ocr.split(", "):
        with report_damage("OCR failed on it"):
            lines = [one for one in _lines(engine, picture) if one.width > 0]
        read = [one for one in lines if is_read(one, limits.ocr_confidence)]
        found = max(found, len(lines))
        if read and _length(read) >= _LEAST_READ * _length(lines):
            pages.append((read, len(lines) - len(read)))
            if len(read) == len(lines):
                break
    return min(pages, key=lambda one: one[1] / (len(one[0]) + one[1]), default=([], found))


def _length(lines: Iterable[TextLine]) -> float:
    return sum(one.width / one.height for one in lines)


def _lines(engine: str, picture: Image) -> list[TextLine]:
    if engine == RAPID:
        found: list[TextLine] = import_module("ingest.loaders.rapid").lines(picture)
        return found
    grey = picture.convert("L")
    return _tesseract(engine.split()[1]).lines(grey.tobytes(), *grey.size)


def lines_of(pixels: Any, limits: LoadLimits) -> list[TextLine]:  # noqa: ANN401 - an array
    """Return the legible lines of a picture, by the engine whose text its ingest keeps."""
    if not limits.ocr:
        return []
    return _read(import_module("PIL.Image").fromarray(pixels), limits)[0]  # of the extra `ocr`


@cache
def _tesseract(languages: str) -> Tesseract:
    return Tesseract(languages.split("+"))
