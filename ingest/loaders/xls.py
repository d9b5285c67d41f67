"""Old XLS workbooks (Excel 5 to 2003)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import xlrd  # type: ignore[import-untyped]

from core.errors import DocumentError
from ingest.loaders import metadata
from ingest.loaders.content import is_binary
from ingest.loaders.limits import LoadLimits, because
from ingest.loaders.office.ole import OLE_MAGIC
from ingest.loaders.records import csv_file
from ingest.loaders.sheets import Cell, Row, Sheet, Workbook, cell_of
from ingest.types import LoadFailure, ParsedDocument

if TYPE_CHECKING:
    from xlrd.book import Book  # type: ignore[import-untyped]
    from xlrd.sheet import Cell as XlsCell  # type: ignore[import-untyped]
    from xlrd.sheet import Sheet as XlsSheet

_HEAD = 4096


def load(path: Path, relative: str, limits: LoadLimits) -> Iterator[ParsedDocument | LoadFailure]:
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
    yield from workbook.documents(_sheets(book), described)


def _open(path: Path) -> Book:
    with open(os.devnull, "w", encoding="utf-8") as log:
        try:
            # Merged areas are known only together with the formats.
            return xlrd.open_workbook(
                file_contents=path.read_bytes(), formatting_info=True, logfile=log
            )
        except MemoryError:
            raise
        except xlrd.XLRDError as error:
            if "encrypted" in str(error).lower():
                raise DocumentError(
                    "the XLS is password-protected; save it again without a password"
                ) from error
            raise DocumentError(f"the XLS is damaged or no XLS ({error})") from error
        except Exception as error:  # damaged files raise anything
            raise DocumentError(f"the XLS is damaged{because(error)}") from error


def _sheets(book: Book) -> Iterator[Sheet]:
    for sheet in book.sheets():
        merged = [
            (top + 1, left + 1, bottom, right) for top, bottom, left, right in sheet.merged_cells
        ]
        yield Sheet(sheet.name, _rows(book, sheet), merged, hidden=sheet.visibility != 0)


def _rows(book: Book, sheet: XlsSheet) -> Iterator[Row]:
    for at in range(sheet.nrows):
        yield at + 1, [_value(book, cell) for cell in sheet.row(at)]


def _value(book: Book, cell: XlsCell) -> Cell:
    if cell.ctype == xlrd.XL_CELL_DATE:
        try:
            return cell_of(xlrd.xldate.xldate_as_datetime(cell.value, book.datemode))
        except (ValueError, OverflowError, xlrd.XLDateError):
            return cell_of(cell.value)
    if cell.ctype == xlrd.XL_CELL_BOOLEAN:
        return bool(cell.value)
    return None if cell.ctype == xlrd.XL_CELL_ERROR else cell_of(cell.value)
