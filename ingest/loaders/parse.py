"""What the parser process does with one file: pick the loader, bound the text, name the fault.

Each row of a table that stands in a document becomes a record beside the text that it is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path

from core.errors import DocumentError
from core.metadata import TABLE_FORMAT, find_title
from ingest.loaders.formats import (
    FORMATS,
    format_of,
    head_of,
    kind_of,
    refusal,
    suffix_of,
    suffix_of_content,
)
from ingest.loaders.limits import MB, LoadLimits, because, unreadable
from ingest.loaders.outline import CELL, SECTION_SEPARATOR
from ingest.loaders.records.record_fields import Fields, Scalar, first_text, limit_fields, record
from ingest.loaders.sheets import cell_of, find_header
from ingest.loaders.tesseract import HINT
from ingest.loaders.text.encoding import decode
from ingest.types import Block, Loaded, LoadFailure, ParsedDocument
from languages.language import known_languages

_MIN_ROWS = 2  # below the header: one is neither counted nor compared; chosen, not measured
_LONGEST_HEADING = 60  # characters of it in the name of a table; chosen, not measured
_UNNAMED = "table"
_MARKS = re.compile(r"[#!]")  # which part the names in the id of a row
_UNIT = re.compile(r"(.*\S)\s*\(([^()\d]{1,12})\)")  # "Pressure (bar)"
_NO_LABEL = re.compile(r"[^\w ]+")  # what the label of a record's line does not have
_DATE = re.compile(r"\d{4}-\d{2}(?:-\d{2})?|\d{1,2}[./]\d{1,2}[./]\d{2,4}")
_FIGURE = re.compile(
    r"(?P<before>[^\w\s+.,−-]{0,2})\s?(?P<sign>[-+−]?)\s?"
    r"(?P<whole>0|[1-9]\d{0,2}(?:[ \u00a0\u202f'’.,]\d{3})+|[1-9]\d{0,14})"
    r"(?:(?P<point>[.,])(?P<part>\d{1,9}))?\s?(?P<unit>[^\d\s.,][^\d]{0,11})?"
)

_Row = tuple[Block, list[str]]


def table_records(document: ParsedDocument, limits: LoadLimits) -> Iterator[ParsedDocument]:
    """Yield a record for each row of the document's tables that can be counted and filtered.

    Those are tables with a header and with a column of numbers, of dates or of values that repeat;
    any other table, and what is beyond `max_table_rows` or `max_fields`, stays text alone.
    """
    names: Counter[str] = Counter()
    fields: set[str] = set()
    left = limits.max_table_rows
    for found in _tables(document.blocks):
        # A cell over the whole width is the heading of the rows below it.
        rows = [row for row in found if len(row[1]) > 1]
        if not _MIN_ROWS < len(rows) <= left + 1 or not _is_table([cells for _, cells in rows]):
            continue
        header = _field_names(rows[0][1])
        if len(fields | header.keys()) > limits.max_fields:
            continue
        fields |= header.keys()
        heading = found[0][0].section.rsplit(SECTION_SEPARATOR, 1)[-1]
        heading = " ".join(_MARKS.sub(" ", heading).split())[:_LONGEST_HEADING] or _UNNAMED
        names[heading] += 1
        name = heading if names[heading] == 1 else f"{heading} {names[heading]}"
        left -= len(rows) - 1
        yield from _records(document, name, header, rows)


def _tables(blocks: Iterable[Block]) -> Iterator[list[_Row]]:
    """Yield the rows of each table; of a page, whose text is one block, lines with cells are one.

    What goes on at the top of the next page, with as many columns, is the same table.
    """
    table: list[_Row] = []
    for block in blocks:
        paged = block.kind == "text" and block.page is not None
        parts = block.text.split("\n\n") if paged else [block.text * (block.kind == "table")]
        for place, part in enumerate(parts):
            lines = part.split("\n") if CELL in part else []
            rows = [(block, line.split(CELL)) for line in lines]
            goes_on = paged and not place and rows and table
            if goes_on and len(rows[0][1]) == len(table[0][1]):
                rows = rows[1:] if rows[0][1] == table[0][1] else rows
            elif table:
                yield table
                table = []
            table += rows
    if table:
        yield table


def _is_table(rows: list[list[str]]) -> bool:
    """Tell whether rows are those of a table that says the same of each of several things."""
    header = [cell.strip() for cell in rows[0]]
    if any(len(cells) != len(header) for cells in rows):
        return False  # cells were merged or lost: which column one is of is not known
    if find_header([[cell_of(cell) for cell in cells] for cells in rows]) != 0:
        return False
    return any(_can_filter(column[0], column[1:]) for column in zip(*rows, strict=True))


def _can_filter(name: str, cells: Sequence[str]) -> bool:
    filled = [cell.strip() for cell in cells if cell.strip()]
    if len(filled) < _MIN_ROWS or name.strip() in filled:
        return False
    dated = all(_DATE.fullmatch(cell) for cell in filled)
    repeated = len({cell.casefold() for cell in filled}) < len(filled)
    return dated or repeated or _figures(filled) is not None


def _records(
    document: ParsedDocument, name: str, header: dict[str, str], rows: list[_Row]
) -> Iterator[ParsedDocument]:
    figures = [_figures(column) for column in zip(*(cells for _, cells in rows[1:]), strict=True)]
    title_name = find_title(header)
    for number, (block, cells) in enumerate(rows[1:], start=1):
        shown: Fields = {}
        values: Fields = {}
        for (key, unit), cell, column in zip(header.items(), cells, figures, strict=True):
            if text := cell.strip():
                value = text if column is None else column[number - 1]
                shown[key] = f"{text} {unit}" if unit and text == str(value) else text
                values[key] = value
        if _totals().intersection(cell.strip(" :：").casefold() for cell in cells):
            continue  # it is none of the things, and adds them up
        title = shown.get(title_name or "") or first_text(shown, None)
        row_id = f"{document.document_id}#{name}!{number}"
        made = record(
            document.source, row_id, shown, title=str(title)[:300], format_name=TABLE_FORMAT
        )
        section = SECTION_SEPARATOR.join(filter(None, [block.section, f"row {number}"]))
        place = {"section": section, "page": block.page}
        update = {
            "blocks": [one.model_copy(update=place) for one in made.blocks],
            "fields": {key: values[key] for key in made.fields},
            # What is said of the document, such as its version, holds for its rows, too.
            "metadata": document.metadata,
        }
        yield made.model_copy(update=update)


def _field_names(header: Sequence[str]) -> dict[str, str]:
    """Return the names of the columns, as a record's lines are labelled, and the unit of each."""
    found: dict[str, str] = {}
    for at, cell in enumerate(header, start=1):
        match = _UNIT.fullmatch(cell.strip())
        name = " ".join(_NO_LABEL.sub(" ", match[1] if match else cell).split())
        if not name[:1].isalpha() or name in found:
            name = f"column {at}"
        found[name] = match[2].strip() if match else ""
    return found


