"""PDF to a block per page: PDFium reads the text, pypdf what PDFium cannot."""

from __future__ import annotations

import logging
import re
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import pypdfium2  # type: ignore[import-untyped]
from pypdfium2 import raw

from core.errors import DocumentError
from ingest.loaders import metadata
from ingest.loaders.limits import LoadLimits, because
from ingest.loaders.pdf_layout import page_texts, with_tabs
from ingest.loaders.text.plain_text import first_short_line
from ingest.types import Block, LoadFailure, ParsedDocument

_PASSWORD_FIELD = 1 << 13
_PUSH_BUTTON = 1 << 16
_MAX_DEPTH = 20


def filled_in(path: Path) -> dict[int, str]:
    """Return the filled fields by page, counted from 0, as "name: value" paragraphs.

    A form that cannot be read has none: the text of the pages is what matters.
    """
    from pypdf import PdfReader

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    found: dict[int, str] = {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reader = PdfReader(path, strict=False)
            if reader.is_encrypted and not reader.decrypt(""):
                return {}
            for number, page in enumerate(reader.pages):
                if lines := dict.fromkeys(_lines(page)):
                    found[number] = "\n\n".join(lines)
    except MemoryError:
        raise
    except Exception:  # damaged files raise anything
        return found
    return found


def _lines(page: Any) -> Iterator[str]:  # noqa: ANN401 (a pypdf page)
    for reference in page.get("/Annots") or ():
        annotation = reference.get_object()
        if annotation.get("/Subtype") == "/Widget" and (value := _value(annotation)):
            label = _inherited(annotation, "/TU") or _inherited(annotation, "/T")
            yield f"{label}: {value}" if label else value


def _value(widget: Any) -> str:  # noqa: ANN401
    kind = _inherited(widget, "/FT")
    flags = _inherited(widget, "/Ff")
    number = int(flags) if isinstance(flags, int) else 0
    if kind == "/Btn":
        state = str(widget.get("/AS") or "")
        return "" if number & _PUSH_BUTTON or state in ("", "/Off") else state.lstrip("/")
    if kind == "/Tx" and number & _PASSWORD_FIELD:
        return ""
    value = _inherited(widget, "/V")
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    return str(value).strip() if isinstance(value, str) and not value.startswith("/") else ""


def _inherited(widget: Any, key: str) -> Any:  # noqa: ANN401
    """Return an entry of a widget or of the field it belongs to."""
    for _ in range(_MAX_DEPTH):
        if (value := widget.get(key)) is not None:
            return value.get_object() if hasattr(value, "get_object") else value
        if (parent := widget.get("/Parent")) is None:
            return None
        widget = parent.get_object()
    return None


_WORD = re.compile(r"[^\W\d_]{3,}")
_MIN_WORDS = 10
_MAX_MIXED = 0.4
# They stand beside one another in a word, or are signs that have the shape of letters.
_ONE_SCRIPT = frozenset(
    "CJK HIRAGANA KATAKANA KATAKANA-HIRAGANA HANGUL FULLWIDTH HALFWIDTH IDEOGRAPHIC "
    "BOPOMOFO".split()
)
_SIGNS = frozenset(
    "MODIFIER COMBINING FEMININE MASCULINE MICRO DOUBLE-STRUCK MATHEMATICAL SCRIPT BLACK-LETTER "
    "GREEK KELVIN OHM ANGSTROM INFORMATION SUPERSCRIPT SUBSCRIPT".split()
)


def check_readable(pages: Sequence[str]) -> None:
    """Raise DocumentError when most words mix scripts: the fonts do not name their characters."""
    words = [word for page in pages for word in _WORD.findall(page)]
    mixed = sum(len(_scripts(word)) > 1 for word in words)
    if len(words) >= _MIN_WORDS and mixed > _MAX_MIXED * len(words):
        raise DocumentError(
            "its fonts do not say which characters they show, so that its text layer is no text;"
            " OCR it first"
        )


def _scripts(word: str) -> set[str]:
    names = {unicodedata.name(letter, "NONE").split()[0] for letter in word}
    return {"CJK" if name in _ONE_SCRIPT else name for name in names - _SIGNS}


def ranges(numbers: Sequence[int]) -> str:
    """Write ascending page numbers as "3, 5-7"."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return ", ".join("-".join(str(end) for end in part) for part in parts)


_PASSWORD = "the PDF is password-protected; remove the password and ingest again"
# The pages' texts, the metadata, and the numbers of the pages that are pictures.
_Read = tuple[list[str], dict[str, Any], list[int]]
_MAX_FORM_DEPTH = 3
_NO_TEXT = "no text layer; OCR it first"
_USELESS = {"(anonymous)", "anonymous", "(unspecified)", "unspecified", "unknown", "none", "user"}
_USELESS_TITLE = ("untitled", "microsoft word -", "document", "layout 1")


def load(path: Path, relative: str, limits: LoadLimits) -> Iterator[ParsedDocument | LoadFailure]:
    """Yield the one document of a PDF file, and name the pages that are pictures."""
    raw, described, pictures = _read(path, limits)
    pages = page_texts(raw)
    blocks = [
        Block(text=text, page=number) for number, text in enumerate(pages, start=1) if text.strip()
    ]
    if not blocks:
        raise DocumentError(_NO_TEXT)
    check_readable(pages)
    if pictures:
        named = f"page{'s' if len(pictures) > 1 else ''} {ranges(pictures)}"
        yield LoadFailure(path=f"{relative}: {named}", reason=_NO_TEXT)
    title = str(described.get("title") or "")
    if title.lower().startswith(_USELESS_TITLE) or not any(c.isalpha() for c in title):
        described.pop("title", None)
        title = first_short_line(next((page for page in raw if page.strip()), ""))
    yield ParsedDocument(
        document_id=relative,
        source=relative,
        title=title or PurePosixPath(relative).stem,
        format="pdf",
        blocks=blocks,
        metadata=described | {"pages": len(pages)},
    )


def _read(path: Path, limits: LoadLimits) -> _Read:
    """Try both libraries; the second also when the first finds no words."""
    failures: list[str] = []
    pages: list[str] | None = None
    for reader in (_with_pdfium, _with_pypdf):
        try:
            pages, described, pictures = reader(path, limits.max_pages)
        except (DocumentError, MemoryError):
            raise
        except Exception as error:  # damaged files raise anything
            failures.append(because(error))
            continue
        if any(page.strip() for page in pages):
            return pages, described, pictures
    if pages is not None:
        return pages, {}, []
    raise DocumentError(f"the PDF is damaged; neither parser can open it{failures[-1]}")


def _check_pages(count: int, max_pages: int) -> None:
    if count > max_pages:
        raise DocumentError(
            f"the PDF has {count} pages; the limit is {max_pages} (ingest.max_pages); split it"
            " or raise it"
        )


def _with_pdfium(path: Path, max_pages: int) -> _Read:
    try:
        document = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise DocumentError(_PASSWORD) from error
        raise
    try:
        _check_pages(len(document), max_pages)
        pages, pictures = [], []
        for index in range(len(document)):
            page = document[index]
            text_page = page.get_textpage()
            pages.append(_text(text_page))
            text_page.close()
            if not pages[-1].strip() and _has_picture(page):
                pictures.append(index + 1)
            page.close()
        info = document.get_metadata_dict(skip_empty=True)
        has_form = document.get_formtype() != pypdfium2.raw.FORMTYPE_NONE
    finally:
        document.close()
    for index, text in (filled_in(path) if has_form else {}).items():
        if index < len(pages):
            pages[index] = f"{pages[index]}\n\n{text}".strip()
    return pages, _described(info), [at for at in pictures if not pages[at - 1].strip()]


def _has_picture(page: Any) -> bool:  # noqa: ANN401 (a page of pypdfium2)

    found = page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE], max_depth=_MAX_FORM_DEPTH)
    return next(iter(found), None) is not None


def _text(page: Any) -> str:  # noqa: ANN401 (a text page of pypdfium2)
    """Return the text within the page; PDFium's other reading has more of the line ends."""
    inside = str(page.get_text_bounded())
    whole = str(page.get_text_range())
    same = "".join(whole.split()) == "".join(inside.split())
    return with_tabs(page, whole) if same else inside


def _with_pypdf(path: Path, max_pages: int) -> _Read:
    from pypdf import PdfReader
    from pypdf.errors import FileNotDecryptedError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reader = PdfReader(path, strict=False)
        try:
            if reader.is_encrypted and not reader.decrypt(""):
                raise DocumentError(_PASSWORD)
            _check_pages(len(reader.pages), max_pages)
            pages = [_page_text(page) for page in reader.pages]
            info = {str(key).lstrip("/"): value for key, value in (reader.metadata or {}).items()}
        except FileNotDecryptedError as error:
            raise DocumentError(_PASSWORD) from error
        finally:
            reader.close()
    return pages, _described(info), []


def _page_text(page: Any) -> str:  # noqa: ANN401 (a pypdf page)
    try:
        return str(page.extract_text())
    except MemoryError:
        raise
    except Exception:  # one damaged page must not cost the others
        return ""


def _described(info: dict[str, Any]) -> dict[str, Any]:
    names = {"Title": "title", "Author": "authors", "Keywords": "keywords", "Subject": "subject"}
    found = {names[key]: str(value) for key, value in info.items() if key in names}
    found = {key: value for key, value in found.items() if value.strip().lower() not in _USELESS}
    created, changed = _day(info.get("CreationDate")), _day(info.get("ModDate"))
    found |= {"created": created, "updated_at": changed or created}
    return metadata.normalise(found)


def _day(written: object) -> str:
    """Return "D:20240131…" as 2024-01-31, what is no date as ""."""
    digits = str(written or "").removeprefix("D:")[:8]
    whole = len(digits) == len("20240131") and digits.isdigit()
    return f"{digits[:4]}-{digits[4:6]}-{digits[6:]}" if whole else ""
