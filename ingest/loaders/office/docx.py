"""DOCX to blocks: heading styles are sections, tables rows of cells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docx
from docx.document import Document

from ingest.loaders.limits import LoadLimits, report_damage
from ingest.loaders.office import ooxml
from ingest.loaders.office.docx_text import (
    CONTAINERS,
    charts,
    is_contents,
    note_names,
    notes,
    part_of,
    rows_of,
    text_boxes,
    text_of,
)
from ingest.loaders.office.ooxml import chart_rows
from ingest.loaders.office.unseen import empty_hidden_runs
from ingest.loaders.outline import Outline, ordinal, table_text
from ingest.loaders.web.xml_tree import attribute, child, children, local_name, value_of
from ingest.types import ParsedDocument

# Elements of lxml, which has no types.
Element = Any
_HEADING = re.compile(r"heading\s*(\d)", re.I)
_LIST = re.compile(r"list", re.I)
_MAX_DEPTH = 10  # styles based on one another; chosen, not measured
_MAX_OUTLINE = 8  # Word's levels are 0 to 8, 9 is body text


@dataclass(frozen=True)
class Style:
    """Hold the properties of a paragraph style; `number` and `level` are those of its list."""

    id: str
    name: str
    based_on: str
    outline: int | None
    number: str
    level: str


class Styles:
    """Find the kind of a paragraph by its own properties and those of its chain of styles."""

    def __init__(self, root: Element | None) -> None:
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
        name = self._default if named is None else value_of(named)
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
        name=value_of(element, "name"),
        based_on=value_of(element, "basedOn"),
        outline=_outline(properties),
        number=value_of(properties, "numPr", "numId"),
        level=value_of(properties, "numPr", "ilvl"),
    )


def _outline(properties: Element | None) -> int | None:
    value = value_of(properties, "outlineLvl")
    return int(value) if value.isdecimal() else None


BULLET = "-"
_PLACE = re.compile(r"%([1-9])")
_MAX_LABEL = 60  # characters; chosen, not measured


@dataclass(frozen=True)
class _DocxLevel:
    start: int = 1
    kind: str = "decimal"
    text: str = ""
    style: str = ""
    legal: bool = False
    restart: int = 9  # after one of a level above this, from 0, it counts from its start


@dataclass
class _List:
    """One list of the document: its levels, which others may share the count of."""

    scheme: str
    levels: dict[int, _DocxLevel]
    starts: dict[int, int] = field(default_factory=dict)


class DocxNumbering:
    """Count the numbered paragraphs of a document in reading order."""

    def __init__(self, root: Element | None, styles: Styles) -> None:
        self._styles = styles
        self._lists = _lists(root) if root is not None else {}
        self._counts: dict[str, dict[int, int]] = {}

    def label(self, paragraph: Element) -> str:
        """Return the label of a paragraph ("4.2", "a)", "-") or ""; call it once for each."""
        number, level = self._place(paragraph)
        counted = self._lists.get(number)
        if counted is None:
            return BULLET if number.strip("0") else ""
        found = counted.levels.get(level) or _DocxLevel()
        self._count(counted, level, found)
        if found.kind == "bullet":
            return BULLET
        return _PLACE.sub(
            lambda m: self._write_count(counted, int(m[1]) - 1, found), found.text
        ).strip()[:_MAX_LABEL]

    def _place(self, paragraph: Element) -> tuple[str, int]:
        own = child(paragraph, "pPr", "numPr")
        number, level = value_of(own, "numId"), value_of(own, "ilvl")
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

    def _count(self, counted: _List, level: int, found: _DocxLevel) -> None:
        counts = self._counts.setdefault(counted.scheme, {})
        if level in counted.starts:  # holds once, where the list begins again
            counts[level] = counted.starts.pop(level)
        else:
            counts[level] = counts[level] + 1 if level in counts else found.start
        for deeper in [at for at in counts if at > level]:
            if level < counted.levels.get(deeper, _DocxLevel()).restart:
                del counts[deeper]

    def _write_count(self, counted: _List, level: int, shown_in: _DocxLevel) -> str:
        found = counted.levels.get(level) or _DocxLevel()
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
        name = value_of(element, "abstractNumId")
        link = child(schemes.get(name), "numStyleLink")
        if link is not None:
            name = linked.get(attribute(link, "val"), name)
        found = _List(name, dict(levels.get(name, {})))
        for changed in children(element, "lvlOverride"):
            start, own = value_of(changed, "startOverride"), _levels(changed)
            found.levels |= own
            at = attribute(changed, "ilvl")
            if start.isdecimal() and at.isdecimal():
                found.starts[int(at)] = int(start)
        lists[attribute(element, "numId")] = found
    return lists


def _levels(element: Element) -> dict[int, _DocxLevel]:
    found: dict[int, _DocxLevel] = {}
    for level in children(element, "lvl"):
        at, start = attribute(level, "ilvl"), value_of(level, "start")
        restart = value_of(level, "lvlRestart")
        if at.isdecimal():
            found[int(at)] = _DocxLevel(
                start=int(start) if start.isdecimal() else 0,
                kind=value_of(level, "numFmt") or "decimal",
                text=value_of(level, "lvlText"),
                style=value_of(level, "pStyle"),
                legal=child(level, "isLgl") is not None,
                restart=int(restart) if restart.isdecimal() else 9,
            )
    return found


_MAX_NESTING = 50  # a bound against hostile nesting; chosen, not measured


def load(path: Path, relative: str, limits: LoadLimits) -> Iterator[ParsedDocument]:
    """Yield the one document of a DOCX file; call it in a child process."""
    ooxml.check(path, "DOCX", limits, "word")
    with report_damage("the DOCX is damaged"):
        document = docx.Document(ooxml.make_readable(path))
    reader = _DocxReader(document)
    reader.read(document.element.body, 0)
    described = ooxml.read_properties(document.core_properties)
    titles = " ".join(reader.title.split()), described.get("title"), reader.outline.first_heading
    found = ParsedDocument.of_file(relative, "docx", reader.outline.finish(), described, *titles)
    yield found.model_copy(update={"unseen": reader.unseen})


class _DocxReader:
    """Go through the body of a document, also where python-docx does not."""

    def __init__(self, document: Document) -> None:
        self.outline = Outline()
        self.title = ""
        styles = part_of(document, "styles")
        self.unseen = empty_hidden_runs(document.element.body, styles)
        self._styles = Styles(styles)
        self._numbers = DocxNumbering(part_of(document, "numbering"), self._styles)
        self._notes = notes(document)
        self._document = document

    def read(self, container: Any, depth: int) -> None:  # noqa: ANN401 (elements of lxml)
        for element in container:
            name = local_name(element)
            if name == "p":
                self._paragraph(element, depth)
            elif name == "tbl":
                self.outline.add(table_text(rows_of(element, self._in_cell)), "table")
            elif name in CONTAINERS and depth < _MAX_NESTING and not is_contents(element):
                self.read(element, depth + 1)

    def _paragraph(self, element: Any, depth: int) -> None:  # noqa: ANN401
        text = text_of(element)
        level = self._styles.heading_level(element)
        label = self._numbers.label(element)
        if level:
            is_numbered = label not in ("", BULLET) and text.strip()
            self.outline.heading(level, f"{label} {text}" if is_numbered else text)
        elif self._styles.name(element) == "Title":
            self.title = self.title or text
            self.outline.prose(text)
        else:
            text += self._notes_of(element)
            label = label or (BULLET if _LIST.match(self._styles.name(element)) else "")
            is_item = bool(text.strip() and label)
            self.outline.prose(f"{label} {text}" if is_item else text, tight=is_item)
        for chart in charts(element, self._document):
            self.outline.add(table_text(chart_rows(chart)), "table")
        if depth < _MAX_NESTING:
            for box in text_boxes(element):
                self.read(box, depth + 1)

    def _in_cell(self, element: Any) -> str:  # noqa: ANN401
        """Return a paragraph of a table; a column of numbers may have nothing but labels."""
        label = self._numbers.label(element)
        text = text_of(element) + self._notes_of(element)
        return f"{label} {text}" if label not in ("", BULLET) else text

    def _notes_of(self, element: Any) -> str:  # noqa: ANN401
        return "".join(f" [{self._notes[name]}]" for name in note_names(element, self._notes))
