"""Raised characters as Unicode has them: 10⁶ is not 106."""

from __future__ import annotations

_PLAIN = "0123456789+-\u2212=()n"
_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿ"
_TABLE = str.maketrans(_PLAIN, _RAISED)
_LONGEST = 8


def raised(text: str) -> str:
    """Return a short number as raised digits, any other text ("st", "[1]") as it is."""
    bare = text.strip()
    if len(bare) > _LONGEST or not any(c.isdecimal() for c in bare):
        return text
    return bare.translate(_TABLE) if all(c in _PLAIN for c in bare) else text
