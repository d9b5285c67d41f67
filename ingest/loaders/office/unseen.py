"""What an author hid in an office document is no text of it: it is emptied before it is read.

Runs marked as hidden, too small to read, or white on paper; bounds are chosen, not measured.
"""

from __future__ import annotations

from typing import Any

from ingest.loaders.web.xml_tree import attribute, child, children, descendants, local_name

Element = Any  # of lxml or of ElementTree
_MIN_POINTS = 2.0
_OFF = ("0", "false", "off")
_HIDDEN_TEXT = ("hidden-text", "hidden-paragraph")


def empty_hidden_runs(root: Element, styles: Element | None = None) -> None:
    """Empty the hidden runs of a DOCX or a slide; of white ones those on plain paper alone."""
    unseen = {
        attribute(style, "styleId")
        for style in (() if styles is None else children(styles, "style"))
        if _is_hidden(child(style, "rPr")) and attribute(style, "styleId")
    }
    paragraphs: list[Element] = list(descendants(root, "p"))
    for paragraph in paragraphs:
        gone = _value(child(paragraph, "pPr", "pStyle")) in unseen
        on_paper = child(paragraph, "pPr", "shd") is None and not any(
            local_name(above) in ("tc", "txbxContent") for above in paragraph.iterancestors()
        )
        for run in list(descendants(paragraph, "r")):
            properties = child(run, "rPr")
            hidden = gone or _value(child(properties, "rStyle")) in unseen
            if hidden or _is_hidden(properties) or (on_paper and _is_white(properties)):
                _empty(run)


def empty_hidden_spans(root: Element) -> None:
    """Empty what the styles of an ODF document hide."""
    unseen = {
        attribute(style, "name")
        for style in descendants(root, "style")
        for looks in children(style, "text-properties")
        if attribute(looks, "display") == "none"
        or _is_tiny(attribute(looks, "font-size").removesuffix("pt"), 1)
        or (attribute(looks, "color") == "#ffffff" and not attribute(looks, "background-color"))
    }
    for element in list(descendants(root, "span", "p", "h", *_HIDDEN_TEXT)):
        if local_name(element) in _HIDDEN_TEXT or attribute(element, "style-name") in unseen:
            element.text = None
            _empty(element)


def _is_hidden(properties: Element | None) -> bool:
    """Tell it of a run; Word counts in half points, PowerPoint in hundredths of one."""
    if properties is None:
        return False
    vanish, tiny = child(properties, "vanish"), _is_tiny(attribute(properties, "sz"), 100)
    marked = vanish is not None and _value(vanish) not in _OFF
    return marked or tiny or _is_tiny(_value(child(properties, "sz")), 2)


def _is_white(properties: Element | None) -> bool:
    behind = any(child(properties, name) is not None for name in ("shd", "highlight"))
    return _value(child(properties, "color")).upper() == "FFFFFF" and not behind


def _is_tiny(size: str, of_point: int) -> bool:
    return size.replace(".", "", 1).isdecimal() and float(size) / of_point <= _MIN_POINTS


def _value(element: Element | None) -> str:
    return "" if element is None else attribute(element, "val")


def _empty(element: Element) -> None:
    for part in list(element):
        element.remove(part)
