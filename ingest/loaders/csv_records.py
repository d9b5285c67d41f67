"""CSV and TSV: the first row names the fields, every other row is a record."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator

from core.errors import DocumentError
from ingest.loaders import records
from ingest.types import LoadFailure, ParsedDocument

_DELIMITERS = ",;\t|"
_SNIFFED_ROWS = 50
_INTEGER = re.compile(r"-?(?:0|[1-9]\d{0,17})")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,17})(?:\.\d{1,17})?")


def load(relative: str, text: str) -> Iterator[ParsedDocument | LoadFailure]:
    """Yield a record or a failure per row; a row's number counts records from 1."""
    # The default of 131,072 characters refuses a long annotation.
    csv.field_size_limit(2**31 - 1)
    rows = [(line, row) for line, row in _rows(text, _delimiter(text)) if any(map(str.strip, row))]
    if not rows:
        raise DocumentError("no rows")
    header, rows = _header(rows)
    if not rows:
        raise DocumentError("a header and no rows")
    numeric = _numeric_columns(header, [row for _, row in rows])
    id_name, title_name = records.find_id(header), records.find_title(header)
    first_line: dict[str, int] = {}
    for number, (line, row) in enumerate(rows, start=1):
        if len(row) != len(header):
            reason = f"{len(row)} cells where the header has {len(header)}"
            yield LoadFailure(path=f"{relative}:{line}", reason=reason)
            continue
        values = {name: cell.strip() for name, cell in zip(header, row, strict=True)}
        document_id = (id_name and values[id_name]) or f"{relative}#{number}"
        earlier = first_line.setdefault(document_id, line)
        if earlier != line:
            reason = f"the id {document_id!r} is already used on line {earlier}"
            yield LoadFailure(path=f"{relative}:{line}", reason=reason)
            continue
        fields: records.Fields = {
            name: numeric[name](value) if name in numeric and name != id_name else value
            for name, value in values.items()
            if value
        }
        title = (title_name and values[title_name]) or _first_text(fields, id_name) or document_id
        yield records.record(relative, document_id, fields, title=title[:300], format_name="csv")


def _rows(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each row with the line it starts on; a quoted cell may hold line ends."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
    line = 1
    try:
        for row in reader:
            yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        raise DocumentError(f"not readable as CSV near line {line} ({error})") from error


def _delimiter(text: str) -> str:
    """Choose the character that splits the first rows most evenly, then most finely."""
    sample = "\n".join(text.split("\n", _SNIFFED_ROWS)[:_SNIFFED_ROWS])

    def score(delimiter: str) -> tuple[float, int]:
        try:
            widths = Counter(len(row) for _, row in _rows(sample, delimiter) if row)
        except DocumentError:
            return (0.0, 0)
        width, rows = widths.most_common(1)[0] if widths else (1, 1)
        return (rows / widths.total(), width) if width > 1 else (0.0, 0)

    return max(_DELIMITERS, key=score)


def _header(
    rows: list[tuple[int, list[str]]],
) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Return unique column names and the data rows; a first row of numbers is data."""
    first = [cell.strip() for cell in rows[0][1]]
    if all(_NUMBER.fullmatch(cell) for cell in first):
        return [f"column {at}" for at in range(1, len(first) + 1)], rows
    header: list[str] = []
    for at, name in enumerate(first, start=1):
        unique, copy = name or f"column {at}", 2
        while unique in header:
            unique, copy = f"{name or f'column {at}'}_{copy}", copy + 1
        header.append(unique)
    return header, rows[1:]


def _numeric_columns(
    header: list[str], rows: list[list[str]]
) -> dict[str, type[int] | type[float]]:
    """Name the columns where every cell is a number; one "n/a" or "007" keeps a column text."""
    found: dict[str, type[int] | type[float]] = {}
    for at, name in enumerate(header):
        cells = [row[at].strip() for row in rows if at < len(row) and row[at].strip()]
        if cells and all(_NUMBER.fullmatch(cell) for cell in cells):
            found[name] = int if all(_INTEGER.fullmatch(cell) for cell in cells) else float
    return found


def _first_text(fields: records.Fields, id_name: str | None) -> str:
    return next(
        (value for name, value in fields.items() if isinstance(value, str) and name != id_name), ""
    )
