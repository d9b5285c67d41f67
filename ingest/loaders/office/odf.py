"""OpenDocument: texts (ODT), spreadsheets (ODS) and presentations (ODP)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from core.errors import DocumentError
from ingest.loaders import metadata
from ingest.loaders.limits import LoadLimits
from ingest.loaders.office.unseen import empty_hidden_spans
from ingest.loaders.outline import Outline, ordinal, table_text
from ingest.loaders.sheets import Cell, Row, Sheet, Workbook, cell_of
from ingest.loaders.web.xml_tree import (
    attribute,
    child,
    children,
    descendants,
    local_name,
    parse_xml,
    words,
)
from ingest.loaders.zip_safe import SafeZip
from ingest.types import Block, Loaded, ParsedDocument

BULLET = "-"
_OUTLINE = "outline"
_LISTS = ("list-style", "outline-style")
_LEVELS = ("list-level-style-number", "outline-level-style")
_MAX_LEVELS = 10  # the list levels of OpenDocument


@dataclass(frozen=True)
class _OdfLevel:
    kind: str
    before: str
    after: str
    start: int
    shown: int


class OdfNumbering:
    """Count the items of lists and the headings in reading order; levels count from 1."""

    def __init__(self, *roots: Element | None) -> None:
        self._styles: dict[str, dict[int, _OdfLevel]] = {}
        self._counts: dict[str, dict[int, int]] = {}
        for root in roots:
            for style in descendants(root, *_LISTS) if root is not None else ():
                is_outline = local_name(style) == "outline-style"
                name = _OUTLINE if is_outline else attribute(style, "name")
                self._styles.setdefault(name, _levels(style))

    def begin(self, style: str, level: int) -> None:
        """Begin a list that does not go on from one before."""
        self._counts.setdefault(style, {}).pop(level, None)

    def item(self, style: str, level: int, start: str = "") -> str:
        """Return the number before the next item of a list; "-" where it has none."""
        return self._next(style, level, start) or BULLET

    def heading(self, level: int) -> str:
        """Return the number of the next heading, or ""."""
        return self._next(_OUTLINE, level, "")

    def _next(self, style: str, level: int, start: str) -> str:
        levels = self._styles.get(style, {})
        counts = self._counts.setdefault(style, {})
        found = levels.get(level)
        if found is None:
            return ""
        counts[level] = int(start) if start.isdecimal() else counts.get(level, found.start - 1) + 1
        for deeper in [at for at in counts if at > level]:
            del counts[deeper]
        if not found.kind:
            return ""
        first = max(1, level - found.shown + 1)
        shown = (
            ordinal(counts.get(at, levels[at].start), levels[at].kind)
            for at in range(first, level + 1)
            if at in levels and levels[at].kind
        )
        return f"{found.before}{'.'.join(shown)}{found.after}".strip()


def _levels(style: Element) -> dict[int, _OdfLevel]:
    found: dict[int, _OdfLevel] = {}
    for element in style:
        level = attribute(element, "level")
        if local_name(element) in _LEVELS and level.isdecimal() and int(level) <= _MAX_LEVELS:
            start, shown = attribute(element, "start-value"), attribute(element, "display-levels")
            found[int(level)] = _OdfLevel(
                kind=attribute(element, "num-format"),
                before=attribute(element, "num-prefix"),
                after=attribute(element, "num-suffix"),
                start=int(start) if start.isdecimal() else 1,
                shown=int(shown) if shown.isdecimal() else 1,
            )
    return found


# Deleted text, annotations beside the text, and what is made of the headings.
_DROPPED = frozenset(
    "tracked-changes annotation annotation-end table-of-content alphabetical-index sequence-decls "
    "forms scripts settings master-page object plugin image desc title event-listeners glue-point "
    "illustration-index table-index variable-decls user-field-decls".split()
)
_MAX_DEPTH = 200  # a bound against hostile nesting; chosen, not measured
_MAX_SPACES = 100  # of one run; chosen, not measured


def add_blocks(
    outline: Outline, root: Element, numbers: OdfNumbering | None = None, depth: int = 0
) -> None:
    """Add everything below an element in reading order; `numbers` counts lists and headings."""
    numbers = numbers or OdfNumbering()
    for element in root:
        name = local_name(element)
        if name in _DROPPED or not name or depth > _MAX_DEPTH:
            continue
        if name == "h":
            _add_heading(outline, element, numbers)
        elif name == "p":
            _add_paragraph(outline, element, depth)
        elif name == "list":
            _add_list(outline, element, numbers)
        elif name == "table":
            outline.add(table_text(_rows(element, depth)), "table")
        else:  # sections, frames, text boxes, groups
            add_blocks(outline, element, numbers, depth + 1)


def _add_heading(outline: Outline, element: Element, numbers: OdfNumbering) -> None:
    declared = attribute(element, "outline-level")
    level = int(declared) if declared.isdecimal() else 1
    text = text_of(element)
    if text.strip() and attribute(element, "is-list-header") != "true":
        text = f"{numbers.heading(level)} {text}".strip()
    outline.heading(level, text)


def _add_paragraph(outline: Outline, element: Element, depth: int) -> None:
    """Add a paragraph; a table in a text box anchored to it follows it."""
    tables = [found for found in element.iter() if local_name(found) == "table"]
    outline.prose(text_of(element))
    for table in tables:
        outline.add(table_text(_rows(table, depth)), "table")


def _add_list(
    outline: Outline, element: Element, numbers: OdfNumbering, style: str = "", level: int = 1
) -> None:
    if level > _MAX_DEPTH:
        return
    style = attribute(element, "style-name") or style
    if not (attribute(element, "continue-list") or attribute(element, "continue-numbering")):
        numbers.begin(style, level)
    for item in children(element, "list-item", "list-header"):
        label = ""
        for part in item:
            name = local_name(part)
            if name == "list":
                _add_list(outline, part, numbers, style, level + 1)
            elif name == "h":  # a numbered heading
                _add_heading(outline, part, numbers)
            elif text := text_of(part).strip():
                if not label:
                    is_item = local_name(item) == "list-item"
                    start = attribute(item, "start-value")
                    label = numbers.item(style, level, start) if is_item else BULLET
                    text = f"{label} {text}"
                outline.prose(f"{'  ' * min(level - 1, 8)}{text}", tight=True)


def _rows(table: Element, depth: int) -> list[list[str]]:
    rows: list[list[str]] = []
    for part in table:
        name = local_name(part)
        if name in ("table-header-rows", "table-rows", "table-row-group") and depth < _MAX_DEPTH:
            rows += _rows(part, depth + 1)
        elif name == "table-row":
            rows.append([text_of(cell) for cell in children(part, "table-cell")])
    return rows


def text_of(root: Element) -> str:
    """Return the text of an element; spaces, tabs and line ends are elements of their own."""
    parts: list[str] = []
    _collect(root, parts, 0)
    return "".join(parts).strip("\n")


def _collect(element: Element, parts: list[str], depth: int) -> None:
    parts.append(" ".join((element.text or "").replace("\n", " ").split(" ")))
    for part in element:
        name = local_name(part)
        if name == "s":
            count = attribute(part, "c")
            parts.append(" " * min(int(count) if count.isdigit() else 1, _MAX_SPACES))
        elif name == "tab":
            parts.append("\t")
        elif name == "line-break":
            parts.append("\n")
        elif name == "note":
            _add_note(part, parts, depth)
        elif name and name not in _DROPPED and name != "table" and depth < _MAX_DEPTH:
            inner = len(parts)
            _collect(part, parts, depth + 1)
            if name in ("p", "h", "list-item", "text-box", "custom-shape") and len(parts) > inner:
                parts.append("\n")
        parts.append((part.tail or "").replace("\n", " "))


def _add_note(note: Element, parts: list[str], depth: int) -> None:
    for body in children(note, "note-body"):
        found: list[str] = []
        if depth < _MAX_DEPTH:
            _collect(body, found, depth + 1)
        if text := " ".join("".join(found).split()):
            parts.append(f" [{text}]")


_MAX_COLUMNS = 16_384  # as many as a spreadsheet has
_MAX_REPEATED = 1_000  # copies of one row; chosen, not measured
_MAX_GROUPS = 20  # a bound against hostile nesting; chosen, not measured


def sheets(root: Element, book: Element) -> Iterator[Sheet]:
    """Yield the sheets below the body of a content.xml; `root` has the styles that hide them."""
    unseen = {
        attribute(style, "name")
        for style in descendants(root, "style")
        for properties in children(style, "table-properties")
        if attribute(properties, "display") == "false"
    }
    for table in children(book, "table"):
        merged: list[tuple[int, int, int, int]] = []
        rows = list(_sheet_rows(table, merged))
        hidden = attribute(table, "style-name") in unseen
        yield Sheet(attribute(table, "name"), iter(rows), merged, hidden)


def _row_elements(table: Element, depth: int = 0) -> Iterator[Element]:
    for part in table:
        name = local_name(part)
        if name == "table-row":
            yield part
        elif name.startswith("table-") and name.endswith(("rows", "group")) and depth < _MAX_GROUPS:
            yield from _row_elements(part, depth + 1)


def _sheet_rows(table: Element, merged: list[tuple[int, int, int, int]]) -> Iterator[Row]:
    number = 1
    for element in _row_elements(table):
        repeated = _count(element, "number-rows-repeated")
        cells = _cells(element, number, merged)
        if cells and repeated > _MAX_REPEATED:
            raise DocumentError(
                f"row {number} of the sheet {attribute(table, 'name')!r} is repeated {repeated}"
                f" times; at most {_MAX_REPEATED} are read"
            )
        for at in range(repeated if cells else 0):
            yield number + at, list(cells)
        number += repeated


def _cells(row: Element, number: int, merged: list[tuple[int, int, int, int]]) -> list[Cell]:
    cells: list[Cell] = []
    for element in children(row, "table-cell", "covered-table-cell"):
        value = _value(element) if local_name(element) == "table-cell" else None
        repeated = _count(element, "number-columns-repeated")
        down = _count(element, "number-rows-spanned")
        if down > 1:
            left = len(cells) + 1
            across = _count(element, "number-columns-spanned")
            merged.append((number, left, number + down - 1, left + across - 1))
        cells += [value] * min(repeated, _MAX_COLUMNS - len(cells))
    while cells and cells[-1] is None:
        cells.pop()
    return cells


def _count(element: Element, name: str) -> int:
    value = attribute(element, name)
    return int(value) if value.isdigit() and len(value) < 10 else 1


def _value(cell: Element) -> Cell:
    kind = attribute(cell, "value-type")
    if kind in ("float", "percentage", "currency"):
        try:
            return cell_of(float(attribute(cell, "value")))
        except ValueError:
            pass
    if kind == "date":
        return cell_of(attribute(cell, "date-value").removesuffix("T00:00:00"))
    if kind == "boolean":
        return attribute(cell, "boolean-value") == "true"
    return cell_of(text_of(cell))


_MANIFEST = "META-INF/manifest.xml"
_CONTENT = "content.xml"
_META = "meta.xml"
_STYLES = "styles.xml"
_FURNITURE = {"date-time", "footer", "header", "page-number"}


def load(path: Path, relative: str, limits: LoadLimits) -> Iterator[Loaded]:
    """Yield the document of a text or a presentation, or those of a spreadsheet."""
    with SafeZip(path, limits) as container:
        names = container.names()
        if _MANIFEST in names and b"encryption-data" in container.read(_MANIFEST):
            raise DocumentError(
                "the OpenDocument file is password-protected; save it again without a password"
            )
        if _CONTENT not in names:
            raise DocumentError("no OpenDocument file: the container has no content.xml")
        root = parse_xml(container.read(_CONTENT))
        described, styles = _part(container, _META), _part(container, _STYLES)
    known = {} if described is None else metadata_of(described)
    yield from documents(root, known, relative, limits, styles)


def _part(container: SafeZip, name: str) -> Element | None:
    """Return a member of the container beside the text, or None where it is missing or damaged."""
    try:
        return parse_xml(container.read(name))
    except DocumentError:  # the text is what matters
        return None


def documents(
    root: Element,
    described: dict[str, Any],
    relative: str,
    limits: LoadLimits,
    styles: Element | None = None,
) -> Iterator[Loaded]:
    """Yield the documents in the body of a content.xml; `styles` are those beside it."""
    body = child(root, "body")
    if (book := child(body, "spreadsheet")) is not None:
        workbook = Workbook(relative, "ods", limits)
        yield from workbook.documents(sheets(root, book), described)
        return
    heading = ""
    if (deck := child(body, "presentation")) is not None:
        unseen = empty_hidden_spans(root, paper=None)
        format_name, blocks = "odp", _slides(deck)
    elif (text := child(body, "text")) is not None:
        outline = Outline()
        unseen = empty_hidden_spans(root)
        add_blocks(outline, text, OdfNumbering(root, styles))
        format_name, blocks, heading = "odt", outline.finish(), outline.first_heading
    else:
        raise DocumentError("an OpenDocument file that is no text, spreadsheet or presentation")
    titles = described.get("title"), heading
    found = ParsedDocument.of_file(relative, format_name, blocks, described, *titles)
    yield found.model_copy(update={"unseen": unseen})


def _slides(deck: Element) -> list[Block]:
    blocks: list[Block] = []
    for number, page in enumerate(children(deck, "page"), start=1):
        outline = Outline(page=number)
        outline.heading(1, f"Slide {number}")
        shapes = [
            shape
            for shape in page
            if attribute(shape, "class") not in _FURNITURE and local_name(shape) != "notes"
        ]
        titles = [shape for shape in shapes if attribute(shape, "class") == "title"]
        title = " ".join(text_of(shape).replace("\n", " ") for shape in titles)
        outline.heading(2, title)
        for shape in shapes:
            if shape not in titles:
                add_blocks(outline, shape)
        for notes in children(page, "notes"):
            outline.heading(3, "Notes")
            add_blocks(outline, notes)  # the picture of the slide beside them has no text
        found = outline.finish()
        if title or [block.text for block in found] != [f"Slide {number}"]:
            blocks += [block for block in found if block.text != "Notes"]
    return blocks


def metadata_of(root: Element) -> dict[str, Any]:
    """Return the metadata of a meta.xml, or of an OpenDocument file that is one XML file."""
    meta = next(descendants(root, "meta"), None)
    if meta is None:
        return {}
    values: dict[str, list[str]] = {}
    for element in meta:
        if text := words(element):
            values.setdefault(str(element.tag).rsplit("}", 1)[-1], []).append(text)
    return metadata.normalise(
        {
            "title": "".join(values.get("title", [])),
            "authors": values.get("initial-creator") or values.get("creator") or [],
            "keywords": values.get("keyword", []),
            "language": "".join(values.get("language", [])),
            "subject": "".join(values.get("subject", [])),
            "description": "".join(values.get("description", [])),
            "created": next(iter(values.get("creation-date", [])), ""),
            "updated_at": next(iter(values.get("date", []) + values.get("creation-date", [])), ""),
        }
    )
