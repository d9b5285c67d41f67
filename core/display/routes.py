"""The lines of arrows: through the places that are theirs, past all boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.display.layers import Layers, Vertex
from core.display.ranks import Link
from core.display.shapes import Box, Point

HEAD = 7.0  # length of an arrow's head
LANE = 9.0  # between the ends of two arrows at one side of a box
PULL = 0.5  # how far a curve follows its direction, as a share of the way


@dataclass(frozen=True)
class Route:
    """Hold a curve as cubic Bézier points (start, then three for each part) and its head."""

    curve: tuple[Point, ...]
    tip: Point
    towards: Point  # unit vector of the arrow's direction at its tip

    def path(self) -> str:
        """Return the curve for the attribute `d`."""
        start, *rest = (f"{point.x:.1f},{point.y:.1f}" for point in self.curve)
        parts = [" ".join(rest[place : place + 3]) for place in range(0, len(rest), 3)]
        return f"M{start}" + "".join(f" C{part}" for part in parts)

    def head(self) -> str:
        """Return the arrow's head for the attribute `d`."""
        (x, y), (dx, dy) = self.tip, self.towards
        foot = Point(x - HEAD * dx, y - HEAD * dy)
        half = HEAD * 0.55
        left = f"{foot.x - dy * half:.1f},{foot.y + dx * half:.1f}"
        right = f"{foot.x + dy * half:.1f},{foot.y - dx * half:.1f}"
        return f"M{x:.1f},{y:.1f} L{left} L{right} Z"

    def points(self, steps: int = 40) -> list[Point]:
        """Return places along the curve, `steps` for each of its parts and the start."""
        found = [self.curve[0]]
        for place in range(0, len(self.curve) - 1, 3):
            a, b, c, d = self.curve[place : place + 4]
            for step in range(1, steps + 1):
                t = step / steps
                shares = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
                ends = (a, b, c, d)
                found.append(
                    Point(
                        sum(s * p.x for s, p in zip(shares, ends, strict=True)),
                        sum(s * p.y for s, p in zip(shares, ends, strict=True)),
                    )
                )
        return found


def routes(layers: Layers, boxes: Mapping[Vertex, Box]) -> dict[Link, Route]:
    """Return the route of every link; arrows of one side of a box share it evenly."""
    ports = _ports(layers, boxes)
    found: dict[Link, Route] = {}
    for link, chain in layers.chains.items():
        passing = [boxes[vertex] for vertex in chain[1:-1]]
        if link in layers.back:
            found[link] = _upwards(ports[link, 0], ports[link, 1], passing[::-1])
        else:
            found[link] = _downwards(ports[link, 0], ports[link, 1], passing)
    return found


def _ports(layers: Layers, boxes: Mapping[Vertex, Box]) -> dict[tuple[Link, int], Point]:
    """Return where each link leaves (0) and enters (1) its boxes."""
    sides: dict[tuple[str, str], list[tuple[float, Link, int]]] = {}
    for link, chain in layers.chains.items():
        for end, name in enumerate(link):
            if link in layers.back:
                turn = boxes[chain[-2] if end == 0 else chain[1]]
                side = "right" if turn.x > boxes[name].x else "left"
                order = float(end) - turn.y / 1e6
            else:
                side = "bottom" if end == 0 else "top"
                order = boxes[chain[1] if end == 0 else chain[-2]].x
            sides.setdefault((name, side), []).append((order, link, end))
    found: dict[tuple[Link, int], Point] = {}
    for (name, side), arrows in sides.items():
        for place, (_, link, end) in enumerate(sorted(arrows)):
            shift = place - (len(arrows) - 1) / 2
            found[link, end] = _port(boxes[name], side, shift, len(arrows))
    return found


def _port(box: Box, side: str, shift: float, count: int) -> Point:
    if side in ("top", "bottom"):
        step = min(18.0, (box.width - 24) / max(1, count))
        y = box.y + (box.height if side == "bottom" else -box.height) / 2
        return Point(box.x + shift * step, y)
    step = min(LANE, (box.height - 8) / max(1, count))
    x = box.x + (box.width if side == "right" else -box.width) / 2
    return Point(x, box.y + shift * step)


def _downwards(start: Point, end: Point, passing: Sequence[Box]) -> Route:
    down = Point(0.0, 1.0)
    foot = Point(end.x, end.y - HEAD)
    curve = [start]
    for box in passing:
        top, bottom = Point(box.x, box.y - box.height / 2), Point(box.x, box.y + box.height / 2)
        curve += _bend(curve[-1], top) + _straight(top, bottom)
    curve += _bend(curve[-1], foot)
    return Route(tuple(curve), end, down)


def _upwards(start: Point, end: Point, passing: Sequence[Box]) -> Route:
    """Turn beside the lower box, go up through the places between, turn beside the upper one."""
    first, last = passing[0], passing[-1]
    if first is last:  # a node's arrow to itself
        into = 1.0 if end.x > first.x else -1.0
        foot = Point(end.x - into * HEAD, end.y)
        curve = [start, Point(first.x, start.y), Point(first.x, end.y), foot]
        return Route(tuple(curve), end, Point(into, 0.0))
    corner = Point(first.x, first.y - first.height / 2)
    curve = [start, Point(first.x, start.y), Point(first.x, start.y), corner]
    for box in passing[1:-1]:
        top, bottom = Point(box.x, box.y - box.height / 2), Point(box.x, box.y + box.height / 2)
        curve += _bend(curve[-1], bottom) + _straight(bottom, top)
    turn = Point(last.x, last.y + last.height / 2)
    into = 1.0 if end.x > last.x else -1.0
    foot = Point(end.x - into * HEAD, end.y)
    curve += _bend(curve[-1], turn)
    curve += [Point(last.x, end.y), Point(last.x, end.y), foot]
    return Route(tuple(curve), end, Point(into, 0.0))


def _bend(start: Point, end: Point) -> list[Point]:
    """Return a curve that leaves and arrives vertically."""
    way = (end.y - start.y) * PULL
    return [Point(start.x, start.y + way), Point(end.x, end.y - way), end]


def _straight(start: Point, end: Point) -> list[Point]:
    third = (end.y - start.y) / 3
    return [Point(start.x, start.y + third), Point(end.x, end.y - third), end]
