"""What recommended documents depend on, work with and stand instead of, as a drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from display.html import Markup, element, escaped
from display.plan_drawing import (
    LEADING,
    PADDING,
    SIZE,
    STROKE,
    WIDEST,
    Box,
    arrow,
    picture,
    place,
    text_width,
    wrapped,
)

WORDS = {
    "depends_on": "depends on",
    "works_with": "works with",
    "instead_of": "instead of",
    "replaced_by": "is replaced by",
}
DASHES = {"depends_on": "", "works_with": "6 4", "instead_of": "1.5 4", "replaced_by": "1.5 4"}
NONE = "None of these documents says how it is related to another."


def relations_drawing(relations: Sequence[Mapping[str, Any]]) -> Markup:
    """Draw a box for each document and each name, and arrows by kind; empty without relations.

    A line is whole where one depends on the other, dashed where it works with it, dotted where
    one stands instead of the other; its words are in the title of the arrow's box.
    """
    if not relations:
        return Markup("")
    names = dict.fromkeys(one["title"] for one in relations)
    names |= dict.fromkeys(one["target"] for one in relations)
    lines = {name: wrapped(name, SIZE, WIDEST, 2) for name in names}
    sizes = {
        name: (
            max(text_width(line, SIZE) for line in own) + 2 * PADDING,
            len(own) * LEADING + 2 * PADDING - 5,
        )
        for name, own in lines.items()
    }
    kinds = {(one["title"], one["target"]): str(one["kind"]) for one in relations}
    boxes, through = place(sizes, list(kinds))
    sentences = [f"{start} {WORDS[kind]} {end}" for (start, end), kind in kinds.items()]
    drawn = [
        element("g", {}, element("title", {}, escaped(text)), arrow(link, way, DASHES[kinds[link]]))
        for text, (link, way) in zip(sentences, through.items(), strict=True)
    ]
    drawn += [_box(lines[name], box) for name, box in boxes.items()]
    every = [*boxes.values(), *(box for way in through.values() for box in way)]
    return picture(drawn, every, "How these are related", "; ".join(sentences))


def no_relations() -> Markup:
    """Draw the line that says that there is nothing to draw."""
    box = Box(0, 0, text_width(NONE, SIZE) + 2 * PADDING, LEADING + 2 * PADDING)
    return picture([_box([NONE], box)], [box], "How these are related", NONE)


def _box(lines: Sequence[str], box: Box) -> Markup:
    left, top = box.x - box.width / 2, box.y - box.height / 2
    frame = {"x": left, "y": top, "width": box.width, "height": box.height, "rx": 8}
    first = top + PADDING + SIZE - 4
    texts = [
        element(
            "text",
            {"x": left + PADDING, "y": first + number * LEADING, "fill": "currentColor"},
            escaped(one),
        )
        for number, one in enumerate(lines)
    ]
    return element("g", {"class": "node"}, element("rect", frame | STROKE), *texts)
