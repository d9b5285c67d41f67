"""Excel workbooks of today and of 1997: sheets become tables or records."""

from __future__ import annotations

import os
import re
import warnings
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element
from xml.sax.saxutils import quoteattr

import openpyxl  # type: ignore[import-untyped]
import xlrd  # type: ignore[import-untyped]
from openpyxl import Workbook as Book
from openpyxl.styles.colors import COLOR_INDEX  # type: ignore[import-untyped]
from openpyxl.styles.numbers import BUILTIN_FORMATS_MAX_SIZE  # type: ignore[import-untyped]
from openpyxl.utils.cell import range_boundaries  # type: ignore[import-untyped]
from xlrd.book import Book as XlsBook  # type: ignore[import-untyped]
from xlrd.sheet import Cell as XlsCell  # type: ignore[import-untyped]

from core.errors import DocumentError
from ingest.loaders import metadata
from ingest.loaders.formats import OLE_MAGIC, is_binary
from ingest.loaders.limits import LoadLimits, report_damage
from ingest.loaders.office import ooxml
from ingest.loaders.records import csv_file
from ingest.loaders.sheets import Cell, Row, Sheet, Workbook, cell_of
from ingest.loaders.visibility import WHITE, Colour, colour_of, is_legible
from ingest.loaders.web.xml_tree import attribute, child, children, parse_xml
from ingest.types import Loaded

_HEAD = 4096  # bytes that tell a table saved as text; chosen, not measured


def load_xls(path: Path, relative: str, limits: LoadLimits) -> Iterator[Loaded]:
    """Yield the records of the tables of a workbook, and one document with its other sheets."""
    with path.open("rb") as handle:
        head = handle.read(_HEAD).lstrip(b"\xef\xbb\xbf\r\n\t ")
    if head.startswith(b"<"):  # XML of Excel 2003
        yield from import_module("ingest.loaders.web.xml_file").load(path, relative, limits)
        return
    if not head.startswith((OLE_MAGIC, b"\x09")) and not is_binary(head) and b"\x00" not in head:
        # Text between tabs, as web sites export.
        yield from csv_file.load(path, relative, limits)
        return
    book = _open(path)
    described = metadata.normalise({"authors": book.user_name or ""})
    workbook = Workbook(relative, "xls", limits)
    yield from workbook.documents(_xls_sheets(book), described)


def _open(path: Path) -> XlsBook:
    with open(os.devnull, "w", encoding="utf-8") as log, report_damage("the XLS is damaged"):
        try:
            # Merged areas are known only together with the formats.
            return xlrd.open_workbook(
                file_contents=path.read_bytes(), formatting_info=True, logfile=log
            )
        except xlrd.XLRDError as error:
            if "encrypted" in str(error).lower():
                raise DocumentError(
                    "the XLS is password-protected; save it again without a password"
                ) from error
            raise DocumentError(f"the XLS is damaged or no XLS ({error})") from error


def _xls_sheets(book: XlsBook) -> Iterator[Sheet]:
    for sheet in book.sheets():
        merged = [
            (top + 1, left + 1, bottom, right) for top, bottom, left, right in sheet.merged_cells
        ]
        rows = enumerate(([_value(book, cell) for cell in row] for row in sheet.get_rows()), 1)
        yield Sheet(sheet.name, rows, merged, hidden=sheet.visibility != 0)


def _value(book: XlsBook, cell: XlsCell) -> Cell:
    if cell.ctype == xlrd.XL_CELL_DATE:
        try:
            return cell_of(xlrd.xldate.xldate_as_datetime(cell.value, book.datemode))
        except (ValueError, OverflowError, xlrd.XLDateError):
            return cell_of(cell.value)
    if cell.ctype == xlrd.XL_CELL_BOOLEAN:
        return bool(cell.value)
    return None if cell.ctype == xlrd.XL_CELL_ERROR else cell_of(cell.value)


