"""What a reader can make out of a text by its colour, its paper and its size, in any format."""

from __future__ import annotations

import re
from typing import NamedTuple

from tinycss2.color4 import parse_color

MIN_POINTS = 2.0  # of letters that can be read; chosen, not measured
# The least contrast of letters with their paper that an eye finds: #eee on white has 1.16, and the
# palest grey that pages write with, #ddd, 1.36; chosen, not measured.
MIN_CONTRAST = 1.2


class Colour(NamedTuple):
    """Hold red, green and blue, and how much of it covers what is below; each 0 to 1."""

    red: float
    green: float
    blue: float
    alpha: float = 1.0

    def over(self, paper: Colour) -> Colour:
        """Return the colour that is seen where this one lies on an opaque one."""
        mixed = (
            self.alpha * a + (1 - self.alpha) * b for a, b in zip(self[:3], paper, strict=False)
        )
        return Colour(*mixed)


BLACK, WHITE = Colour(0, 0, 0), Colour(1, 1, 1)


def colour_of(written: str) -> Colour | None:
    """Read a colour as CSS and office documents write it, None for what is none that is known."""
    bare = re.fullmatch(r"(?:[0-9a-f]{2})?([0-9a-f]{6})", written.strip(), re.I)
    try:
        found = parse_color(f"#{bare[1]}" if bare else written)
        if found is None or found == "currentcolor":
            return None
        red, green, blue = (min(1.0, max(0.0, one or 0)) for one in found.to("srgb").coordinates)
    except (NotImplementedError, ValueError, TypeError):  # a colour space that is not converted
        return None
    return Colour(red, green, blue, float(found.alpha))


def is_legible(ink: Colour | None, paper: Colour | None, points: float | None = None) -> bool:
    """Tell whether letters can be read; what is not known (None) is taken to be so."""
    if points is not None and points < MIN_POINTS:
        return False
    if ink is None or paper is None:
        return True
    low, high = sorted(map(_luminance, (ink.over(paper), paper)))
    return (high + 0.05) / (low + 0.05) >= MIN_CONTRAST  # WCAG 2.2: from 1 to 21


def _luminance(colour: Colour) -> float:
    """Return the relative luminance of WCAG 2.2."""
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in colour[:3]]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
