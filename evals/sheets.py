"""Tables that people open in a spreadsheet: written so that no cell is a formula, read strictly."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from core.errors import CallerError

# What a spreadsheet takes for a formula, also in the full width of East Asian keyboards.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
BYTE_ORDER_MARK = "\ufeff"  # without it some spreadsheets read UTF-8 as another encoding


def sheet_text(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return CSV; a cell that looks like a formula gets an apostrophe in front."""
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerow(headers)
    writer.writerows([[neutral(cell) for cell in row] for row in rows])
    return BYTE_ORDER_MARK + written.getvalue()


def neutral(cell: str) -> str:
    """Return a cell that no spreadsheet calculates."""
    return f"'{cell}" if cell.startswith(FORMULA) else cell


def read_sheet(path: Path, columns: Sequence[str]) -> list[tuple[int, dict[str, str]]]:
    """Return (row as a spreadsheet counts it, cells by column) of all rows with any text.

    Commas or semicolons may stand between the cells. A missing column is a CallerError.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise CallerError(
            "the sheet must be UTF-8", value=str(path), hint="save it as CSV UTF-8"
        ) from None
    except OSError as error:
        raise CallerError(
            "the sheet must be a readable file",
            value=f"{path} ({error.strerror or error})",
            hint="check the path",
        ) from None
    header = text.split("\n", 1)[0]
    delimiter = ";" if header.count(";") > header.count(",") else ","
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise CallerError(
            f"{path.name} is not valid CSV ({error})", hint="save it as CSV UTF-8 again"
        ) from None
    names = [name.strip().lower() for name in rows[0]] if rows else []
    for column in columns:
        if names.count(column) != 1:
            raise CallerError(
                f"{path.name} must have one column named '{column}'",
                value=", ".join(names),
                hint="keep the first row of the exported sheet as it is",
            )
    places = {column: names.index(column) for column in columns}
    return [
        (number, {name: (row[at].strip() if at < len(row) else "") for name, at in places.items()})
        for number, row in enumerate(rows[1:], start=2)
        if any(cell.strip() for cell in row)
    ]
