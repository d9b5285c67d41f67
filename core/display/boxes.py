"""Boxes with text: how large each is, and where all of them stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.display.columns import columns
from core.display.layers import Layers, Vertex
from core.display.shapes import Box, Node
from core.display.wrapping import widest, wrapped

SIZE, SMALL, LEADING = 13.0, 11.0, 17.0
PADDING, GAP, BETWEEN, LANE = 11.0, 22.0, 38.0, 14.0
BOLD = 1.06  # how much wider a bold line is
TEXT_WIDTH, TEXT_LINES, NOTE_LINES = 230.0, 6, 2


@dataclass(frozen=True)
class Label:
    """Hold the lines of a box, broken to its width."""

    heading: list[str]
    text: list[str]
    notes: list[str]
    count: int

    @property
    def width(self) -> float:
        """Return how wide its box is, in pixels."""
        inner = max(
            widest(self.heading, SIZE) * BOLD,
            widest([*self.text[:-1], "".join(self.text[-1:]) + self.counted], SIZE),
            widest(self.notes, SMALL),
        )
        return inner + 2 * PADDING

    @property
    def counted(self) -> str:
        """Return the count as it follows the text, empty up to 1."""
        return f" ×{self.count}" if self.count > 1 else ""

    @property
    def height(self) -> float:
        """Return how high its box is, in pixels."""
        lines = len(self.heading) + len(self.text) + len(self.notes)
        return lines * LEADING + 2 * PADDING - 5


def box_label(node: Node) -> Label:
    """Return the lines of a node; what is too long ends in an ellipsis."""
    text = node.text if node.heading or node.text else node.name
    return Label(
        wrapped(node.heading, SIZE * BOLD, TEXT_WIDTH, NOTE_LINES) if node.heading else [],
        wrapped(text, SIZE, TEXT_WIDTH, TEXT_LINES),
        [one for note in node.notes for one in wrapped(note, SMALL, TEXT_WIDTH, NOTE_LINES)],
        node.count if node.text or not node.heading else 0,
    )


def placed_boxes(layers: Layers, labels: Mapping[str, Label]) -> dict[Vertex, Box]:
    """Return the box of every vertex; where an arrow passes it is a narrow one."""
    widths: dict[Vertex, float] = {
        vertex: labels[vertex].width if isinstance(vertex, str) else LANE
        for row in layers.rows
        for vertex in row
    }
    x = columns(layers, widths, GAP)
    boxes: dict[Vertex, Box] = {}
    top = 0.0
    for row in layers.rows:
        height = max(labels[vertex].height for vertex in row if isinstance(vertex, str))
        for vertex in row:
            own = labels[vertex].height if isinstance(vertex, str) else height
            boxes[vertex] = Box(x[vertex], top + height / 2, widths[vertex], own)
        top += height + BETWEEN
    return boxes
