"""Small questions to ask of an XML tree, whatever its namespaces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NoReturn
from xml.etree.ElementTree import Element
from xml.parsers import expat

from defusedxml.common import DefusedXmlException  # type: ignore[import-untyped]
from defusedxml.ElementTree import ParseError, fromstring  # type: ignore[import-untyped]

from core.errors import DocumentError

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


def value_of(element: Element | None, *path: str, name: str = "val") -> str:
    """Return an attribute of the element at the end of a path, "" where there is none."""
    found = child(element, *path)
    return "" if found is None else attribute(found, name)


def descendants(element: Element, *names: str) -> Iterator[Element]:
    """Yield all elements below (and the element itself) with one of these names."""
    return (found for found in element.iter() if local_name(found) in names)


def words(element: Element | None) -> str:
    """Return all text below an element in one line, or "" for None."""
    return "" if element is None else _SPACE.sub(" ", "".join(element.itertext())).strip()


_DECLARED = re.compile(rb"""^\s*<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)["'][^>]*\?>""")


def parse_xml(data: bytes) -> Element:
    """Return the root of an XML document of any encoding Python knows.

    A DOCTYPE is read over; one that declares entities, internal or external, raises DocumentError,
    and so does XML that is not well formed.
    """
    try:
        root: Element = fromstring(_utf8(data), forbid_dtd=False)
    except DefusedXmlException:
        _refuse()
    except (ParseError, ValueError, LookupError) as error:
        raise DocumentError(f"the XML is not well formed ({error})") from error
    return root


def check_xml(pieces: Iterable[bytes]) -> None:
    """Raise DocumentError when XML declares entities; pieces are taken until the root begins.

    For XML that another parser reads, such as the parts of an OOXML container.
    """
    roots: list[str] = []  # entities can be declared before the root only
    parser = expat.ParserCreate()
    parser.EntityDeclHandler = _refuse
    parser.StartElementHandler = lambda name, _: roots.append(name)
    try:
        for piece in pieces:
            parser.Parse(piece, False)
            if roots:
                return
    except (expat.ExpatError, ValueError, LookupError):
        return  # whoever parses it will say what is wrong


def _refuse(*_: object) -> NoReturn:
    raise DocumentError(
        "the XML declares entities, which can read files or grow without end; they are not read"
    )


def _utf8(data: bytes) -> bytes:
    """Recode what expat cannot read: encodings of several bytes per character."""
    declared = _DECLARED.match(data)
    if declared is None:
        return data
    name = declared.group(1).decode()
    if name.lower().replace("_", "-") in {"utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1"}:
        return data
    if name.lower().startswith(("utf-16", "utf-32", "ucs-")):
        return data[declared.end() :]  # the declaration itself shows that it is wrong
    try:
        text = data[declared.end() :].decode(name)
    except (LookupError, UnicodeDecodeError):
        return data
    return text.encode("utf-8", "replace")
