"""PDF to a block per page: PDFium reads the text, pypdf what PDFium cannot."""

from __future__ import annotations

import ctypes
import logging
import math
import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import pypdfium2  # type: ignore[import-untyped]
from pypdfium2 import raw

from core.errors import DocumentError
from ingest.loaders import metadata
from ingest.loaders.limits import LoadLimits, because, check_pages
from ingest.loaders.ocr import PictureReader
from ingest.loaders.outline import CELL
from ingest.loaders.tesseract import HINT
from ingest.loaders.text.plain_text import first_short_line
from ingest.loaders.visibility import WHITE, Colour, is_legible
from ingest.types import Block, Loaded, LoadFailure, ParsedDocument

if TYPE_CHECKING:
    from pypdf import PdfReader

_EDGE_LINES = 2  # at the top and the bottom of a page; chosen, not measured
_MIN_PAGES = 4  # fewer do not show what repeats; chosen, not measured
_DIGITS = re.compile(r"\d+")
_BULLET = re.compile(r"(?:[•‣▪●○◦–*-]|\d{1,3}[.)]|[a-zа-я]\))\s", re.I)
_MARK = re.compile(r"\W{1,2}|\W?(?:\d{1,3}(?:\.\d{1,3})*|[a-zа-я]|[ivx]+)\W?", re.I)
_SENTENCE_END = re.compile(r"[.!?…。！？:;]['\"”»)\]]*$")
_GOES_ON = frozenset(",.;:)]}»”、，。；：）")
_CJK = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]")
# PDFium marks a hyphen at a line end with U+FFFE or U+0002.
_HYPHEN_MARKS = re.compile("[\ufffe\x02]\\s*")


def page_texts(pages: list[str]) -> list[str]:
    """Return the text of each page as paragraphs parted by blank lines."""
    lines = [_with_rows(_lines_of(page)) for page in pages]
    running = _running_lines(lines)
    return [_paragraphs(_without_running(page, running)) for page in lines]


def _lines_of(page: str) -> list[str]:
    text = _HYPHEN_MARKS.sub("-\n", page.replace("\r\n", "\n").replace("\r", "\n"))
    return [line.strip() for line in text.split("\n")]


def _with_rows(lines: list[str]) -> list[str]:
    """Write the rows of tables as "a | b"; a line with a gap that stands alone is none."""
    cells = [_cells(line) for line in lines]
    counts = [0, *(len(found) for found in cells), 0]
    return [
        CELL.join(found) if len(found) > 1 and max(before, after) > 1 else " ".join(found)
        for found, before, after in zip(cells, counts, counts[2:], strict=False)
    ]


def _cells(line: str) -> list[str]:
    """Part a line at its gaps, but for the one behind the sign or number of an item."""
    first, *rest = line.split("\t")
    return [f"{first} {rest[0]}", *rest[1:]] if rest and _MARK.fullmatch(first) else [first, *rest]


def _shape(line: str) -> str:
    """Page numbers differ from page to page, so that all digits count as the same."""
    return _DIGITS.sub("#", line).casefold()


def _edges(lines: list[str]) -> list[str]:
    filled = [line for line in lines if line]
    return filled[:_EDGE_LINES] + filled[_EDGE_LINES:][-_EDGE_LINES:]


def _running_lines(pages: list[list[str]]) -> set[str]:
    filled = [page for page in pages if any(page)]
    if len(filled) < _MIN_PAGES:
        return set()
    seen = Counter(shape for page in filled for shape in {_shape(line) for line in _edges(page)})
    return {shape for shape, count in seen.items() if count > len(filled) / 2}


def _without_running(lines: list[str], running: set[str]) -> list[str]:
    if not running:
        return lines
    edges = {line for line in _edges(lines) if _shape(line) in running}
    return [line for line in lines if line not in edges]