@cache
def _totals() -> frozenset[str]:
    """Return what the last row of a table is called that adds up the others."""
    marks = (one.read("records").get("marks", {}) for one in known_languages().values())
    return frozenset(str(word).casefold() for listed in marks for word in listed.get("sum", ()))


def _figures(cells: Sequence[str]) -> list[Scalar] | None:
    """Return the numbers of a column, "" where it is empty; None where not all are numbers.

    All of them have the same unit, or none. A comma before three digits parts thousands, unless
    a number of the column has one elsewhere.
    """
    matches = [_FIGURE.fullmatch(cell.strip()) if cell.strip() else None for cell in cells]
    found = [one for one in matches if one is not None]
    if len(found) < sum(bool(cell.strip()) for cell in cells) or not found:
        return None
    if len({(one["before"], (one["unit"] or "").strip()) for one in found}) > 1:
        return None
    decimal = any(one["point"] == "," for one in found)
    return ["" if one is None else _figure(one, decimal=decimal) for one in matches]


def _figure(match: re.Match[str], *, decimal: bool) -> int | float:
    whole, part = match["whole"], match["part"] or ""
    groups = re.split(r"\D", whole)
    if not part and len(groups) == 2 and (whole[-4] == "." or (decimal and whole[-4] == ",")):
        whole, part = groups  # 1.250, and 1,250 beside 3,5
    digits = re.sub(r"\D", "", whole)
    sign = "-" if match["sign"] in ("-", "−") else ""
    return float(f"{sign}{digits}.{part}") if part else int(sign + digits)


