"""Headings, paragraphs, lists and tables of OpenDocument."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ingest.loaders.ordinals import ordinal
from ingest.loaders.outline import Outline, table_text
from ingest.loaders.web.xml_tree import attribute, children, descendants, local_name

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


BULLET = "-"
_OUTLINE = "outline"
_LISTS = ("list-style", "outline-style")
_LEVELS = ("list-level-style-number", "outline-level-style")
_MAX_LEVELS = 10


@dataclass(frozen=True)
class _OdfLevel:
    kind: str
    before: str
    after: str
    start: int
    shown: int


class OdfNumbering:
    """Count the items of lists and the headings in reading order; levels count from 1."""

    def __init__(self, *roots: Element | None) -> None:
        """Read the styles of lists in content and styles."""
        self._styles: dict[str, dict[int, _OdfLevel]] = {}
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


def _levels(style: Element) -> dict[int, _OdfLevel]:
    found: dict[int, _OdfLevel] = {}
    for element in style:
        level = attribute(element, "level")
        if local_name(element) in _LEVELS and level.isdecimal() and int(level) <= _MAX_LEVELS:
            start, shown = attribute(element, "start-value"), attribute(element, "display-levels")
            found[int(level)] = _OdfLevel(
                kind=attribute(element, "num-format"),
                before=attribute(element, "num-prefix"),
                after=attribute(element, "num-suffix"),
                start=int(start) if start.isdecimal() else 1,
                shown=int(shown) if shown.isdecimal() else 1,
            )
    return found


# What was deleted, said beside the text, or is made of the headings.
_DROPPED = frozenset(
    "tracked-changes annotation annotation-end table-of-content alphabetical-index sequence-decls "
    "forms scripts settings master-page object plugin image desc title event-listeners glue-point "
    "illustration-index table-index variable-decls user-field-decls".split()
)
_MAX_DEPTH = 200
_MAX_SPACES = 100


def add_blocks(
    outline: Outline, root: Element, numbers: OdfNumbering | None = None, depth: int = 0
) -> None:
    """Add everything below an element in reading order; `numbers` counts lists and headings."""
    numbers = numbers or OdfNumbering()
    for element in root:
        name = local_name(element)
        if name in _DROPPED or not name or depth > _MAX_DEPTH:
            continue
        if name == "h":
            _add_heading(outline, element, numbers)
        elif name == "p":
            _add_paragraph(outline, element, depth)
        elif name == "list":
            _add_list(outline, element, numbers)
        elif name == "table":
            outline.add(table_text(_rows(element, depth)), "table")
        else:  # sections, frames, text boxes, groups
            add_blocks(outline, element, numbers, depth + 1)


def _add_heading(outline: Outline, element: Element, numbers: OdfNumbering) -> None:
    said = attribute(element, "outline-level")
    level = int(said) if said.isdecimal() else 1
    text = text_of(element)
    if text.strip() and attribute(element, "is-list-header") != "true":
        text = f"{numbers.heading(level)} {text}".strip()
    outline.heading(level, text)


def _add_paragraph(outline: Outline, element: Element, depth: int) -> None:
    """Add a paragraph; a table in a text box anchored to it follows it."""
    tables = [found for found in element.iter() if local_name(found) == "table"]
    outline.prose(text_of(element))
    for table in tables:
        outline.add(table_text(_rows(table, depth)), "table")


def _add_list(
    outline: Outline, element: Element, numbers: OdfNumbering, style: str = "", level: int = 1
) -> None:
    if level > _MAX_DEPTH:
        return
    style = attribute(element, "style-name") or style
    if not (attribute(element, "continue-list") or attribute(element, "continue-numbering")):
        numbers.begin(style, level)
    for item in children(element, "list-item", "list-header"):
        label = ""
        for part in item:
            name = local_name(part)
            if name == "list":
                _add_list(outline, part, numbers, style, level + 1)
            elif name == "h":  # a numbered heading
                _add_heading(outline, part, numbers)
            elif text := text_of(part).strip():
                if not label:
                    is_item = local_name(item) == "list-item"
                    start = attribute(item, "start-value")
                    label = numbers.item(style, level, start) if is_item else BULLET
                    text = f"{label} {text}"
                outline.prose(f"{'  ' * min(level - 1, 8)}{text}", tight=True)


def _rows(table: Element, depth: int) -> list[list[str]]:
    rows: list[list[str]] = []
    for part in table:
        name = local_name(part)
        if name in ("table-header-rows", "table-rows", "table-row-group") and depth < _MAX_DEPTH:
            rows += _rows(part, depth + 1)
        elif name == "table-row":
            rows.append([text_of(cell) for cell in children(part, "table-cell")])
    return rows


def text_of(root: Element) -> str:
    """Return the text of an element; spaces, tabs and line ends are elements of their own."""
    parts: list[str] = []
    _collect(root, parts, 0)
    return "".join(parts).strip("\n")


def _collect(element: Element, parts: list[str], depth: int) -> None:
    parts.append(" ".join((element.text or "").replace("\n", " ").split(" ")))
    for part in element:
        name = local_name(part)
        if name == "s":
            count = attribute(part, "c")
            parts.append(" " * min(int(count) if count.isdigit() else 1, _MAX_SPACES))
        elif name == "tab":
            parts.append("\t")
        elif name == "line-break":
            parts.append("\n")
        elif name == "note":
            _add_note(part, parts, depth)
        elif name and name not in _DROPPED and name != "table" and depth < _MAX_DEPTH:
            inner = len(parts)
            _collect(part, parts, depth + 1)
            if name in ("p", "h", "list-item", "text-box", "custom-shape") and len(parts) > inner:
                parts.append("\n")
        parts.append((part.tail or "").replace("\n", " "))


def _add_note(note: Element, parts: list[str], depth: int) -> None:
    """Put a footnote where it is referred to."""
    for body in children(note, "note-body"):
        found: list[str] = []
        if depth < _MAX_DEPTH:
            _collect(body, found, depth + 1)
        if text := " ".join("".join(found).split()):
            parts.append(f" [{text}]")
