"""A page of a PDF, or a picture, as it looks, with some of its words marked."""

from __future__ import annotations

import ctypes
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from difflib import SequenceMatcher
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pypdfium2  # type: ignore[import-untyped]
from pypdfium2 import raw

from core.errors import DocumentError
from ingest.loaders.limits import LoadLimits, report_damage
from ingest.loaders.ocr import lines_of
from ingest.loaders.ocr_lines import TextLine
from ingest.loaders.pdf import OCR_SCALE

WIDTH = 1400  # pixels of a page, as wide screens show it; chosen, not measured
MOST_SCALE = 4.0  # of a page that is smaller than a card
LEAST_LETTERS = 6  # that a line shares with a quote at one end of it; chosen
LEAST_PART = (
    0.4  # of the letters of a quote, or of a shorter line, that are one after another there
)
YELLOW = np.array([255, 226, 110], dtype=np.uint16)
Pixels = Any  # rows of columns of red, green and blue, 0..255
Box = tuple[float, float, float, float]  # left, top, right, bottom in pixels


def draw_page(path: Path, number: int, quotes: Sequence[str], limits: LoadLimits) -> bytes:
    """Return page `number`, from 1, as a PNG with the words of quotes marked.

    Of a quote that it has in other letters, as OCR confuses some, the longest part is marked, and
    of one that it does not have nothing. Raises DocumentError where there is no such page.
    """
    wanted = [found for quote in quotes if (found := _letters(quote))]
    is_pdf = path.suffix.lower() == ".pdf"
    with report_damage("the page cannot be drawn"):
        pixels, boxes = (_of_pdf if is_pdf else _of_picture)(path, number, wanted, limits)
    for left, top, right, bottom in boxes:
        part = pixels[
            max(int(top) - 1, 0) : int(bottom) + 2, max(int(left) - 1, 0) : int(right) + 2
        ]
        part[:] = part.astype(np.uint16) * YELLOW // 255
    return _png(pixels)


def _of_pdf(
    path: Path, number: int, quotes: Sequence[str], limits: LoadLimits
) -> tuple[Pixels, list[Box]]:
    with closing(pypdfium2.PdfDocument(path)) as document:
        if not 0 < number <= len(document):
            raise DocumentError("the document has no such page", value=number)
        page = document[number - 1]
        with closing(page.get_textpage()) as text:
            is_scan = not str(text.get_text_range()).strip()
            # A scan is read as it was at its ingest, so that its words are the same ones.
            wanted = OCR_SCALE if is_scan else WIDTH / max(page.get_width(), 1.0)
            scale = min(wanted, MOST_SCALE)
            _check(page.get_width() * scale * page.get_height() * scale, limits)
            bitmap = page.render(scale=scale, rev_byteorder=True)
            pixels = np.array(bitmap.to_numpy()[:, :, :3])
            if is_scan:
                return pixels, _in_lines(pixels, quotes, limits)
            height, width = pixels.shape[:2]
            return pixels, _in_text(page, text, quotes, (width, height))


def _in_text(
    page: Any,  # noqa: ANN401 - of pypdfium2
    text: Any,  # noqa: ANN401
    quotes: Sequence[str],
    size: tuple[int, int],
) -> list[Box]:
    """Return where quotes stand, letters alone compared: a line may end within a word."""
    signs = str(text.get_text_range())
    kept = [place for place, sign in enumerate(signs) if sign.isalnum()]
    letters = "".join(signs[place] for place in kept).lower()
    if len(letters) != len(kept):  # of a script whose small letters are more than one
        letters = "".join(signs[place] for place in kept)
    boxes: list[Box] = []
    for quote in quotes:
        at, length = _common(quote, letters)
        if length < max(LEAST_LETTERS, len(quote) * LEAST_PART) and length < len(quote):
            continue
        first, last = kept[at], kept[at + length - 1]
        for index in range(text.count_rects(first, last - first + 1)):
            boxes.append(_on_screen(page, text.get_rect(index), size))
    return boxes


def _on_screen(page: Any, rect: Sequence[float], size: tuple[int, int]) -> Box:  # noqa: ANN401
    corners = []
    for x, y in ((rect[0], rect[3]), (rect[2], rect[1])):
        across, down = ctypes.c_int(), ctypes.c_int()
        raw.FPDF_PageToDevice(page.raw, 0, 0, *size, 0, x, y, across, down)
        corners.append((across.value, down.value))
    (a, b), (c, d) = corners
    return min(a, c), min(b, d), max(a, c), max(b, d)


def _of_picture(
    path: Path, number: int, quotes: Sequence[str], limits: LoadLimits
) -> tuple[Pixels, list[Box]]:
    image = import_module("ingest.loaders.image")  # of the extra `ocr`, which has read it
    pixels = np.array(image.page_of(path, number, limits))
    return pixels, _in_lines(pixels, quotes, limits)


def _check(pixels: float, limits: LoadLimits) -> None:
    if pixels > limits.ocr_megapixels * 1e6:
        raise DocumentError("the page is too large to be drawn (ingest.ocr_megapixels)")


def _in_lines(pixels: Pixels, quotes: Sequence[str], limits: LoadLimits) -> list[Box]:
    """Return the lines of a scan that quotes are in; OCR reads it once more."""
    if not quotes:
        return []
    lines = [line for line in lines_of(pixels, limits) if _letters(line.text)]
    found = [line for line in lines if any(_shares(line, quote) for quote in quotes)]
    return [(one.left, one.top, one.right, one.bottom) for one in found]


def _shares(line: TextLine, quote: str) -> bool:
    letters = _letters(line.text)
    if letters in quote or quote in letters:
        return True
    sizes = range(min(len(letters), len(quote)) - 1, LEAST_LETTERS - 1, -1)
    if any(letters[-n:] == quote[:n] or letters[:n] == quote[-n:] for n in sizes):
        return True
    least = max(LEAST_LETTERS, LEAST_PART * min(len(letters), len(quote)))
    return _common(quote, letters)[1] >= least


def _common(quote: str, letters: str) -> tuple[int, int]:
    """Return where letters have the longest part of a quote, and its length."""
    if (at := letters.find(quote)) >= 0:
        return at, len(quote)
    found = SequenceMatcher(None, quote, letters, autojunk=False).find_longest_match()
    return found.b, found.size


def _letters(text: str) -> str:
    return "".join(sign for sign in text if sign.isalnum()).lower()


def _png(pixels: Pixels) -> bytes:
    height, width = pixels.shape[:2]
    rows = np.zeros((height, 1 + width * 3), dtype=np.uint8)  # each begins with its filter: none
    rows[:, 1:] = pixels.reshape(height, -1)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows.tobytes(), 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunks(parts))


def _chunks(parts: Sequence[tuple[bytes, bytes]]) -> Iterator[bytes]:
    for name, data in parts:
        check = zlib.crc32(name + data)
        yield struct.pack(">I", len(data)) + name + data + struct.pack(">I", check)
