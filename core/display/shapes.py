"""What a drawing is made of: boxes with text and arrows between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Node:
    """Be a box: a heading and text (its name when both are empty), notes below, a count of visits.

    `classes` are added to those of its element; `description` is told to who does not see it.
    """

    name: str
    heading: str = ""
    text: str = ""
    notes: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    count: int = 0
    description: str = ""


@dataclass(frozen=True)
class Edge:
    """Be an arrow from one node to another, with a count of how often it was taken."""

    source: str
    target: str
    classes: tuple[str, ...] = ()
    count: int = 0


class Point(NamedTuple):
    """Be a place; x grows to the right and y downwards, in pixels."""

    x: float
    y: float


class Box(NamedTuple):
    """Be a rectangle by its centre and its size."""

    x: float
    y: float
    width: float
    height: float

    def overlaps(self, other: Box, gap: float = 0) -> bool:
        """Tell whether two rectangles are closer to each other than `gap`."""
        return (
            abs(self.x - other.x) < (self.width + other.width) / 2 + gap
            and abs(self.y - other.y) < (self.height + other.height) / 2 + gap
        )
