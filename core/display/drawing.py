"""A graph as SVG: one rule of layout for the control flow, the path of a run and plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from core.display.boxes import LEADING, PADDING, SIZE, SMALL, Label, box_label, placed_boxes
from core.display.labels import placed_labels
from core.display.layers import layered
from core.display.markup import Markup, element, escaped, joined
from core.display.ranks import Link
from core.display.routes import Route, routes
from core.display.shapes import Box, Edge, Node
from core.errors import CarrelError

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif"
MARGIN = 12.0
THIN, THICK = 1.2, 2.6
Kind = Literal["node", "question"]


def draw(
    nodes: Sequence[Node],
    edges: Sequence[Edge],
    *,
    title: str,
    description: str = "",
    kind: Kind = "node",
) -> Markup:
    """Draw boxes in rows and arrows between them, the same for the same input.

    Every box is `<g class="node" data-KIND="NAME">`, every arrow `<path class="edge" data-from
    data-to>` with a `<path class="arrow">` for its head; classes of nodes and edges are added.
    Colours are currentColor, so that a page's style sheet decides. Raises CarrelError when there
    is nothing to draw, two boxes have one name, or an edge names no box.
    """
    _check(nodes, edges)
    labels = {node.name: box_label(node) for node in nodes}
    made = layered([node.name for node in nodes], [(e.source, e.target) for e in edges])
    boxes = placed_boxes(made, labels)
    lines = routes(made, boxes)
    own = {node.name: boxes[node.name] for node in nodes}
    counts = placed_labels(
        {(e.source, e.target): f"×{e.count}" for e in edges if e.count > 1},
        {link: route.points() for link, route in lines.items()},
        list(own.values()),
        SMALL,
    )
    drawn = [
        *(_edge(edge, lines[edge.source, edge.target], kind) for edge in edges),
        *(_node(node, labels[node.name], own[node.name], kind) for node in nodes),
        *(_count(text, box) for text, box in counts),
    ]
    return _picture(drawn, [*own.values(), *(box for _, box in counts)], lines, title, description)


def _check(nodes: Sequence[Node], edges: Sequence[Edge]) -> None:
    names = {node.name for node in nodes}
    if not nodes:
        raise CarrelError("a drawing has at least one node", value=0)
    if len(names) < len(nodes):
        raise CarrelError("every node of a drawing has a name of its own", value=len(nodes))
    for edge in edges:
        for end in (edge.source, edge.target):
            if end not in names:
                raise CarrelError("an edge joins nodes of its drawing", value=end)


def _node(node: Node, label: Label, box: Box, kind: Kind) -> Markup:
    strong = "visited" in node.classes
    left, top = box.x - box.width / 2, box.y - box.height / 2
    rect = element(
        "rect",
        {
            "x": left,
            "y": top,
            "width": box.width,
            "height": box.height,
            "rx": 8,
            "fill": "currentColor" if strong else "none",
            "fill-opacity": "0.08" if strong else None,
            "stroke": "currentColor",
            "stroke-width": THICK if strong else THIN,
            "stroke-dasharray": _dashes(node.classes),
        },
    )
    texts = _texts(label, box)
    told = element("title", {}, escaped(node.description)) if node.description else Markup("")
    attributes = {"class": " ".join(("node", *node.classes)), f"data-{kind}": node.name}
    if node.count:
        attributes["data-count"] = str(node.count)
    return element("g", attributes, told, rect, *texts)


def _dashes(classes: Sequence[str]) -> str | None:
    if "failed" in classes:
        return "6 4"
    return "1.5 4" if "unreached" in classes else None


def _texts(label: Label, box: Box) -> list[Markup]:
    """Write the lines of a box; a count follows its text."""
    centred = not (label.heading or label.notes)
    x = box.x if centred else box.x - box.width / 2 + PADDING
    y = box.y - box.height / 2 + PADDING + SIZE - 4
    last = len(label.heading) + len(label.text) - 1
    lines = [
        *((one, {"font-weight": "600"}) for one in label.heading),
        *((one, {}) for one in label.text),
        *((one, {"font-size": f"{SMALL:g}", "fill-opacity": "0.75"}) for one in label.notes),
    ]
    texts: list[Markup] = []
    for place, (one, extra) in enumerate(lines):
        given = {"x": x, "y": y + place * LEADING, "fill": "currentColor", **extra}
        anchor = {"text-anchor": "middle" if centred else None}
        more = _times(label.count) if place == last and label.count > 1 else Markup("")
        texts.append(element("text", {**given, **anchor}, escaped(one), more))
    return texts


def _times(count: int) -> Markup:
    given = {"class": "count", "font-size": f"{SMALL:g}", "font-weight": "600"}
    return element("tspan", given, escaped(f" ×{count}"))


def _edge(edge: Edge, route: Route, kind: Kind) -> Markup:
    strong = "visited" in edge.classes
    ends = {"data-from": edge.source, "data-to": edge.target}
    if edge.count:
        ends["data-count"] = str(edge.count)
    faint = None if strong or kind == "question" else "0.5"
    line = element(
        "path",
        {
            "class": " ".join(("edge", *edge.classes)),
            **ends,
            "d": route.path(),
            "fill": "none",
            "stroke": "currentColor",
            "stroke-width": THICK if strong else THIN,
            "stroke-opacity": faint,
            "stroke-dasharray": "5 4" if "conditional" in edge.classes and not strong else None,
        },
    )
    given = {"d": route.head(), "fill": "currentColor", "fill-opacity": faint}
    head = element("path", {"class": " ".join(("arrow", *edge.classes)), **ends, **given})
    return joined(line, head)


def _count(text: str, box: Box) -> Markup:
    given = {
        "class": "count",
        "x": box.x,
        "y": box.y + SMALL * 0.36,
        "text-anchor": "middle",
        "font-size": f"{SMALL:g}",
        "font-weight": "600",
        "fill": "currentColor",
    }
    return element("text", given, escaped(text))


def _picture(
    drawn: Sequence[Markup],
    boxes: Sequence[Box],
    lines: Mapping[Link, Route],
    title: str,
    description: str,
) -> Markup:
    points = [point for route in lines.values() for point in route.points()]
    left = min([box.x - box.width / 2 for box in boxes] + [p.x for p in points]) - MARGIN
    right = max([box.x + box.width / 2 for box in boxes] + [p.x for p in points]) + MARGIN
    top = min([box.y - box.height / 2 for box in boxes] + [p.y for p in points]) - MARGIN
    bottom = max([box.y + box.height / 2 for box in boxes] + [p.y for p in points]) + MARGIN
    width, height = right - left, bottom - top
    attributes: dict[str, object] = {
        "xmlns": "http://www.w3.org/2000/svg",
        "class": "drawing",
        "role": "img",
        "aria-label": title,
        "viewBox": f"{left:.0f} {top:.0f} {width:.0f} {height:.0f}",
        "width": f"{width:.0f}",
        "height": f"{height:.0f}",
        "font-family": FONT,
        "font-size": f"{SIZE:g}",
    }
    told = element("title", {}, escaped(title))
    more = element("desc", {}, escaped(description)) if description else Markup("")
    return element("svg", attributes, told, more, *drawn)
