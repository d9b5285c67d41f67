"""CSV and TSV: the first row names the fields, every other row is a record."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

from core.errors import DocumentError
from core.metadata import find_title
from ingest.loaders.formats import suffix_of
from ingest.loaders.limits import LoadLimits
from ingest.loaders.records import record_fields
from ingest.loaders.records.record_fields import check_fields, first_text, record
from ingest.loaders.text.encoding import TextFile
from ingest.types import Loaded, LoadFailure

_DELIMITERS = ",;\t|"
_SNIFFED_ROWS = 50  # that tell the delimiter; chosen, not measured
_LONGEST_LINE = 2  # times max_characters: a line holds several cells
_INTEGER = re.compile(r"-?(?:0|[1-9]\d{0,17})")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,17})(?:\.\d{1,17})?")


def load(path: Path, relative: str, limits: LoadLimits) -> Iterator[Loaded]:
    """Yield a record or a failure per row; a row's number counts records from 1.

    The file is read twice as a stream: for the kinds of its columns, and for its rows.
    """
    csv.field_size_limit(limits.max_characters)
    table = _Table(TextFile(path, suffix_of(path.name), limits.max_records_mb), limits)
    header, numeric = table.header, table.numeric
    id_name, title_name = record_fields.find_id(header), find_title(header)
    seen: dict[int, int] = {}
    for number, (line, row) in enumerate(table.rows(), start=1):
        try:
            if len(row) != len(header):
                raise DocumentError(f"{len(row)} cells where the header has {len(header)}")
            values = {name: cell.strip() for name, cell in zip(header, row, strict=True)}
            document_id = (id_name and values[id_name]) or f"{relative}#{number}"
            record_fields.check_new(seen, document_id, line, "on line")
        except DocumentError as error:
            yield LoadFailure(path=f"{relative}:{line}", reason=error.rule)
            continue
        fields: record_fields.Fields = {
            name: numeric[name](value) if name in numeric and name != id_name else value
            for name, value in values.items()
            if value
        }
        title = (title_name and values[title_name]) or first_text(fields, id_name) or document_id
        yield record(relative, document_id, fields, title=title[:300], format_name="csv")


class _Table:
    """Know the delimiter, the header and the kinds of the columns of a file."""

    def __init__(self, text: TextFile, limits: LoadLimits) -> None:
        self._text = text
        self._longest = _LONGEST_LINE * limits.max_characters
        self._delimiter = _delimiter(list(islice(self._lines(), _SNIFFED_ROWS)))
        rows = self._filled_rows()
        first = next(rows, None)
        if first is None:
            raise DocumentError("no rows")
        check_fields(len(first[1]), limits)
        self.header, self._skipped = _header([cell.strip() for cell in first[1]])
        rest = rows if self._skipped else chain([first], rows)
        self.numeric = _numeric_columns(self.header, (row for _, row in rest))

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        return islice(self._filled_rows(), self._skipped, None)

    def _filled_rows(self) -> Iterator[tuple[int, list[str]]]:
        rows = _rows(self._lines(), self._delimiter)
        return ((line, row) for line, row in rows if any(map(str.strip, row)))

    def _lines(self) -> Iterator[str]:
        for number, (line, complete) in enumerate(self._text.lines(self._longest), start=1):
            if not complete:
                raise DocumentError(
                    f"line {number} is longer than {self._longest} characters"
                    " (ingest.max_characters)"
                )
            yield line


def _rows(lines: Iterable[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each row with the line it starts on; a quoted cell may hold line ends."""
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    line = 1
    try:
        for row in reader:
            yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        raise DocumentError(f"not readable as CSV near line {line} ({error})") from error


def _delimiter(sample: list[str]) -> str:
    """Choose the character that splits the first rows most evenly, then most finely."""

    def score(delimiter: str) -> tuple[float, int]:
        try:
            widths = Counter(len(row) for _, row in _rows(sample, delimiter) if row)
        except DocumentError:
            return (0.0, 0)
        width, rows = widths.most_common(1)[0] if widths else (1, 1)
        return (rows / widths.total(), width) if width > 1 else (0.0, 0)

    return max(_DELIMITERS, key=score)


def _header(first: list[str]) -> tuple[list[str], int]:
    """Return unique column names and how many rows they take; a first row of numbers is data."""
    if all(_NUMBER.fullmatch(cell) for cell in first):
        return [f"column {at}" for at in range(1, len(first) + 1)], 0
    header: dict[str, None] = {}
    copies: Counter[str] = Counter()
    for at, given in enumerate(first, start=1):
        unique = name = given or f"column {at}"
        while unique in header:
            copies[name] += 1
            unique = f"{name}_{copies[name] + 1}"
        header[unique] = None
    return list(header), 1


def _numeric_columns(
    header: list[str], rows: Iterator[list[str]]
) -> dict[str, type[int] | type[float]]:
    """Name the columns where every cell is a number; one "n/a" or "007" keeps a column text."""
    found: dict[str, type[int] | type[float]] = {}
    open_columns = dict(enumerate(header))
    empty = True
    for row in rows:
        empty = False
        for at, name in list(open_columns.items()):
            cell = row[at].strip() if at < len(row) else ""
            if not cell:
                continue
            if not _NUMBER.fullmatch(cell):
                del open_columns[at]
                found.pop(name, None)
            elif found.get(name) is not float:
                found[name] = int if _INTEGER.fullmatch(cell) else float
        if not open_columns:
            break
    if empty:
        raise DocumentError("a header and no rows")
    return found