def _paragraphs(lines: list[str]) -> str:
    widths = [len(line) for line in lines if len(line) > 3]
    full = 0.75 * median(widths) if widths else 0
    paragraphs: list[str] = []
    previous = ""
    for line in lines:
        if CELL in line and CELL in previous:
            paragraphs[-1] += f"\n{line}"
        elif (
            line
            and previous
            and CELL not in line + previous
            and not _starts_paragraph(previous, line, full)
        ):
            paragraphs[-1] = _join_line(paragraphs[-1], line)
        elif line:
            paragraphs.append(line)
        previous = line
    return "\n\n".join(paragraphs)


def _starts_paragraph(previous: str, line: str, full: float) -> bool:
    """A short line that ends a sentence, or a heading before a capital, ends its paragraph."""
    if _BULLET.match(line):
        return True
    if len(previous) >= full or line[0] in _GOES_ON:
        return False
    return bool(_SENTENCE_END.search(previous)) or not line[0].islower()


def _join_line(text: str, line: str) -> str:
    if text.endswith("-") and len(text) > 1 and text[-2].isalpha():
        last_word = text.rsplit(None, 1)[-1]
        if line[0].islower():
            # "state-of-the-" keeps its hyphen: the word already has one.
            return text + line if "-" in last_word[:-1] else text[:-1] + line
        return text + line
    both_cjk = _CJK.match(text[-1]) and _CJK.match(line[0])
    return text + line if both_cjk else f"{text} {line}"


# A space of justified text is far narrower than a line is high.
_MIN_GAP = 1.3  # heights of a line; chosen, not measured
_RULE, _MOST_RULES = 3.0, 500  # points of a drawn line, and how many are looked at; chosen
_SPACE = re.compile(r"(?<=\S) (?=\S)")


def with_tabs(text_page: Any, text: str) -> str:  # noqa: ANN401 (a text page of pypdfium2)
    """Return the text of a page with a tab instead of a space in each such gap, or at a rule."""
    if text_page.count_chars() != len(text):
        return text  # its characters cannot be distinguished by their place
    parts: list[str] = []
    done = 0
    rules = _vertical_rules(text_page.page)
    for match in _SPACE.finditer(text):
        at = match.start()
        left = text_page.get_charbox(at - 1, loose=True)
        right = text_page.get_charbox(at + 1, loose=True)
        height = min(left[3] - left[1], right[3] - right[1])
        middle = (left[1] + left[3]) / 2
        ruled = height > 0 and any(
            left[2] - 1 <= x <= right[0] + 1 and low <= middle <= high for x, low, high in rules
        )
        if ruled or (height > 0 and right[0] - left[2] > _MIN_GAP * height):
            parts += [text[done:at], "\t"]
            done = at + 1
    return "".join([*parts, text[done:]])


def _vertical_rules(page: Any) -> list[tuple[float, float, float]]:  # noqa: ANN401
    """Return where the lines between the columns of tables stand, and from where to where."""
    found: set[tuple[float, float, float]] = set()
    for one in page.get_objects(filter=[raw.FPDF_PAGEOBJ_PATH], max_depth=1):
        left, low, right, high = one.get_bounds()
        if right - left <= _RULE and high - low > 2 * _RULE and len(found) < _MOST_RULES:
            found.add((round(left, 1), round(low, 1), round(high, 1)))
    return sorted(found)


_PASSWORD_FIELD = 1 << 13  # a flag of ISO 32000
_PUSH_BUTTON = 1 << 16  # a flag of ISO 32000
_MAX_DEPTH = 20  # a bound against hostile nesting; chosen, not measured


def read_form_fields(path: Path) -> dict[int, str]:
    """Return the filled fields by page, counted from 0, as "name: value" paragraphs.

    A form that cannot be read has none: the text of the pages is what matters.
    """
    found: dict[int, str] = {}
    try:
        with _pypdf(path) as reader:
            for number, page in enumerate(reader.pages):
                if lines := dict.fromkeys(_lines(page)):
                    found[number] = "\n\n".join(lines)
    except MemoryError:
        raise
    except Exception:  # damaged files raise anything
        return found
    return found


