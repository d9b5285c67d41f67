"""The words of HTML elements that are taken whole: headings, code, cells of tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ingest.loaders.html_math import math_text
from ingest.loaders.raised import raised

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

DROPPED = frozenset(
    "script style template svg canvas iframe object embed button select input textarea "
    "dialog head title meta link math-renderer audio video map".split()
)
_NOT_READ = DROPPED | {"noscript"}
_MAX_SPAN = 1000


def rows_of(table: LexborNode) -> list[list[str]]:
    """Return the cells; one over several columns is told once, one over rows in each of them."""
    rows: list[list[str]] = []
    below: dict[int, tuple[int, int, str]] = {}
    for row in table.css("tr"):
        cells: list[str] = []
        column = 0
        for cell in row.css("td, th"):
            column = _continued(below, column, cells)
            text, height, width = text_of(cell), _span(cell, "rowspan"), _span(cell, "colspan")
            cells.append(text)
            if height > 1:
                below[column] = (height - 1, width, text)
            column += width
        _continued(below, column, cells)
        rows.append(cells)
    return rows


def _continued(below: dict[int, tuple[int, int, str]], column: int, cells: list[str]) -> int:
    """Repeat the cells that reach down into this row; return the next free column."""
    while column in below:
        left, width, text = below.pop(column)
        cells.append(text)
        if left > 1:
            below[column] = (left - 1, width, text)
        column += width
    return column


def _span(cell: LexborNode, name: str) -> int:
    value = (cell.attributes.get(name) or "").strip()
    return min(int(value), _MAX_SPAN) if value.isdecimal() and int(value) else 1


def text_of(node: LexborNode) -> str:
    """Return all text below a node; blocks and <br> end lines, dropped elements hold none."""
    parts: list[str] = []

    def enter(found: LexborNode) -> bool:
        if found.tag == "-text":
            parts.append(found.text_content or "")
        elif found.tag == "br":
            parts.append("\n")
        elif found.tag == "sup":
            parts.append(raised(found.text(deep=True)))
            return False
        elif found.tag == "math":
            parts.append(math_text(found))
            return False
        return (found.tag or "-")[0] != "-" and found.tag not in _NOT_READ

    for tag, entering in visit(node, enter):
        if tag in ("p", "div", "li", "td") and not entering:
            parts.append("\n")
    return "".join(parts)


def visit(root: LexborNode, enter: Callable[[LexborNode], bool]) -> Iterator[tuple[str, bool]]:
    """Yield the tag of each node that was entered, before (True) and after its children."""
    path: list[LexborNode] = []
    node = root.first_child
    while node is not None or path:
        if node is None:
            node = path.pop()
            yield node.tag or "", False
        elif enter(node):
            yield node.tag or "", True
            path.append(node)
            node = node.first_child
            continue
        node = node.next
