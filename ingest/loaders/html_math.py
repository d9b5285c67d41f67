"""MathML in one line: as its author wrote it in TeX, otherwise with signs for its shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingest.loaders.raised import raised

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_MAX_DEPTH = 40
_HIDDEN = ("annotation", "annotation-xml", "mphantom")


def math_text(node: LexborNode) -> str:
    """Return the text of a <math> element."""
    said = node.attributes.get("alttext")
    if not said:
        source = node.css_first('annotation[encoding*="tex" i]')
        said = source.text(deep=True) if source is not None else ""
    return " ".join((said or _linear(node, 0)).split())


def _linear(node: LexborNode, depth: int) -> str:
    if depth > _MAX_DEPTH:
        return node.text(deep=True)
    parts = [
        _linear(child, depth + 1) if child.tag != "-text" else child.text_content or ""
        for child in node.iter(include_text=True)
        if child.tag not in _HIDDEN and child.tag != "_comment"
    ]
    parts = [part.strip() for part in parts if part.strip()]
    first, second, third = [*parts, "", "", ""][:3]
    match node.tag:
        case "mfrac":
            return f"{_grouped(first)}/{_grouped(second)}"
        case "msup" | "mover":
            return f"{first}{_above(second)}"
        case "msub" | "munder":
            return f"{first}_{_grouped(second)}"
        case "msubsup" | "munderover":
            return f"{first}_{_grouped(second)}{_above(third)}"
        case "msqrt":
            return f"√{_grouped(''.join(parts))}"
        case "mroot":
            return f"{raised(second)}√{_grouped(first)}"
        case "mtr":
            return ", ".join(parts)
        case "mtable":
            return f"[{'; '.join(parts)}]"
    return "".join(f" {part} " if part in ("=", "<", ">", "≤", "≥") else part for part in parts)


def _grouped(text: str) -> str:
    return text if text.isalnum() else f"({text})"


def _above(text: str) -> str:
    short = raised(text)
    return short if short != text else f"^{_grouped(text)}"