@contextmanager
def _pypdf(path: Path) -> Iterator[PdfReader]:
    """Open a file with pypdf, which would warn of each damage that it mends."""
    from pypdf import PdfReader
    from pypdf.errors import FileNotDecryptedError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with PdfReader(path, strict=False) as reader:
            try:
                if reader.is_encrypted and not reader.decrypt(""):
                    raise DocumentError(_PASSWORD)
                yield reader
            except FileNotDecryptedError as error:
                raise DocumentError(_PASSWORD) from error


def _lines(page: Any) -> Iterator[str]:  # noqa: ANN401 (a pypdf page)
    for reference in page.get("/Annots") or ():
        annotation = reference.get_object()
        if annotation.get("/Subtype") == "/Widget" and (value := _value(annotation)):
            label = _find_entry(annotation, "/TU") or _find_entry(annotation, "/T")
            yield f"{label}: {value}" if label else value


def _value(widget: Any) -> str:  # noqa: ANN401
    kind = _find_entry(widget, "/FT")
    flags = _find_entry(widget, "/Ff")
    number = int(flags) if isinstance(flags, int) else 0
    if kind == "/Btn":
        state = str(widget.get("/AS") or "")
        return "" if number & _PUSH_BUTTON or state in ("", "/Off") else state.lstrip("/")
    if kind == "/Tx" and number & _PASSWORD_FIELD:
        return ""
    value = _find_entry(widget, "/V")
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    return str(value).strip() if isinstance(value, str) and not value.startswith("/") else ""


def _find_entry(widget: Any, key: str) -> Any:  # noqa: ANN401
    """Return an entry of a widget or of the field it belongs to."""
    for _ in range(_MAX_DEPTH):
        if (value := widget.get(key)) is not None:
            return value.get_object() if hasattr(value, "get_object") else value
        if (parent := widget.get("/Parent")) is None:
            return None
        widget = parent.get_object()
    return None


_WORD = re.compile(r"[^\W\d_]{3,}")
_MIN_WORDS = 10  # fewer do not show damage; chosen, not measured
_MAX_MIXED = 0.4  # share of words in mixed scripts; source not recorded
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
# The pages' texts, the metadata, the numbers of the pages that are pictures, and how many pieces of
# text are not seen.
_Read = tuple[list[str], dict[str, Any], list[int], int]
_MAX_FORM_DEPTH = 3  # of pictures within forms; chosen, not measured
_EVERYWHERE = (-math.inf, -math.inf, math.inf, math.inf)
_RECTANGLE = 5  # segments of one at most
_MIN_SIDE = 3.0  # points of what text can lie on; a line is thinner; chosen, not measured
_NO_TEXT = "no text layer; OCR it first"
OCR_SCALE = 200 / 72  # pixels for a point: 200 dpi, at which small print is read; not measured
_USELESS = {"(anonymous)", "anonymous", "(unspecified)", "unspecified", "unknown", "none", "user"}
_USELESS_TITLE = ("untitled", "microsoft word -", "document", "layout 1")


def load(path: Path, relative: str, limits: LoadLimits) -> Iterator[Loaded]:
    """Yield the one document of a PDF file, and name the pages that are pictures."""
    raw, described, pictures, unseen = _read(path, limits)
    pages = page_texts(raw)
    try:
        check_readable(pages)
    except DocumentError:
        if not limits.ocr:
            raise
        raw, pictures = [""] * len(raw), list(range(1, len(raw) + 1))
    found, problems = _read_pictures(path, pictures, limits) if limits.ocr else ({}, {})
    raw = [found.get(number, text) for number, text in enumerate(raw, start=1)]
    pages = page_texts(raw)
    blocks = [
        Block(text=text, page=number) for number, text in enumerate(pages, start=1) if text.strip()
    ]
    if pictures and not limits.ocr:
        problems = {f"no text layer; {HINT}": pictures}
    if not blocks:
        raise DocumentError(next(iter(problems), _NO_TEXT))
    for reason, numbers in problems.items():
        named = f"page{'s' if len(numbers) > 1 else ''} {ranges(numbers)}"
        yield LoadFailure(path=f"{relative}: {named}", reason=reason)
    title = str(described.get("title") or "")
    if title.lower().startswith(_USELESS_TITLE) or not any(c.isalpha() for c in title):
        described.pop("title", None)
        title = first_short_line(next((page for page in raw if page.strip()), ""))
    described |= {"pages": len(pages)}
    document = ParsedDocument.of_file(relative, "pdf", blocks, described, title)
    yield document.model_copy(update={"unseen": unseen})


