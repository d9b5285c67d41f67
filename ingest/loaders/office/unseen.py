"""What an author hid in an office document is no text of it: it is emptied before it is read.

Runs marked as hidden, too small to read, or white on paper; bounds are chosen, not measured.
"""

from __future__ import annotations

from typing import Any

from ingest.loaders.web.xml_tree import attribute, child, children, descendants

# Elements of lxml or of ElementTree.
Element = Any
_MIN_POINTS = 2.0
_OFF = ("0", "false", "off")
_COLOURED = ("shd", "highlight")
_HIDDEN_TEXT = ("hidden-text", "hidden-paragraph")


def empty_hidden_runs(root: Element, styles: Element | None) -> None:
    """Empty the hidden runs of a DOCX; of white ones those outside tables and shades alone."""
    unseen = {
        attribute(style, "styleId")
        for style in (() if styles is None else children(styles, "style"))
        if _is_hidden(child(style, "rPr"))
    }
    paragraphs: list[Element] = list(descendants(root, "p"))
    for paragraph in paragraphs:
        style = child(paragraph, "pPr", "pStyle")
        gone = style is not None and attribute(style, "val") in unseen
        shaded = child(paragraph, "pPr", "shd") is not None or any(
            _is_name(above, "tc", "txbxContent") for above in paragraph.iterancestors()
        )
        for run in list(descendants(paragraph, "r")):
            properties = child(run, "rPr")
            named = child(properties, "rStyle")
            gone_run = gone or (named is not None and attribute(named, "val") in unseen)
            if gone_run or _is_hidden(properties) or (not shaded and _is_white(properties)):
                _empty(run)


def empty_hidden_spans(root: Element) -> None:
    """Empty what the styles of an ODF document hide."""
    unseen = {
        attribute(style, "name")
        for style in descendants(root, "style")
        for properties in children(style, "text-properties")
        if attribute(properties, "display") == "none"
        or _is_tiny(attribute(properties, "font-size").removesuffix("pt"))
        or (
            attribute(properties, "color").lower() == "#ffffff"
            and not attribute(properties, "background-color")
        )
    }
    for element in list(descendants(root, "span", "p", "h", *_HIDDEN_TEXT)):
        if _is_name(element, *_HIDDEN_TEXT) or (attribute(element, "style-name") in unseen):
            element.text = None
            _empty(element)


def empty_tiny_runs(slide: Element) -> None:
    """Empty the runs of a slide that are too small to read; white is a colour of dark slides."""
    for run in list(descendants(slide, "r")):
        properties = child(run, "rPr")
        size = "" if properties is None else attribute(properties, "sz")
        if size.isdecimal() and _is_tiny(str(int(size) / 100)):
            _empty(run)


def _is_hidden(properties: Element | None) -> bool:
    vanish, size = child(properties, "vanish"), child(properties, "sz")
    if vanish is not None and attribute(vanish, "val") not in _OFF:
        return True
    half_points = "" if size is None else attribute(size, "val")
    return half_points.isdecimal() and _is_tiny(str(int(half_points) / 2))


def _is_white(properties: Element | None) -> bool:
    colour = child(properties, "color")
    coloured = any(child(properties, name) is not None for name in _COLOURED)
    return colour is not None and attribute(colour, "val").upper() == "FFFFFF" and not coloured


def _is_tiny(points: str) -> bool:
    return points.replace(".", "", 1).isdecimal() and float(points) <= _MIN_POINTS


def _is_name(element: Element, *names: str) -> bool:
    return str(element.tag).rsplit("}", 1)[-1] in names


def _empty(element: Element) -> None:
    for part in list(element):
        element.remove(part)
