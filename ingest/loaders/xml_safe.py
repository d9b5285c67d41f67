"""XML without entities, external references or a network."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING
from xml.parsers import expat

from core.errors import DocumentError

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_DECLARED = re.compile(rb"""^\s*<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)["'][^>]*\?>""")


def parse_xml(data: bytes) -> Element:
    """Return the root of an XML document of any encoding Python knows.

    A DOCTYPE is read over; one that declares entities, internal or external, raises DocumentError,
    and so does XML that is not well formed.
    """
    from defusedxml.common import DefusedXmlException  # type: ignore[import-untyped]
    from defusedxml.ElementTree import ParseError, fromstring  # type: ignore[import-untyped]

    try:
        root: Element = fromstring(_utf8(data), forbid_dtd=False)
    except DefusedXmlException as error:
        raise _entities() from error
    except (ParseError, ValueError, LookupError) as error:
        raise DocumentError(f"the XML is not well formed ({error})") from error
    return root


def check_xml(data: bytes | Iterable[bytes]) -> None:
    """Raise DocumentError when XML declares entities; pieces are taken until the root begins.

    For XML that another parser reads, such as the parts of an OOXML container.
    """
    parser = expat.ParserCreate()
    parser.EntityDeclHandler = _refuse
    parser.StartElementHandler = _stop
    try:
        for piece in [_utf8(data)] if isinstance(data, bytes) else data:
            parser.Parse(piece, False)
    except _RootReachedError:
        return
    except (expat.ExpatError, ValueError, LookupError):
        return  # whoever parses it will say what is wrong


class _RootReachedError(Exception):
    """Entities can be declared before the root only."""


def _refuse(*_: object) -> None:
    raise _entities()


def _stop(*_: object) -> None:
    raise _RootReachedError


def _entities() -> DocumentError:
    return DocumentError(
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
