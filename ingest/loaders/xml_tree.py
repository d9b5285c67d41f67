"""Small questions to ask of an XML tree, whatever its namespaces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_SPACE = re.compile(r"\s+")


def local_name(element: Element) -> str:
    """Return the name of an element without its namespace; comments have none."""
    tag = element.tag
    return tag.rsplit("}", 1)[-1].rsplit(":", 1)[-1] if isinstance(tag, str) else ""


def attribute(element: Element, name: str) -> str:
    """Return an attribute by its name without a namespace, or ""."""
    for key, value in element.attrib.items():
        if key.rsplit("}", 1)[-1] == name:
            return value
    return ""


def children(element: Element, *names: str) -> Iterator[Element]:
    """Yield the direct children with one of these names."""
    return (child for child in element if local_name(child) in names)


def child(element: Element | None, *path: str) -> Element | None:
    """Follow a path of names to the first such element below, or None."""
    for name in path:
        element = None if element is None else next(children(element, name), None)
    return element


def descendants(element: Element, *names: str) -> Iterator[Element]:
    """Yield all elements below (and the element itself) with one of these names."""
    return (found for found in element.iter() if local_name(found) in names)


def words(element: Element | None) -> str:
    """Return all text below an element in one line, or "" for None."""
    return "" if element is None else _SPACE.sub(" ", "".join(element.itertext())).strip()