_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_PLAIN = (
    '<fonts count="1"><font/></fonts><fills count="1"><fill><patternFill/></fill></fills>'
    '<borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs>'
)
_STYLES = re.compile(r"xl/[\w.-]*styles[\w.-]*\.xml", re.I)


def without_looks(source: str | BytesIO) -> BytesIO:
    """Return the workbook with nothing in its styles but what makes a number a date."""
    out = BytesIO()
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            part = old.read(name)
            new.writestr(name, _bare(part) if _STYLES.fullmatch(name) else part)
    return out


def _each(root: Element, group: str, name: str) -> list[Element]:
    found = child(root, group)
    return [] if found is None else list(children(found, name))


def _bare(styles: bytes) -> bytes:
    root = parse_xml(styles)
    formats = "".join(
        f"<numFmt numFmtId={quoteattr(attribute(one, 'numFmtId'))}"
        f" formatCode={quoteattr(attribute(one, 'formatCode'))}/>"
        for one in _each(root, "numFmts", "numFmt")
        if attribute(one, "numFmtId").isdecimal()
    )
    cells = "".join(
        f'<xf numFmtId="{number if number.isdecimal() else 0}" applyNumberFormat="1"/>'
        for one in _each(root, "cellXfs", "xf")
        for number in [attribute(one, "numFmtId")]
    )
    numbers = f"<numFmts>{formats}</numFmts>" if formats else ""
    text = f'<styleSheet xmlns="{_MAIN}">{numbers}{_PLAIN}<cellXfs>{cells}</cellXfs></styleSheet>'
    return text.encode()


_MERGED = re.compile(rb'<(?:\w+:)?mergeCell\b[^>]*?\bref\s*=\s*"([A-Z]{1,3}\d+:[A-Z]{1,3}\d+)"')
_UNSEEN = re.compile(rb'<(?:\w+:)?(row|col)\b(?=[^>]*\bhidden\s*=\s*"(?:1|true)")[^>]*>')
_COLOURED = re.compile(rb"<(?:\w+:)?(?:conditionalFormatting|tablePart)\b")
_NUMBER = re.compile(rb'\b(r|min|max)\s*=\s*"(\d{1,7})"')
_MAX_COLUMNS = 16_384  # as many as a spreadsheet has
_Merged = list[tuple[int, int, int, int]]
_BLOCK = 1 << 20  # bytes read at once; chosen, not measured
_LONGEST_TAG = 200  # bytes kept of the block before; chosen, not measured
_MAX_MERGED = 100_000  # chosen, not measured


def load(path: Path, relative: str, limits: LoadLimits) -> Iterator[Loaded]:
    """Yield the records of the tables of a workbook, and one document with its other sheets."""
    if ooxml.is_ole(path) and ooxml.kind_of(path) == "xls":
        yield from load_xls(path, relative, limits)
        return
    ooxml.check(path, "XLSX", limits, "xl")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of parts that only concern looks
        yield from _documents(path, relative, limits)


def _documents(path: Path, relative: str, limits: LoadLimits) -> Iterator[Loaded]:
    with report_damage("the XLSX is damaged"):
        book = _open_book(ooxml.make_readable(path))
    with closing(book), report_damage("a sheet of the XLSX is damaged"):
        workbook = Workbook(relative, "xlsx", limits)
        yield from workbook.documents(_sheets(book), ooxml.read_properties(book.properties))


def _open_book(source: str | BytesIO) -> Book:
    def load(file: str | BytesIO) -> Book:
        return openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)

    try:
        return load(source)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        # Of the colours and fonts that other programs write, more than one is an error to openpyxl.
        return load(without_looks(source))


