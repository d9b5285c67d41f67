"""Where the vertices of each row stand: near their neighbours, never closer than they may be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.display.layers import Layers, Vertex

SWEEPS = 24
STRAIGHT = 8.0  # how much more a passing arrow wants to be straight than a node to be centred


def columns(layers: Layers, widths: Mapping[Vertex, float], gap: float) -> dict[Vertex, float]:
    """Return the x of the middle of every vertex; the leftmost edge is at 0.

    Each row in turn takes the places that are nearest, by least squares, to the mean of its
    neighbours, in its order and at least `gap` apart.
    """
    x: dict[Vertex, float] = {}
    for row in layers.rows:
        x |= _spread(row, dict.fromkeys(row, 0.0), dict.fromkeys(row, 1.0), widths, gap)
    near = _neighbours(layers)
    for sweep in range(SWEEPS):
        for row in layers.rows if sweep % 2 == 0 else reversed(layers.rows):
            wanted: dict[Vertex, float] = {}
            weights: dict[Vertex, float] = {}
            for vertex in row:
                beside = near.get(vertex, [])
                total = sum(weight for _, weight in beside)
                middle = sum(x[other] * weight for other, weight in beside)
                wanted[vertex] = middle / total if total else x[vertex]
                weights[vertex] = total or 0.1
            x |= _spread(row, wanted, weights, widths, gap)
    left = min(x[vertex] - widths[vertex] / 2 for vertex in x)
    return {vertex: place - left for vertex, place in x.items()}


def _neighbours(layers: Layers) -> dict[Vertex, list[tuple[Vertex, float]]]:
    near: dict[Vertex, list[tuple[Vertex, float]]] = {}
    row = {vertex: number for number, row in enumerate(layers.rows) for vertex in row}
    for upper, lower in layers.ties:
        if row[upper] == row[lower]:
            continue  # an arrow turns beside its node, wherever it is straight
        passing = (not isinstance(upper, str)) + (not isinstance(lower, str))
        weight = (1.0, 2.0, STRAIGHT)[passing]
        near.setdefault(upper, []).append((lower, weight))
        near.setdefault(lower, []).append((upper, weight))
    return near


def _spread(
    row: Sequence[Vertex],
    wanted: Mapping[Vertex, float],
    weights: Mapping[Vertex, float],
    widths: Mapping[Vertex, float],
    gap: float,
) -> dict[Vertex, float]:
    """Return the nearest places to the wanted ones that keep order and distance.

    Subtracting the least place of each leaves a monotone regression, solved by pooling adjacent
    violators.
    """
    least: list[float] = []
    for number, vertex in enumerate(row):
        before = row[number - 1]
        step = (widths[before] + widths[vertex]) / 2 + gap if number else 0.0
        least.append((least[-1] if least else 0.0) + step)
    pools: list[tuple[float, float, int]] = []  # mean, weight, how many
    for vertex, offset in zip(row, least, strict=True):
        mean, weight, count = wanted[vertex] - offset, weights[vertex], 1
        while pools and pools[-1][0] > mean:
            other, heavy, many = pools.pop()
            mean = (mean * weight + other * heavy) / (weight + heavy)
            weight, count = weight + heavy, count + many
        pools.append((mean, weight, count))
    means = [mean for mean, _, count in pools for _ in range(count)]
    return {vertex: mean + offset for vertex, mean, offset in zip(row, means, least, strict=True)}
