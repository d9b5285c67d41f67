"""Tesseract as a library of the system: it reads the languages whose data are installed."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from functools import cache
from glob import glob
from pathlib import Path
from typing import Any

from core.distribution import has_extra, install_command
from ingest.loaders.ocr_lines import TextLine

LANGUAGES = ("rus", "ukr", "eng", "chi_sim")  # those that Carrel answers in
_NAMES = ("libtesseract.so.5", "libtesseract.so.4", "libtesseract.5.dylib")
_DATA = (
    "/usr/share/tesseract-ocr/*/tessdata", "/usr/share/tessdata", "/usr/local/share/tessdata",
    "/opt/homebrew/share/tessdata",
)  # fmt: skip
_LINE = 2  # RIL_TEXTLINE
_DPI = 200  # that pages are drawn with


@cache
def _library() -> Any:  # noqa: ANN401 (functions of C)
    for name in _NAMES:
        with suppress(OSError):
            library = ctypes.CDLL(name)
            for function, result in (
                ("BaseAPICreate", ctypes.c_void_p),
                ("BaseAPIGetIterator", ctypes.c_void_p),
                ("ResultIteratorGetPageIterator", ctypes.c_void_p),
                ("ResultIteratorGetUTF8Text", ctypes.c_void_p),
                ("ResultIteratorConfidence", ctypes.c_float),
            ):
                getattr(library, f"Tess{function}").restype = result
            return library
    return None


def _data() -> str:
    """Return the folder of the data of languages, "" for none."""
    given = os.environ.get("TESSDATA_PREFIX")
    folders = [given] if given else sorted(one for pattern in _DATA for one in glob(pattern))
    return next((one for one in reversed(folders) if _known(one)), "")


def _known(folder: str) -> list[str]:
    return [one for one in LANGUAGES if Path(folder, f"{one}.traineddata").exists()]


def installed_languages() -> list[str]:
    """Return the languages that Tesseract reads on this machine, none where it is not there."""
    folder = _data()
    return _known(folder) if folder and _library() is not None else []


class Tesseract:
    """Read pictures in some languages; make one for many pictures, and use it on one thread."""

    def __init__(self, languages: list[str]) -> None:
        """Load the data of the languages, which `installed_languages` gives."""
        self._library = _library()
        self._api = ctypes.c_void_p(self._library.TessBaseAPICreate())
        spoken = "+".join(languages).encode()
        if self._library.TessBaseAPIInit3(self._api, _data().encode(), spoken):
            raise ValueError("the data of its languages cannot be loaded")

    def lines(self, pixels: bytes, width: int, height: int) -> list[TextLine]:
        """Return the lines of a grey picture of one byte a pixel, row by row."""
        library, api = self._library, self._api
        library.TessBaseAPISetImage(api, pixels, width, height, 1, width)
        library.TessBaseAPISetSourceResolution(api, _DPI)
        found: list[TextLine] = []
        if library.TessBaseAPIRecognize(api, None):
            return found
        results = ctypes.c_void_p(library.TessBaseAPIGetIterator(api))
        if not results:
            return found
        pages = ctypes.c_void_p(library.TessResultIteratorGetPageIterator(results))
        while True:
            box = [ctypes.c_int() for _ in range(4)]
            if library.TessPageIteratorBoundingBox(pages, _LINE, *map(ctypes.byref, box)):
                written = library.TessResultIteratorGetUTF8Text(results, _LINE)
                text = ctypes.string_at(written).decode("utf-8", "replace") if written else ""
                library.TessDeleteText(ctypes.c_void_p(written))
                sure = library.TessResultIteratorConfidence(results, _LINE) / 100
                found.append(TextLine(" ".join(text.split()), sure, *(one.value for one in box)))
            if not library.TessResultIteratorNext(results, _LINE):
                break
        library.TessResultIteratorDelete(results)
        library.TessBaseAPIClear(api)
        return found


RAPID, TESSERACT = "rapidocr", "tesseract"
HINT = f"run `{install_command('ocr')}` and ingest again, or OCR it first"
CYRILLIC = (
    "Cyrillic needs Tesseract: `apt install tesseract-ocr tesseract-ocr-rus tesseract-ocr-ukr`, "
    "or OCR it first"
)


def engines_for(wanted: str) -> str:
    """Return the engines and languages that a setting of `ingest.ocr` gives here, "" for none."""
    found = [RAPID] if wanted in ("auto", RAPID) and has_extra("ocr") else []
    if wanted in ("auto", TESSERACT):
        spoken = [one for one in installed_languages() if not (found and one == "chi_sim")]
        found += [f"{TESSERACT} {'+'.join(spoken)}"] if spoken else []
    return ", ".join(found)
