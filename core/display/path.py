"""The path of a run through the graph, drawn from its trail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise

from core.display.drawing import draw
from core.display.markup import Markup
from core.display.ranks import Link
from core.display.shapes import Edge, Node
from core.trace import RunRecord, Step
from core.types import StopReason

START, END = "__start__", "__end__"  # as LangGraph names them
TOLD = 60  # visits that the description lists


def visits(trail: Iterable[Step]) -> list[str]:
    """Return the nodes in the order in which they were visited.

    Several tool calls or operations side by side are one visit; no node follows itself.
    """
    return [node for node, _ in groupby(step.node for step in trail)]


def graph_drawing(names: Sequence[str], conditional: dict[Link, bool]) -> Markup:
    """Draw a graph: its nodes and its links, those that depend on a decision dashed."""
    nodes = [Node(name, text=_shown(name)) for name in names]
    edges = [Edge(*link, _classes(dashed)) for link, dashed in conditional.items()]
    return draw(
        nodes,
        edges,
        title="The graph of every run",
        description="Dashed arrows are taken or not, as the node before them decides.",
    )


def path_drawing(
    run: RunRecord, names: Sequence[str] = (), conditional: dict[Link, bool] | None = None
) -> Markup:
    """Draw the path of a run, how often it took each arrow, over the graph when it is given.

    What a graph of today has no more is drawn all the same. A cancelled run has no arrow to the
    end.
    """
    way = [START, *visits(run.trail)]
    if run.result.get("stop_reason") != StopReason.cancelled:
        way.append(END)
    seen, taken = Counter(way), Counter(pairwise(way))
    known = dict(conditional or {})
    every = [*dict.fromkeys([*names, *way])]
    if not names:
        every = [*(name for name in every if name != END), *([END] if END in seen else [])]
    nodes = [_node(name, seen[name], run.trail) for name in every]
    edges = [
        Edge(*link, _classes(known.get(link, False), taken[link]), taken[link])
        for link in dict.fromkeys([*known, *taken])
    ]
    return draw(nodes, edges, title="The path of the run", description=_told(way))


def _node(name: str, count: int, trail: Sequence[Step]) -> Node:
    own = [step for step in trail if step.node == name]
    told = f"{_shown(name)}: {_times(count)}, {sum(step.ms for step in own):.0f} ms" if own else ""
    classes = ("visited",) if count else ()
    return Node(name, text=_shown(name), classes=classes, count=count, description=told)


def _classes(dashed: bool, count: int = 0) -> tuple[str, ...]:
    return (*(("conditional",) if dashed else ()), *(("visited",) if count else ()))


def _shown(name: str) -> str:
    return {START: "start", END: "end"}.get(name, name)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _told(way: Sequence[str]) -> str:
    listed = " → ".join(_shown(name) for name in way[:TOLD])
    return f"{listed} and {len(way) - TOLD} more" if len(way) > TOLD else listed
