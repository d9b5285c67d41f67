"""Small labels beside arrows, where nothing else is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.display.ranks import Link
from core.display.shapes import Box, Point
from core.display.wrapping import text_width

ALONG = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.18, 0.82, 0.1, 0.9)
AWAY = (5.0, 10.0)


def placed_labels(
    texts: Mapping[Link, str],
    lines: Mapping[Link, Sequence[Point]],
    boxes: Sequence[Box],
    size: float,
) -> list[tuple[str, Box]]:
    """Return each label with its place, near the middle of its line.

    A label never lies on a box or on another label; it lies on a line only where there is no
    other place.
    """
    placed: list[tuple[str, Box]] = []
    for link, text in texts.items():
        width, height = text_width(text, size), size
        taken = [*boxes, *(box for _, box in placed)]
        best: tuple[int, Box] | None = None
        for box in _candidates(lines[link], width, height):
            if any(box.overlaps(other, 1) for other in taken):
                continue
            touched = sum(_touches(box, line) for line in lines.values())
            if best is None or touched < best[0]:
                best = (touched, box)
            if touched == 0:
                break
        if best is not None:
            placed.append((text, best[1]))
    return placed


def _candidates(line: Sequence[Point], width: float, height: float) -> list[Box]:
    found: list[Box] = []
    for away in AWAY:
        for share in ALONG:
            point = line[round(share * (len(line) - 1))]
            shift = width / 2 + away
            for x, y in ((shift, 0), (-shift, 0), (0, -height / 2 - away), (0, height / 2 + away)):
                found.append(Box(point.x + x, point.y + y, width, height))
    return found


def _touches(box: Box, line: Sequence[Point]) -> bool:
    return any(box.overlaps(Box(point.x, point.y, 3, 3)) for point in line)
