"""What an author hid in an office document is no text of it: it is emptied before it is read.

Runs marked as hidden, and those that nobody can make out on what is behind them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ingest.loaders.visibility import BLACK, WHITE, Colour, colour_of, is_legible
from ingest.loaders.web.xml_tree import (
    attribute,
    child,
    children,
    descendants,
    local_name,
    value_of,
)

Element = Any  # of lxml or of ElementTree
Scheme = Mapping[str, Colour]  # the colours of a theme by their names
_OFF = ("0", "false", "off")
_HIDDEN_TEXT = ("hidden-text", "hidden-paragraph")
_MAX_BASES = 10  # of styles that rest on others; chosen, not measured
_FILLS = ("gradFill", "blipFill", "pattFill", "grpFill")


def empty_hidden_runs(root: Element, styles: Element | None = None) -> int:
    """Empty the runs of a DOCX that its readers do not see; return how many had words."""
    known = {
        attribute(style, "styleId"): style
        for style in (() if styles is None else children(styles, "style"))
    }
    page = colour_of(value_of(root.getparent(), "background", name="color")) or WHITE
    emptied = 0
    for paragraph in list(descendants(root, "p")):
        own = list(_bases(value_of(paragraph, "pPr", "pStyle"), known))
        paper = _paper_below(paragraph, own, known, page)
        for run in list(descendants(paragraph, "r")):
            properties = child(run, "rPr")
            looks = [properties, *_bases(value_of(properties, "rStyle"), known), *own]
            looks = [one if one is properties else child(one, "rPr") for one in looks]
            looks = [one for one in looks if one is not None]
            if _is_hidden(looks, paper):
                emptied += _empty(run)
    return emptied


def _bases(name: str, known: Mapping[str, Element]) -> Iterator[Element]:
    for _ in range(_MAX_BASES):
        if name not in known:
            return
        yield known[name]
        name = value_of(known[name], "basedOn")


def _paper_below(
    paragraph: Element, styles: list[Element], known: Mapping[str, Element], page: Colour
) -> Colour | None:
    """Return the colour behind a paragraph, None where it is not known."""
    for holder in (paragraph, *styles):
        shading = child(holder, "pPr", "shd")
        if value_of(shading) != "nil" and value_of(shading, name="fill") not in ("", "auto"):
            return colour_of(value_of(shading, name="fill"))
    for above in paragraph.iterancestors():
        name = local_name(above)
        if name == "txbxContent":
            return None
        shading = child(above, "tcPr", "shd") if name == "tc" else None
        if value_of(shading, name="fill") not in ("", "auto"):
            return colour_of(value_of(shading, name="fill"))
        style = value_of(above, "tblPr", "tblStyle") if name == "tbl" else ""
        if style and any(True for one in _bases(style, known) for _ in descendants(one, "shd")):
            return None
    return page


def _is_hidden(looks: list[Element], paper: Colour | None) -> bool:
    """Tell it of a run of a DOCX, whose sizes are half points, by its own looks and its styles'."""

    def first(name: str) -> Element | None:
        return next((found for one in looks if (found := child(one, name)) is not None), None)

    vanish, marked, shading = first("vanish"), first("highlight"), first("shd")
    if vanish is not None and value_of(vanish) not in _OFF:
        return True
    if marked is not None and value_of(marked) != "none":
        paper = colour_of(value_of(marked))
    elif value_of(shading, name="fill") not in ("", "auto"):
        paper = colour_of(value_of(shading, name="fill"))
    written = value_of(first("color"))
    ink = None if written in ("", "auto") else colour_of(written)
    return not is_legible(ink, paper, _points(value_of(first("sz")), 2))


def empty_unseen_shapes(slide: Element, paper: Colour | None, scheme: Scheme) -> int:
    """Empty the runs of a slide that its viewers do not see; return how many had words."""
    emptied = 0
    drawn = [one for one in descendants(slide, "sp", "pic", "graphicFrame") if _fill(one, scheme)]
    paragraphs: list[Element] = list(descendants(slide, "p"))
    for paragraph in paragraphs:
        shape = next((up for up in paragraph.iterancestors() if local_name(up) == "sp"), None)
        behind: Colour | None = None
        if shape is not None:
            covered = any(one is not shape and _lies_on(shape, one) for one in drawn)
            filled = _fill(shape, scheme)
            behind = filled[0] if filled else None if covered else paper
        for run in list(descendants(paragraph, "r")):
            looks = child(run, "rPr")
            fill = child(looks, "solidFill")
            ink = None if fill is None else solid_colour(fill, scheme)
            if not is_legible(ink, behind, _points(value_of(looks, name="sz"), 100)):
                emptied += _empty(run)
    return emptied


