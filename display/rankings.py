"""Several searches for one thing beside each other: which passage stands where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.types import Evidence
from display.evidence import where_in
from display.html import Markup, element, escaped, joined, line, opening, table
from display.view import View

EXCERPT = 90
ABSENT = "–"


def compared(searches: Mapping[str, Sequence[Evidence]], shown: int = 10) -> View:
    """Show the place, from 1, that each search gives a passage, and its score there.

    Passages are in the order of the first search that found them; each search gives its best
    `shown`.
    """
    places = {
        name: {item.chunk_id: number for number, item in enumerate(found[:shown], start=1)}
        for name, found in searches.items()
    }
    items = {item.chunk_id: item for found in searches.values() for item in found[:shown]}
    order: dict[str, None] = {}
    for found in searches.values():
        order.update(dict.fromkeys(item.chunk_id for item in found[:shown]))
    scores = {
        name: {item.chunk_id: item.score for item in found} for name, found in searches.items()
    }
    rows = []
    lines = []
    for key in order:
        cells = [
            f"{places[name][key]}. ({scores[name][key]:.2f})" if key in places[name] else ABSENT
            for name in searches
        ]
        rows.append([_named(items[key]), *(_cell(cell) for cell in cells)])
        told = ", ".join(f"{name} {cell}" for name, cell in zip(searches, cells, strict=True))
        lines.append(f"{line(items[key].title)}: {told}")
    return View(table(["passage", *searches], rows, set(searches)), "\n".join(lines))


def _named(item: Evidence) -> Markup:
    title = element("strong", {}, escaped(line(item.title or item.source)))
    where = element("span", {"class": "where"}, escaped(f" {where_in(item)}"))
    text = line(item.text)
    short = text if len(text) <= EXCERPT else f"{text[:EXCERPT]}…"
    return joined(title, where, opening("br"), escaped(short))


def _cell(text: str) -> Markup:
    return element("span", {"class": "short"}, escaped(text))