def _sheets(book: Book) -> Iterator[Sheet]:
    pale = _pale_styles(book)
    for sheet in book.worksheets:
        # A claimed size of a million rows would be filled with empty cells.
        sheet.reset_dimensions()
        if sheet.sheet_state != "visible":
            yield Sheet(sheet.title, iter(()), hidden=True)
            continue
        merged, rows, columns, coloured = _find_areas(book, sheet)
        found = Sheet(sheet.title, iter(()), merged, unseen=len(rows) + len(columns))
        shown = sheet.iter_rows(values_only=True)
        if pale and not coloured:
            shown = _without_pale(sheet, pale, found.pale)
        found.rows = _rows(shown, rows, columns)
        yield found


def _rows(rows: Iterable[Any], unseen: set[int], columns: set[int]) -> Iterator[Row]:
    for number, row in enumerate(rows, start=1):
        if row and number not in unseen:
            cells = enumerate(row, start=1)
            yield number, [None if at in columns else cell_of(value) for at, value in cells]


def _without_pale(sheet: Any, pale: set[int], left_out: list[int]) -> Iterator[Any]:  # noqa: ANN401
    """Yield the values of rows; note in `left_out` the row of each cell that nobody can see."""
    for number, row in enumerate(sheet.iter_rows(), start=1):
        hidden = [getattr(cell, "_style_id", 0) in pale for cell in row]
        values = [cell.value for cell in row]
        empty = (None, "")
        left_out += [number for no, value in zip(hidden, values, strict=True)
                     if no and value not in empty]  # fmt: skip
        yield [None if no else value for no, value in zip(hidden, values, strict=True)]


def _pale_styles(book: Any) -> set[int]:  # noqa: ANN401
    """Return the numbers of the cell styles whose text has the colour of its paper, or none."""
    found = set()
    for number, style in enumerate(book._cell_styles):
        font, fill = book._fonts[style.fontId], book._fills[style.fillId]
        solid = getattr(fill, "fill_type", None)
        paper = _shade(fill.fgColor) if solid == "solid" else None if solid else WHITE
        own = style.numFmtId - BUILTIN_FORMATS_MAX_SIZE
        written = book._number_formats[own] if 0 <= own < len(book._number_formats) else ""
        ink = None if font.color is None else _shade(font.color)
        if written == ";;;" or not is_legible(ink, paper, font.sz):
            found.add(number)
    return found


def _shade(colour: Any) -> Colour | None:  # noqa: ANN401
    """Return a colour of openpyxl, None for one of a theme but plain white."""
    if colour.type == "rgb":
        return colour_of(str(colour.rgb))
    if colour.type == "theme":
        return WHITE if colour.theme == 0 and not colour.tint else None
    known = colour.type == "indexed" and colour.indexed < len(COLOR_INDEX)
    return colour_of(COLOR_INDEX[colour.indexed]) if known else None


def _find_areas(book: Any, sheet: Any) -> tuple[_Merged, set[int], set[int], bool]:  # noqa: ANN401
    """Find merged areas, hidden rows and hidden columns, which openpyxl leaves out of a stream.

    The last says whether the sheet has tables or rules that colour cells.
    """
    found: _Merged = []
    unseen: dict[bytes, set[int]] = {b"row": set(), b"col": set()}
    rest, coloured = b"", False
    with book._archive.open(sheet._worksheet_path) as part:
        while (block := part.read(_BLOCK)) and len(found) < _MAX_MERGED:
            rest = rest[-_LONGEST_TAG:] + block
            coloured = coloured or _COLOURED.search(rest) is not None
            for match in _MERGED.finditer(rest):
                left, top, right, bottom = range_boundaries(match.group(1).decode())
                found.append((top, left, bottom, right))
            for tag in _UNSEEN.finditer(rest):
                numbers = {name: int(number) for name, number in _NUMBER.findall(tag[0])}
                first = numbers.get(b"r") or numbers.get(b"min") or 0
                last = min(numbers.get(b"max", first), _MAX_COLUMNS)
                unseen[tag[1]].update(range(first, last + 1) if first else ())
    return list(dict.fromkeys(found)), unseen[b"row"], unseen[b"col"], coloured
