"""The path of a run, marked on the one drawing of the graph that every run goes through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.resources import files
from itertools import groupby, pairwise
from xml.etree import ElementTree

from core.trace import RunRecord, Step
from core.types import StopReason
from display.html import Markup, clean

START, END = "__start__", "__end__"  # as LangGraph names them
LISTED = 60  # visits that the description lists
THICK = "2.6"
SVG = "{http://www.w3.org/2000/svg}"

ElementTree.register_namespace("", SVG[1:-1])


def visits(trail: Iterable[Step]) -> list[str]:
    """Return the nodes in the order in which they were visited.

    Several tool calls or operations side by side are one visit; no node follows itself.
    """
    return [node for node, _ in groupby(step.node for step in trail)]


def graph_drawing() -> Markup:
    """Return the drawing of the graph, kept in graph.svg, without any path."""
    return Markup(files("display").joinpath("graph.svg").read_text(encoding="utf-8"))


def path_drawing(run: RunRecord) -> Markup:
    """Mark the path of a run on the graph, with how often it took each arrow.

    A cancelled run has no arrow to the end. A node that the graph no longer has is named in the
    description alone.
    """
    way = [START, *visits(run.trail)]
    if run.result.get("stop_reason") != StopReason.cancelled:
        way.append(END)
    tree = ElementTree.fromstring(graph_drawing())
    title = "The path of the run"
    tree.set("aria-label", title)
    for tag, text in (("title", title), ("desc", _described(way))):
        found = tree.find(f"{SVG}{tag}")
        assert found is not None  # of graph.svg
        found.text = text
    seen, taken = Counter(way), Counter(pairwise(way))
    for part in list(tree):
        ends = part.get("data-from", ""), part.get("data-to", "")
        kind = part.get("class", "")
        if kind == "node":
            _mark_node(part, seen[part.get("data-node", "")], run.trail)
        elif kind == "count" and taken[ends] > 1:
            part.text = f"×{taken[ends]}"
        elif kind == "count":
            tree.remove(part)
        elif taken[ends]:
            _mark_arrow(part, taken[ends])
    return Markup(ElementTree.tostring(tree, encoding="unicode", short_empty_elements=False))


def _mark_node(part: ElementTree.Element, count: int, trail: Sequence[Step]) -> None:
    """Make a visited node bold, with its number of visits, and describe it in its title."""
    if not count:
        return
    part.set("class", "node visited")
    part.set("data-count", str(count))
    box, name = part[0], part[1]
    box.attrib |= {"fill": "currentColor", "fill-opacity": "0.08", "stroke-width": THICK}
    if own := [step for step in trail if step.node == part.get("data-node")]:
        title = ElementTree.Element(f"{SVG}title")
        times = "once" if count == 1 else f"{count} times"
        title.text = f"{name.text}: {times}, {sum(step.ms for step in own):.0f} ms"
        part.insert(0, title)
    if count > 1:
        given = {"class": "count", "font-size": "11", "font-weight": "600"}
        ElementTree.SubElement(name, f"{SVG}tspan", given).text = f" ×{count}"


def _mark_arrow(part: ElementTree.Element, count: int) -> None:
    part.set("class", f"{part.get('class')} visited")
    if part.get("stroke") is None:  # its head
        part.attrib.pop("fill-opacity")
        return
    part.attrib.pop("stroke-dasharray", None)
    part.attrib.pop("stroke-opacity")
    part.attrib |= {"stroke-width": THICK, "data-count": str(count)}


def _described(way: Sequence[str]) -> str:
    listed = " → ".join(
        clean({START: "start", END: "end"}.get(name, name)) for name in way[:LISTED]
    )
    return f"{listed} and {len(way) - LISTED} more" if len(way) > LISTED else listed
