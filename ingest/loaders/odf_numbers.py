"""The numbers of OpenDocument lists and headings, which stand in their styles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ingest.loaders.ordinals import ordinal
from ingest.loaders.xml_tree import attribute, descendants, local_name

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

BULLET = "-"
_OUTLINE = "outline"
_LISTS = ("list-style", "outline-style")
_LEVELS = ("list-level-style-number", "outline-level-style")
_MAX_LEVELS = 10


@dataclass(frozen=True)
class _Level:
    kind: str
    before: str
    after: str
    start: int
    shown: int


class Numbers:
    """Count the items of lists and the headings in reading order; levels count from 1."""

    def __init__(self, *roots: Element | None) -> None:
        """Read the styles of lists in content and styles."""
        self._styles: dict[str, dict[int, _Level]] = {}
        self._counts: dict[str, dict[int, int]] = {}
        for root in roots:
            for style in descendants(root, *_LISTS) if root is not None else ():
                is_outline = local_name(style) == "outline-style"
                name = _OUTLINE if is_outline else attribute(style, "name")
                self._styles.setdefault(name, _levels(style))

    def begin(self, style: str, level: int) -> None:
        """Begin a list that does not go on from one before."""
        self._counts.setdefault(style, {}).pop(level, None)

    def item(self, style: str, level: int, start: str = "") -> str:
        """Return what stands before the next item of a list; "-" where it has no number."""
        return self._next(style, level, start) or BULLET

    def heading(self, level: int) -> str:
        """Return the number of the next heading, or ""."""
        return self._next(_OUTLINE, level, "")

    def _next(self, style: str, level: int, start: str) -> str:
        levels = self._styles.get(style, {})
        counts = self._counts.setdefault(style, {})
        found = levels.get(level)
        if found is None:
            return ""
        counts[level] = int(start) if start.isdecimal() else counts.get(level, found.start - 1) + 1
        for deeper in [at for at in counts if at > level]:
            del counts[deeper]
        if not found.kind:
            return ""
        first = max(1, level - found.shown + 1)
        shown = (
            ordinal(counts.get(at, levels[at].start), levels[at].kind)
            for at in range(first, level + 1)
            if at in levels and levels[at].kind
        )
        return f"{found.before}{'.'.join(shown)}{found.after}".strip()


def _levels(style: Element) -> dict[int, _Level]:
    found: dict[int, _Level] = {}
    for element in style:
        level = attribute(element, "level")
        if local_name(element) in _LEVELS and level.isdecimal() and int(level) <= _MAX_LEVELS:
            start, shown = attribute(element, "start-value"), attribute(element, "display-levels")
            found[int(level)] = _Level(
                kind=attribute(element, "num-format"),
                before=attribute(element, "num-prefix"),
                after=attribute(element, "num-suffix"),
                start=int(start) if start.isdecimal() else 1,
                shown=int(shown) if shown.isdecimal() else 1,
            )
    return found
