"""Formulas of Office in one line: x^2, (a+b)/(2c), √(b²−4ac)."""

from __future__ import annotations

from typing import Any

from ingest.loaders.raised import raised
from ingest.loaders.xml_tree import attribute, child, children, local_name

# Elements of lxml, which has no types.
Element = Any
_MAX_DEPTH = 40


def linear(element: Element | None, depth: int = 0) -> str:
    """Return the text of an OMML element, with signs for what stands above or below."""
    if element is None or depth > _MAX_DEPTH:
        return ""
    return "".join(_said(part, depth + 1) for part in element)


def _said(element: Element, depth: int) -> str:
    name = local_name(element)
    if name == "t":
        return element.text or ""
    if name.endswith("Pr"):
        return ""
    parts = {p: linear(child(element, p), depth) for p in ("e", "sub", "sup", "num", "den", "deg")}
    base, below, above = parts["e"], parts["sub"], parts["sup"]
    if name == "f":
        return f"{_grouped(parts['num'])}/{_grouped(parts['den'])}"
    if name in ("sSup", "sSub", "sSubSup"):
        return f"{base}{_below(below)}{_above(above)}"
    if name == "sPre":
        return f"{_below(below)}{_above(above)}{base}"
    if name == "rad":
        degree = parts["deg"].strip()
        return f"{'√' if degree in ('', '2') else raised(degree) + '√'}{_grouped(base)}"
    if name == "nary":
        return f"{_sign(element, 'chr', '∫')}{_below(below)}{_above(above)} {base}"
    if name in ("limLow", "limUpp"):
        limit = linear(child(element, "lim"), depth)
        return f"{base}{_below(limit) if name == 'limLow' else _above(limit)} "
    if name == "func":
        return f"{linear(child(element, 'fName'), depth)} {base}"
    return _rows(element, name, depth)


def _rows(element: Element, name: str, depth: int) -> str:
    if name == "d":
        inner = _sign(element, "sepChr", "|").join(linear(e, depth) for e in children(element, "e"))
        return f"{_sign(element, 'begChr', '(')}{inner}{_sign(element, 'endChr', ')')}"
    if name == "m":
        rows = (", ".join(linear(e, depth) for e in children(row, "e")) for row in element)
        return f"[{'; '.join(row for row in rows if row)}]"
    if name == "eqArr":
        return "; ".join(linear(e, depth) for e in children(element, "e"))
    return linear(element, depth)


def _sign(element: Element, name: str, default: str) -> str:
    properties = next((p for p in element if local_name(p).endswith("Pr")), None)
    found = child(properties, name)
    return default if found is None else attribute(found, "val")


def _grouped(text: str) -> str:
    text = text.strip()
    return text if text.isalnum() else f"({text})"


def _below(text: str) -> str:
    return f"_{_grouped(text)}" if text.strip() else ""


def _above(text: str) -> str:
    if not text.strip():
        return ""
    short = raised(text.strip())
    return short if short != text.strip() else f"^{_grouped(text)}"