def _read_pictures(
    path: Path, numbers: Sequence[int], limits: LoadLimits
) -> tuple[dict[int, str], dict[str, list[int]]]:
    """Return what OCR reads of pages by their numbers, and the pages of each reason against it."""
    reader, found, problems = PictureReader(limits), dict[int, str](), dict[str, list[int]]()
    if not numbers:
        return found, problems
    with closing(pypdfium2.PdfDocument(path)) as document:
        for number in numbers:
            page = document[number - 1]
            try:
                width, height = (side * OCR_SCALE for side in page.get_size())
                reader.check_size(width, height)
                shown = reader.read(page.render(scale=OCR_SCALE).to_pil())
                found[number], problem = shown.text, shown.loss
            except DocumentError as error:
                problem = error.rule
            if problem:
                problems.setdefault(problem, []).append(number)
            page.close()
    return found, problems


def _read(path: Path, limits: LoadLimits) -> _Read:
    """Try both libraries; the second also when the first finds no words."""
    failures: list[str] = []
    found: _Read | None = None
    for reader in (_with_pdfium, _with_pypdf):
        try:
            read = reader(path, limits)
        except (DocumentError, MemoryError):
            raise
        except Exception as error:  # damaged files raise anything
            failures.append(because(error))
            continue
        if any(page.strip() for page in read[0]):
            return read
        found = found or read
    if found is not None:
        return found
    raise DocumentError(f"the PDF is damaged; neither parser can open it{failures[-1]}")


def _with_pdfium(path: Path, limits: LoadLimits) -> _Read:
    try:
        document = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise DocumentError(_PASSWORD) from error
        raise
    try:
        check_pages(len(document), "PDF", "pages", limits)
        pages, pictures, unseen = [], [], 0
        for index in range(len(document)):
            page = document[index]
            unseen += _remove_unseen(page)
            text_page = page.get_textpage()
            pages.append(_text(text_page))
            text_page.close()
            shown = page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE], max_depth=_MAX_FORM_DEPTH)
            if not pages[-1].strip() and any(True for _ in shown):
                pictures.append(index + 1)
            page.close()
        info = document.get_metadata_dict(skip_empty=True)
        has_form = document.get_formtype() != pypdfium2.raw.FORMTYPE_NONE
    finally:
        document.close()
    for index, text in (read_form_fields(path) if has_form else {}).items():
        if index < len(pages):
            pages[index] = f"{pages[index]}\n\n{text}".strip()
    scans = [at for at in pictures if not pages[at - 1].strip()]
    return pages, _read_metadata(info), scans, unseen


def _remove_unseen(page: Any) -> int:  # noqa: ANN401 (a page of pypdfium2)
    """Take out text that nobody sees: too small, or of the colour of what it is on; count it.

    Invisible text on a picture is what OCR read in a scan.
    """
    drawn: list[_Drawn] = []
    gone, unprinted, pictures = [], [], []
    for one in page.get_objects(max_depth=_MAX_FORM_DEPTH):
        if one.type == raw.FPDF_PAGEOBJ_TEXT:
            if raw.FPDFTextObj_GetTextRenderMode(one) == raw.FPDF_TEXTRENDERMODE_INVISIBLE:
                unprinted.append(one)
            elif not _is_seen(one, drawn):
                gone.append(one)
        elif one.type != raw.FPDF_PAGEOBJ_PATH:  # a picture, a gradient, a form of more objects
            pictures += [one.get_bounds()] if one.type == raw.FPDF_PAGEOBJ_IMAGE else []
            drawn.append(_Drawn(_EVERYWHERE if one.level else one.get_bounds(), None))
        elif _is_filled(one):
            left, bottom, right, top = box = one.get_bounds()
            if min(right - left, top - bottom) >= _MIN_SIDE:
                # Places in a form are not those of its page; a frame is a shape with a hole.
                plain = not one.level and raw.FPDFPath_CountSegments(one) <= _RECTANGLE
                drawn.append(_Drawn(box, _fill(one) if plain else None))
    for one in unprinted:
        if not any(_covers(box, one.get_bounds()) for box in pictures):
            gone.append(one)
    for one in gone:
        page.remove_obj(one)
    return len(gone)