def paper_of(masters: list[Element], scheme: Scheme) -> Colour | None:
    """Return the colour of a slide, None where it is not known; the slide comes first."""
    for one in masters[1:]:
        if any(_fill(shape, scheme) for shape in descendants(one, "sp", "pic", "graphicFrame")):
            return None
    for one in masters:
        behind = child(one, "cSld", "bg")
        if behind is not None:
            solid = child(behind, "bgPr", "solidFill")
            solid = child(behind, "bgRef") if solid is None else solid
            return None if solid is None else solid_colour(solid, scheme)
    return WHITE


def scheme_of(theme: Element, master: Element) -> dict[str, Colour]:
    """Return the colours of a theme by their own names and by those that a master gives them."""
    found: dict[str, Colour] = {}
    for one in descendants(theme, "clrScheme"):
        for named in one:
            written = [attribute(v, "lastClr") or attribute(v, "val") for v in named]
            if written and (colour := colour_of(written[0])) is not None:
                found[local_name(named)] = colour
    names = child(master, "clrMap")
    given = {} if names is None else dict(names.attrib)
    return found | {name: found[one] for name, one in given.items() if one in found}


def _fill(shape: Element, scheme: Scheme) -> list[Colour | None]:
    """Return the colour of a shape, one that is not known as None; empty for one without any."""
    if local_name(shape) != "sp":
        return [None]
    solid = child(shape, "spPr", "solidFill")
    if solid is not None:
        return [solid_colour(solid, scheme)]
    if any(child(shape, "spPr", name) is not None for name in _FILLS):
        return [None]
    theme = child(shape, "style", "fillRef")
    plain = child(shape, "spPr", "noFill") is not None or theme is None
    return [] if plain or value_of(theme, name="idx") == "0" else [None]


def solid_colour(fill: Element, scheme: Scheme) -> Colour | None:
    """Return the colour of a solid fill, None for a shade of one."""
    for one in fill:
        name = attribute(one, "val")
        if not len(one) and local_name(one) in ("srgbClr", "schemeClr", "prstClr"):
            return scheme.get(name) if local_name(one) == "schemeClr" else colour_of(name)
    return None


def _lies_on(upper: Element, lower: Element) -> bool:
    """Tell whether the middle of a shape may be on another one."""
    boxes = [_box(one) for one in (upper, lower)]
    if boxes[0] is None or boxes[1] is None:
        return True
    (left, top, width, height), (x, y, across, down) = boxes[0], boxes[1]
    return x <= left + width / 2 <= x + across and y <= top + height / 2 <= y + down


def _box(shape: Element) -> tuple[float, float, float, float] | None:
    frame = child(shape, "spPr", "xfrm")
    frame = child(shape, "xfrm") if frame is None else frame
    place, size = child(frame, "off"), child(frame, "ext")
    try:
        numbers = [float(value_of(place, name=one)) for one in "xy"]
        numbers += [float(value_of(size, name=one)) for one in ("cx", "cy")]
    except ValueError:
        return None
    return numbers[0], numbers[1], numbers[2], numbers[3]


def empty_hidden_spans(root: Element, paper: Colour | None = WHITE) -> int:
    """Empty what the styles of an ODF document hide; return how much had words."""
    unseen: dict[str, bool] = {}
    for style in descendants(root, "style"):
        for looks in children(style, "text-properties"):
            size = _points(attribute(looks, "font-size").removesuffix("pt"), 1)
            hidden = attribute(looks, "display") == "none" or not is_legible(BLACK, WHITE, size)
            below = attribute(looks, "background-color")
            behind = colour_of(below) if below not in ("", "transparent") else paper
            if hidden or not is_legible(colour_of(attribute(looks, "color")), behind):
                unseen[attribute(style, "name")] = hidden
    emptied, boxes = 0, descendants(root, "table-cell", "text-box")
    boxed = {id(element) for box in boxes for element in box.iter()}  # on a paper of their own
    for element in list(descendants(root, "span", "p", "h", *_HIDDEN_TEXT)):
        certain = unseen.get(attribute(element, "style-name"))
        pale = certain is False and id(element) not in boxed
        if local_name(element) in _HIDDEN_TEXT or certain or pale:
            emptied += _empty(element)
            element.text = None
    return emptied


def _points(size: str, of_point: int) -> float | None:
    return float(size) / of_point if size.replace(".", "", 1).isdecimal() else None


def _empty(element: Element) -> bool:
    """Take all out of an element; return whether it had words."""
    had = any((part.text or "").strip() for part in element.iter())
    for part in list(element):
        element.remove(part)
    return had
