"""Elements of HTML and SVG, built so that no text can become markup."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import NewType

Markup = NewType("Markup", str)

# What XML can not hold, and marks that would turn the direction of the text around them.
UNSAFE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]"
)


def clean(text: object) -> str:
    """Return a text without the characters that no document may hold."""
    return UNSAFE.sub("", str(text))


def line(text: object) -> str:
    """Return a text on one line, without the characters that no document may hold."""
    return " ".join(clean(text).split())


def escaped(text: object) -> Markup:
    """Return a text as markup that shows it, in content and in attributes."""
    return Markup(html.escape(clean(text), quote=True))


def element(tag: str, attributes: Mapping[str, object] | None = None, *children: Markup) -> Markup:
    """Return an element; attributes whose value is None or False are left out."""
    return Markup(f"{opening(tag, attributes)}{''.join(children)}</{tag}>")


def opening(tag: str, attributes: Mapping[str, object] | None = None) -> Markup:
    """Return the tag that opens an element."""
    given = (attributes or {}).items()
    written = [f' {name}="{escaped(_text(value))}"' for name, value in given if _is_set(value)]
    return Markup(f"<{tag}{''.join(written)}>")


def joined(*parts: Markup) -> Markup:
    """Return markup one after the other."""
    return Markup("".join(parts))


def _is_set(value: object) -> bool:
    return value is not None and value is not False and value != ""


def _text(value: object) -> str:
    """Write numbers short: coordinates of one decimal are exact enough for any screen."""
    if isinstance(value, float):
        return f"{round(value, 1) + 0.0:g}"  # + 0.0 makes a negative zero zero
    return str(value)