class _Drawn(NamedTuple):
    """Hold what is below text: its box, and its colour where it has one."""

    box: Sequence[float]
    colour: Colour | None


def _is_seen(one: Any, drawn: list[_Drawn]) -> bool:  # noqa: ANN401
    """Tell whether a piece of text can be made out on the last thing drawn where it stands."""
    ink = _fill(one)
    size, matrix = ctypes.c_float(), one.get_matrix().get()
    raw.FPDFTextObj_GetFontSize(one, ctypes.byref(size))
    points = size.value * math.hypot(matrix[2], matrix[3])
    if not is_legible(None, None, points):
        return False
    if raw.FPDFTextObj_GetTextRenderMode(one) != raw.FPDF_TEXTRENDERMODE_FILL:
        return True  # its outline is drawn, in a colour of its own
    if all(is_legible(ink, paper) for paper in {WHITE, *(shape.colour for shape in drawn)}):
        return True
    box = one.get_bounds()
    below = (shape.colour for shape in reversed(drawn) if one.level or _covers(shape.box, box))
    return is_legible(ink, next(below, WHITE))


def _fill(one: Any) -> Colour:  # noqa: ANN401
    values = [ctypes.c_uint() for _ in range(4)]
    raw.FPDFPageObj_GetFillColor(one, *map(ctypes.byref, values))
    return Colour(*(value.value / 255 for value in values))


def _is_filled(path: Any) -> bool:  # noqa: ANN401
    mode, stroke = ctypes.c_int(), ctypes.c_int()
    known = raw.FPDFPath_GetDrawMode(path, ctypes.byref(mode), ctypes.byref(stroke))
    return bool(known and mode.value)


def _covers(outer: Sequence[float], inner: Sequence[float]) -> bool:
    middle = (inner[0] + inner[2]) / 2, (inner[1] + inner[3]) / 2
    return all(outer[at] <= middle[at] <= outer[at + 2] for at in (0, 1))


def _text(page: Any) -> str:  # noqa: ANN401 (a text page of pypdfium2)
    """Return the text within the page; PDFium's other reading has more of the line ends."""
    inside = str(page.get_text_bounded())
    full = str(page.get_text_range())
    same = "".join(full.split()) == "".join(inside.split())
    return with_tabs(page, full) if same else inside


def _with_pypdf(path: Path, limits: LoadLimits) -> _Read:
    with _pypdf(path) as reader:
        check_pages(len(reader.pages), "PDF", "pages", limits)
        pages = [_page_text(page) for page in reader.pages]
        info = {str(key).lstrip("/"): value for key, value in (reader.metadata or {}).items()}
    return pages, _read_metadata(info), [], 0


def _page_text(page: Any) -> str:  # noqa: ANN401 (a pypdf page)
    try:
        return str(page.extract_text())
    except MemoryError:
        raise
    except Exception:  # one damaged page must not cost the others
        return ""


def _read_metadata(info: dict[str, Any]) -> dict[str, Any]:
    names = {"Title": "title", "Author": "authors", "Keywords": "keywords", "Subject": "subject"}
    found = {names[key]: str(value) for key, value in info.items() if key in names}
    found = {key: value for key, value in found.items() if value.strip().lower() not in _USELESS}
    created, changed = _day(info.get("CreationDate")), _day(info.get("ModDate"))
    found |= {"created": created, "updated_at": changed or created}
    return metadata.normalise(found)


def _day(written: object) -> str:
    """Return "D:20240131…" as 2024-01-31, anything that is no date as ""."""
    digits = str(written or "").removeprefix("D:")[:8]
    is_date = len(digits) == len("20240131") and digits.isdigit()
    return f"{digits[:4]}-{digits[4:6]}-{digits[6:]}" if is_date else ""
