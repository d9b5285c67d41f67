"""The numbers that Word counts itself: "4.2" before a clause stands in no paragraph."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from ingest.loaders.docx_styles import Style, Styles
from ingest.loaders.ordinals import ordinal
from ingest.loaders.xml_tree import attribute, child, children

Element = Any
BULLET = "-"
_PLACE = re.compile(r"%([1-9])")
_MAX_LABEL = 60


@dataclass(frozen=True)
class _Level:
    start: int = 1
    kind: str = "decimal"
    text: str = ""
    style: str = ""
    legal: bool = False
    restart: int = 9

    def begins_anew(self, above: int) -> bool:
        """Tell whether this level counts from its start after one of level `above` (from 0)."""
        return above < self.restart


@dataclass
class _List:
    """One list of the document: its levels, which others may share the count of."""

    scheme: str
    levels: dict[int, _Level]
    starts: dict[int, int] = field(default_factory=dict)


class Numbers:
    """Count the numbered paragraphs of a document in reading order."""

    def __init__(self, root: Element | None, styles: Styles) -> None:
        """Read the lists of a numbering part, if there is one."""
        self._styles = styles
        self._lists = _lists(root) if root is not None else {}
        self._counts: dict[str, dict[int, int]] = {}

    def label(self, paragraph: Element) -> str:
        """Return what stands before a paragraph ("4.2", "a)", "-") or ""; call once for each."""
        number, level = self._place(paragraph)
        counted = self._lists.get(number)
        if counted is None:
            return BULLET if number.strip("0") else ""
        found = counted.levels.get(level) or _Level()
        self._count(counted, level, found)
        if found.kind == "bullet":
            return BULLET
        return _PLACE.sub(lambda m: self._shown(counted, int(m[1]) - 1, found), found.text).strip()[
            :_MAX_LABEL
        ]

    def _place(self, paragraph: Element) -> tuple[str, int]:
        own = child(paragraph, "pPr", "numPr")
        number, level = _value(own, "numId"), _value(own, "ilvl")
        chain = list(self._styles.chain(paragraph)) if not number else []
        style = next((style for style in chain if style.number), None)
        if style is not None:
            number = style.number
            level = level or self._level_of(number, [chain[0], style]) or style.level
        return number, min(int(level), 8) if level.isdecimal() else 0

    def _level_of(self, number: str, styles: list[Style]) -> str:
        counted = self._lists.get(number)
        names = [style.id for style in styles]
        for at, level in counted.levels.items() if counted else ():
            if level.style in names:
                return str(at)
        return ""

    def _count(self, counted: _List, level: int, found: _Level) -> None:
        counts = self._counts.setdefault(counted.scheme, {})
        if level in counted.starts:  # holds once, where the list begins anew
            counts[level] = counted.starts.pop(level)
        else:
            counts[level] = counts[level] + 1 if level in counts else found.start
        for deeper in [at for at in counts if at > level]:
            if counted.levels.get(deeper, _Level()).begins_anew(level):
                del counts[deeper]

    def _shown(self, counted: _List, level: int, shown_in: _Level) -> str:
        found = counted.levels.get(level) or _Level()
        if found.kind == "none":
            return ""
        count = self._counts[counted.scheme].get(level, found.start)
        return ordinal(count, "decimal" if shown_in.legal else found.kind)


def _lists(root: Element) -> dict[str, _List]:
    schemes = {attribute(e, "abstractNumId"): e for e in children(root, "abstractNum")}
    linked = {
        attribute(link, "val"): name
        for name, element in schemes.items()
        if (link := child(element, "styleLink")) is not None
    }
    levels = {name: _levels(element) for name, element in schemes.items()}
    lists: dict[str, _List] = {}
    for element in children(root, "num"):
        name = _value(element, "abstractNumId")
        link = child(schemes.get(name), "numStyleLink")
        if link is not None:
            name = linked.get(attribute(link, "val"), name)
        found = _List(name, dict(levels.get(name, {})))
        for changed in children(element, "lvlOverride"):
            start, own = _value(changed, "startOverride"), _levels(changed)
            found.levels |= own
            at = attribute(changed, "ilvl")
            if start.isdecimal() and at.isdecimal():
                found.starts[int(at)] = int(start)
        lists[attribute(element, "numId")] = found
    return lists


def _levels(element: Element) -> dict[int, _Level]:
    found: dict[int, _Level] = {}
    for level in children(element, "lvl"):
        at, start = attribute(level, "ilvl"), _value(level, "start")
        restart = _value(level, "lvlRestart")
        if at.isdecimal():
            found[int(at)] = _Level(
                start=int(start) if start.isdecimal() else 0,
                kind=_value(level, "numFmt") or "decimal",
                text=_value(level, "lvlText"),
                style=_value(level, "pStyle"),
                legal=child(level, "isLgl") is not None,
                restart=int(restart) if restart.isdecimal() else 9,
            )
    return found


def _value(element: Element | None, name: str) -> str:
    found = child(element, name)
    return "" if found is None else attribute(found, "val")
