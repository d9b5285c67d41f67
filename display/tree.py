"""The tree of a collection as an outline: for terminals, notebooks and the page alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from display.html import Markup, View, element, escaped, folded, joined, line


class TreeOutline(NamedTuple):
    """Hold a node as it is drawn: its label, its sentences, and those below."""

    label: str
    sentences: list[str]
    below: list[TreeOutline]


def outline(found: Mapping[str, Any]) -> TreeOutline:
    """Return the outline of a described tree; a node with two parents is drawn below both."""
    known = {one["node_id"]: one for one in found["tree"]}

    def drawn(node: Mapping[str, Any]) -> TreeOutline:
        sentences = [line(one["text"]) for one in node["summary"]]
        below = [drawn(known[one]) for one in node["children"] if one in known]
        return TreeOutline(line(node["label"]), sentences, below)

    return drawn(found["tree"][0])


def tree_view(found: Mapping[str, Any] | None) -> View:
    """Show a described tree, the two uppermost levels open; None is one that is not there."""
    if found is None:
        text = "there is no tree of what you may read"
        return View(element("p", {}, escaped(text)), text)
    root = outline(found)
    return View(_markup(root, 0), "\n".join(_lines(root, 0)))


def _markup(node: TreeOutline, depth: int) -> Markup:
    body = [element("p", {}, escaped(" ".join(node.sentences)))] if node.sentences else []
    below = [element("li", {}, _markup(one, depth + 1)) for one in node.below]
    items = [element("ul", {}, *below)] if below else []
    return folded(node.label, joined(*body, *items), opened=depth < 2)


def _lines(node: TreeOutline, depth: int) -> list[str]:
    indent = "  " * depth
    own = [f"{indent}  {one}" for one in node.sentences]
    return [
        f"{indent}{node.label}",
        *own,
        *(text for one in node.below for text in _lines(one, depth + 1)),
    ]