_WITH_PICTURES = {"docx", "pptx", "xlsx", "odf"}
# What their loaders know better: XHTML is XML, and a record or a letter may begin with a tag.
_BEGIN_AS_HTML = {"xml", "mail", "mbox", "csv", "jsonl", "json", "notebook"}


def parse(path: Path, relative: str, limits: LoadLimits) -> Iterator[Loaded]:
    """Yield the documents of a file and the failures of it or its records.

    Raises MemoryError only: after that the process is not to be used again.
    """
    try:
        for item in _parse(path, relative, limits):
            yield _within(item, limits)
    except MemoryError:
        raise
    except DocumentError as error:
        yield LoadFailure(path=relative, reason=error.rule)
    except OSError as error:
        yield LoadFailure(path=relative, reason=unreadable(error))
    except RecursionError:
        yield LoadFailure(path=relative, reason="nested too deeply to be read")
    except Exception as error:  # a parser's own fault with this content
        reason = f"damaged, or no real {suffix_of(path.name) or 'text'} file{because(error)}"
        yield LoadFailure(path=relative, reason=reason)


def _parse(path: Path, relative: str, limits: LoadLimits) -> Iterator[Loaded]:
    name = _format_name(path)
    _check_size(path.stat().st_size, name, limits)
    chosen = FORMATS[name]
    if chosen.module == "image" and not limits.ocr:
        raise DocumentError(f"it is an image; {HINT}")
    if not chosen.text_share:
        found = chosen.loader()(path, relative, limits)
        if name in _WITH_PICTURES:
            module = import_module(f"ingest.loaders.{'image' if limits.ocr else 'office.pictures'}")
            found = module.with_pictures(found, path, relative, limits)
        # Of files in a file each one counts for itself.
        yield from found if chosen.writes else limit_fields(_with_tables(found, limits), limits)
        return
    content = decode(path.read_bytes(), suffix_of(path.name))
    if not content.strip():
        raise DocumentError("the file holds only white space")
    _check_characters(len(content), limits, share=chosen.text_share)
    yield from _with_tables(chosen.loader()(relative, content), limits)


def _with_tables(items: Iterable[Loaded], limits: LoadLimits) -> Iterator[Loaded]:
    """Yield the items, each document before the records of its tables."""
    for item in items:
        yield item
        if isinstance(item, ParsedDocument) and not item.is_record:
            yield from table_records(item, limits)


def _format_name(path: Path) -> str:
    """Choose the format by the content where that is certain, else by the name."""
    named = format_of(path.name)
    if named is None:
        raise DocumentError(refusal(path.name))
    if path.is_dir():  # a docset: discovery gives no other folder
        return named
    head = head_of(path)
    suffix = suffix_of_content(head, path)
    found = format_of(f"x{suffix}") if suffix else None
    if found in FORMATS and not (found == "html" and named in _BEGIN_AS_HTML):
        return found
    kind = kind_of(head)
    if kind and "image" in kind:
        return "image"
    return named


def _check_size(size: int, name: str, limits: LoadLimits) -> None:
    if size == 0:
        raise DocumentError("the file is empty")
    records = name in FORMATS and FORMATS[name].records
    most = max(limits.max_records_mb, limits.max_file_mb) if records else limits.max_file_mb
    if size > most * MB:
        setting = "ingest.max_records_mb" if records else "ingest.max_file_mb"
        raise DocumentError(
            f"the file is {size / MB:.0f} MB; the limit is {most:g} MB ({setting}); split the"
            " file or raise it"
        )


def _check_characters(count: int, limits: LoadLimits, *, share: int = 1) -> None:
    if count > limits.max_characters * share:
        raise DocumentError(
            f"{count} characters; the limit is {limits.max_characters} (ingest.max_characters);"
            " split the file or raise it"
        )


def _within(item: Loaded, limits: LoadLimits) -> Loaded:
    if isinstance(item, LoadFailure):
        return item
    try:
        _check_characters(sum(len(block.text) for block in item.blocks), limits)
        if not any(block.text.strip() for block in item.blocks):
            raise DocumentError("no text found in it")
    except DocumentError as error:
        return LoadFailure(path=item.source, reason=error.rule)
    return item
