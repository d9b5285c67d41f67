"""Where a text may be cut without tearing a visible character or a word apart."""

from __future__ import annotations

import unicodedata

_ZERO_WIDTH_JOINER = "\u200d"
_FLAGS = range(0x1F1E6, 0x1F200)
_SKIN_TONES = range(0x1F3FB, 0x1F400)
# Longer runs of marks are not writing; a cut inside them harms nobody.
_REACH = 32


def is_torn(text: str, place: int) -> bool:
    """Tell whether a cut before text[place] would tear a visible character apart.

    This follows the rules of Unicode Annex 29 that occur in text: combining marks, joiners,
    variation selectors, skin tones, flags, and a carriage return with its line feed.
    """
    if not 0 < place < len(text):
        return False
    before, after = text[place - 1], text[place]
    if before.isascii() and after.isascii():
        return before == "\r" and after == "\n"
    if after == _ZERO_WIDTH_JOINER or before == _ZERO_WIDTH_JOINER:
        return True
    if unicodedata.category(after).startswith("M") or ord(after) in _SKIN_TONES:
        return True
    return ord(after) in _FLAGS and _flags_before(text, place) % 2 == 1


def _flags_before(text: str, place: int) -> int:
    """Count the regional indicators directly before a place; two of them are one flag."""
    first = place
    while first > 0 and ord(text[first - 1]) in _FLAGS:
        first -= 1
    return place - first


def last_boundary(text: str, start: int, stop: int) -> int:
    """Return the last place in (start, stop] to cut: at a space, else between characters."""
    if stop >= len(text):
        return len(text)
    for place in range(stop, start, -1):
        if text[place].isspace() or text[place - 1].isspace():
            return place
    for place in range(stop, max(start, stop - _REACH), -1):
        if not is_torn(text, place):
            return place
    return stop


def first_boundary(text: str, start: int, stop: int) -> int:
    """Return the first place in [start, stop) to begin at: after a space, else a character."""
    for place in range(start, stop):
        if place == 0 or text[place - 1].isspace():
            return place
    for place in range(start, min(stop, start + _REACH)):
        if not is_torn(text, place):
            return place
    return stop
