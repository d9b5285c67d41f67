"""Text in boxes: how wide it is, and where its lines break."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from core.display.markup import line

NARROW, WIDE = " iljtfrI.,:;|!'()[]", "mwMW@%—…→✓✗"
PIECES = re.compile(r"\s*\S+")


def text_width(text: str, size: float) -> float:
    """Return about how many pixels a line takes in a wide font of this size; never too few."""
    return size * sum(_share(character) for character in text)


def wrapped(text: str, size: float, width: float, most: int) -> list[str]:
    """Return the lines of a text, at most `most`; what is left out ends in an ellipsis.

    Lines break between words, and beside any character of a script without spaces.
    """
    lines: list[str] = []
    for piece in _pieces(line(text)):
        if lines and text_width(lines[-1] + piece, size) <= width:
            lines[-1] += piece
            continue
        rest = piece.strip() if lines else piece.lstrip()
        while text_width(rest, size) > width and len(rest) > 1:
            cut = _fits(rest, size, width)
            lines.append(rest[:cut])
            rest = rest[cut:]
        lines.append(rest)
    if len(lines) > most:
        last = lines[most - 1]
        while last and text_width(last + "…", size) > width:
            last = last[:-1]
        lines = [*lines[: most - 1], last.rstrip() + "…"]
    return lines


def widest(lines: Sequence[str], size: float) -> float:
    """Return the width of the widest line, 0 for none."""
    return max((text_width(one, size) for one in lines), default=0.0)


def _fits(text: str, size: float, width: float) -> int:
    cut = 1
    while cut < len(text) and text_width(text[: cut + 1], size) <= width:
        cut += 1
    return cut


def _pieces(text: str) -> list[str]:
    """Return what may not be broken: words with the space before them, and wide characters."""
    found: list[str] = []
    for word in PIECES.findall(text):
        piece = ""
        for character in word:
            wide = unicodedata.east_asian_width(character) in "WF"
            if wide and piece.strip() and unicodedata.category(character)[0] != "P":
                found.append(piece)
                piece = ""
            piece += character
            if wide and unicodedata.category(character) not in ("Ps", "Pi"):
                held = piece
                piece = ""
                if unicodedata.category(character)[0] == "P" and found and held == character:
                    found[-1] += held  # a mark does not begin a line
                else:
                    found.append(held)
        if piece:
            found.append(piece)
    return found


def _share(character: str) -> float:
    """Return the width of a character in ems."""
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.02
    if character in WIDE:
        return 1.0
    if character in NARROW:
        return 0.4
    return 0.74 if character.isupper() else 0.62
