"""Headings, paragraphs, lists and tables of OpenDocument."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingest.loaders.odf_numbers import BULLET, Numbers
from ingest.loaders.outline import Outline, table_text
from ingest.loaders.xml_tree import attribute, children, local_name

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

# What was deleted, said beside the text, or is made of the headings.
_DROPPED = frozenset(
    "tracked-changes annotation annotation-end table-of-content alphabetical-index sequence-decls "
    "forms scripts settings master-page object plugin image desc title event-listeners glue-point "
    "illustration-index table-index variable-decls user-field-decls".split()
)
_MAX_DEPTH = 200
_MAX_SPACES = 100


def add_blocks(
    outline: Outline, root: Element, numbers: Numbers | None = None, depth: int = 0
) -> None:
    """Add everything below an element in reading order; `numbers` counts lists and headings."""
    numbers = numbers or Numbers()
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


def _add_heading(outline: Outline, element: Element, numbers: Numbers) -> None:
    said = attribute(element, "outline-level")
    level = int(said) if said.isdecimal() else 1
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
    outline: Outline, element: Element, numbers: Numbers, style: str = "", level: int = 1
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
    """Put a footnote where it is referred to."""
    for body in children(note, "note-body"):
        found: list[str] = []
        if depth < _MAX_DEPTH:
            _collect(body, found, depth + 1)
        if text := " ".join("".join(found).split()):
            parts.append(f" [{text}]")
