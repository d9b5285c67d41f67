"""Headings, paragraphs, lists and tables of OpenDocument."""

from __future__ import annotations

from typing import TYPE_CHECKING

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


def add_blocks(outline: Outline, root: Element, depth: int = 0) -> None:
    """Add everything below an element in reading order."""
    for element in root:
        name = local_name(element)
        if name in _DROPPED or not name or depth > _MAX_DEPTH:
            continue
        if name == "h":
            level = attribute(element, "outline-level")
            outline.heading(int(level) if level.isdigit() else 1, text_of(element))
        elif name == "p":
            _add_paragraph(outline, element, depth)
        elif name == "list":
            _add_list(outline, element, 0)
        elif name == "table":
            outline.add(table_text(_rows(element, depth)), "table")
        else:  # sections, frames, text boxes, groups
            add_blocks(outline, element, depth + 1)


def _add_paragraph(outline: Outline, element: Element, depth: int) -> None:
    """Add a paragraph; a table in a text box anchored to it follows it."""
    tables = [found for found in element.iter() if local_name(found) == "table"]
    outline.prose(text_of(element))
    for table in tables:
        outline.add(table_text(_rows(table, depth)), "table")


def _add_list(outline: Outline, element: Element, depth: int) -> None:
    if depth > _MAX_DEPTH:
        return
    for item in children(element, "list-item", "list-header"):
        for part in item:
            name = local_name(part)
            if name == "list":
                _add_list(outline, part, depth + 1)
            elif name == "h":  # a numbered heading
                level = attribute(part, "outline-level")
                outline.heading(int(level) if level.isdigit() else 1, text_of(part))
            elif text := text_of(part).strip():
                outline.prose(f"{'  ' * min(depth, 8)}- {text}", tight=True)


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
