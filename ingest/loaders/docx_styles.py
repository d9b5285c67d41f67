"""The styles of a DOCX file, read once: headings, lists and their numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ingest.loaders.xml_tree import attribute, child, children

# Elements of lxml, which has no types.
Element = Any
_HEADING = re.compile(r"heading\s*(\d)", re.I)
_LIST = re.compile(r"list", re.I)
_MAX_DEPTH = 10
_MAX_OUTLINE = 8


@dataclass(frozen=True)
class Style:
    """What a paragraph style says of itself; `number` and `level` are those of its list."""

    id: str
    name: str
    based_on: str
    outline: int | None
    number: str
    level: str


class Styles:
    """Answer what a paragraph is by its own properties and by the chain of its styles."""

    def __init__(self, root: Element | None) -> None:
        """Read the paragraph styles of a styles part, if there is one."""
        self._styles: dict[str, Style] = {}
        self._default = ""
        for element in children(root, "style") if root is not None else ():
            if attribute(element, "type") != "paragraph":
                continue
            style = _style(element)
            self._styles.setdefault(style.id, style)
            if attribute(element, "default") in ("1", "true", "on"):
                self._default = style.id

    def name(self, paragraph: Element) -> str:
        """Return the name of the paragraph's style, or ""."""
        return next((style.name for style in self.chain(paragraph)), "")

    def is_list(self, paragraph: Element) -> bool:
        """Tell whether the style is one of lists by its name."""
        return bool(_LIST.match(self.name(paragraph)))

    def heading_level(self, paragraph: Element) -> int | None:
        """Return 1-9 for a heading; in other languages only the style's id or parent tells it."""
        own = _outline(child(paragraph, "pPr"))
        if own is not None:
            return own + 1 if own <= _MAX_OUTLINE else None
        for style in self.chain(paragraph):
            match = _HEADING.match(style.name) or _HEADING.match(style.id)
            if match:
                return int(match.group(1))
            if style.outline is not None:
                return style.outline + 1 if style.outline <= _MAX_OUTLINE else None
        return None

    def chain(self, paragraph: Element) -> Iterator[Style]:
        """Yield the paragraph's style, then those it is based on."""
        named = child(paragraph, "pPr", "pStyle")
        name = attribute(named, "val") if named is not None else self._default
        for _ in range(_MAX_DEPTH):
            style = self._styles.get(name)
            if style is None:
                return
            yield style
            name = style.based_on


def _style(element: Element) -> Style:
    properties = child(element, "pPr")
    return Style(
        id=attribute(element, "styleId"),
        name=_value(child(element, "name")),
        based_on=_value(child(element, "basedOn")),
        outline=_outline(properties),
        number=_value(child(properties, "numPr", "numId")),
        level=_value(child(properties, "numPr", "ilvl")),
    )


def _outline(properties: Element | None) -> int | None:
    value = _value(child(properties, "outlineLvl"))
    return int(value) if value.isdecimal() else None


def _value(element: Element | None) -> str:
    return "" if element is None else attribute(element, "val")
