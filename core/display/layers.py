"""Rows of a layered drawing: the nodes of each rank, and where arrows pass between them.

Sugiyama, Tagawa and Toda (1981): an arrow that passes a rank takes a place of its own there, and
each row is ordered by the mean place of its neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from core.display.ranks import Link, back_links, ranks

SWEEPS = 12


@dataclass
class Layers:
    """Hold the rows of vertices, top down.

    A vertex is the name of a node, or (link, rank) where an arrow passes. `chains` has the
    vertices of each link, from the upper end to the lower; `back` has the links that go up. Their
    chains have a vertex beside each end, in the same row, for the arrow to turn in.
    """

    rows: list[list[Vertex]]
    chains: dict[Link, list[Vertex]]
    back: set[Link]
    ties: list[tuple[Vertex, Vertex]] = field(default_factory=list)


Vertex = str | tuple[Link, int]


def layered(names: Sequence[str], links: Sequence[Link]) -> Layers:
    """Return the rows in an order with few crossings; the same for the same input."""
    back = back_links(names, links)
    rank = ranks(names, [link for link in links if link not in back])
    rows: list[list[Vertex]] = [[] for _ in range(1 + max(rank.values()))]
    for name in names:
        rows[rank[name]].append(name)
    chains: dict[Link, list[Vertex]] = {}
    for link in dict.fromkeys(links):
        chains[link] = _chain(link, rank, link in back)
        for vertex in chains[link]:
            if not isinstance(vertex, str):
                rows[vertex[1]].append(vertex)
    ties = [pair for chain in chains.values() for pair in zip(chain, chain[1:], strict=False)]
    made = Layers(rows, chains, back, ties)
    made.rows = _ordered(made)
    return made


def crossings(rows: Sequence[Sequence[Vertex]], ties: Sequence[tuple[Vertex, Vertex]]) -> int:
    """Count how often the ties between neighbouring rows cross."""
    place = _places(rows)
    found = 0
    by_row: dict[int, list[tuple[int, int]]] = {}
    for upper, lower in ties:
        if place[upper][0] + 1 == place[lower][0]:
            by_row.setdefault(place[upper][0], []).append((place[upper][1], place[lower][1]))
    for ends in by_row.values():
        found += sum(
            1
            for number, (a, b) in enumerate(ends)
            for c, d in ends[number + 1 :]
            if (a - c) * (b - d) < 0
        )
    return found


def _chain(link: Link, rank: Mapping[str, int], back: bool) -> list[Vertex]:
    upper, lower = (link[1], link[0]) if back else link
    if back:
        between = range(rank[upper], rank[lower] + 1)
    else:
        between = range(rank[upper] + 1, rank[lower])
    return [upper, *((link, one) for one in between), lower]


def _ordered(layers: Layers) -> list[list[Vertex]]:
    """Return the rows in the best order found; arrows that go up turn at the better side."""
    left: frozenset[Link] = frozenset()
    best = _swept(layers, left)
    for link in sorted(layers.back):
        other = _swept(layers, left | {link})
        if crossings(other, layers.ties) < crossings(best, layers.ties):
            best, left = other, left | {link}
    return best


def _swept(layers: Layers, left: frozenset[Link]) -> list[list[Vertex]]:
    """Order the rows down and up again, each by its neighbours; arrows of `left` turn left."""
    rows = _turned(layers.rows, layers, left)
    best, fewest = rows, crossings(rows, layers.ties)
    above, below = _sides(layers)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        known = above if down else below
        rows = [list(row) for row in rows]
        numbers = range(1, len(rows)) if down else range(len(rows) - 2, -1, -1)
        for number in numbers:
            neighbour = rows[number - 1 if down else number + 1]
            rows[number] = _by_mean(rows[number], neighbour, known)
        rows = _turned(rows, layers, left)
        found = crossings(rows, layers.ties)
        if found < fewest:
            best, fewest = rows, found
    return best


def _by_mean(
    row: Sequence[Vertex], beside: Sequence[Vertex], known: Mapping[Vertex, Sequence[Vertex]]
) -> list[Vertex]:
    """Order a row by the mean place of its neighbours; one without any keeps its own place."""
    place = {vertex: number for number, vertex in enumerate(beside)}
    keys: dict[Vertex, float] = {}
    for number, vertex in enumerate(row):
        seen = [place[other] for other in known.get(vertex, ()) if other in place]
        scale = len(beside) / max(1, len(row))
        keys[vertex] = sum(seen) / len(seen) if seen else number * scale
    return sorted(row, key=keys.__getitem__)


def _turned(
    rows: Sequence[Sequence[Vertex]], layers: Layers, left: frozenset[Link]
) -> list[list[Vertex]]:
    """Put the places where an arrow turns right beside its node, so that it passes no other."""
    made = [list(row) for row in rows]
    for link in sorted(layers.back):
        chain = layers.chains[link]
        ends = dict.fromkeys([(chain[1], chain[0]), (chain[-2], chain[-1])])
        for turn, node in ends if chain[1] != chain[-2] else list(ends)[:1]:
            row = next(row for row in made if turn in row)
            row.remove(turn)
            row.insert(row.index(node) + (0 if link in left else 1), turn)
    return made


def _sides(layers: Layers) -> tuple[dict[Vertex, list[Vertex]], dict[Vertex, list[Vertex]]]:
    above: dict[Vertex, list[Vertex]] = {}
    below: dict[Vertex, list[Vertex]] = {}
    for upper, lower in layers.ties:
        above.setdefault(lower, []).append(upper)
        below.setdefault(upper, []).append(lower)
    return above, below


def _places(rows: Sequence[Sequence[Vertex]]) -> dict[Vertex, tuple[int, int]]:
    return {
        vertex: (number, place)
        for number, row in enumerate(rows)
        for place, vertex in enumerate(row)
    }
