"""Lines of text that OCR found in a picture: which of them were read, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

# Letters for each height of a line that its box is long: a line of capitals has 1, one of small
# print 3. A model that does not know an alphabet leaves its letters out: "Привет, мир" is ",".
_LEAST_LETTERS = 0.4  # RapidOCR has 0.2 in the middle line of a Russian page, Tesseract 1.5
_GAP = 1.3  # heights of a line between the cells of a row, as in a PDF; chosen, not measured
# Of each of two columns: fewer or shorter lines are cells of a table. Chosen, not measured.
_COLUMN_LINES, _COLUMN_LETTERS = 5, 20


class TextLine(NamedTuple):
    """Hold a line as an engine read it, how sure of it that is (0..1), and its box in pixels."""

    text: str
    confidence: float
    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        """Return the width of its box."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """Return the height of its box."""
        return max(self.bottom - self.top, 1.0)


def is_read(line: TextLine, least: float) -> bool:
    """Tell whether the text of a line is what stands there: sure enough, and not full of holes."""
    letters = sum(not sign.isspace() for sign in line.text)
    long = max(line.width, line.height) / min(line.width or 1.0, line.height)
    return line.confidence >= least and letters >= _LEAST_LETTERS * (long - 1)


def text_of_lines(lines: Sequence[TextLine]) -> str:
    """Return the text as it is read: columns one by one, the cells of a row parted by tabs."""
    left, right = _columns(lines)
    if right:
        return f"{text_of_lines(left)}\n\n{text_of_lines(right)}"
    rows: list[list[TextLine]] = []
    for line in sorted(left, key=lambda one: one.top + one.height / 2):
        middle = (line.top + line.bottom) / 2
        if rows and middle < max(one.bottom for one in rows[-1]) - line.height / 4:
            rows[-1].append(line)
        else:
            rows.append([line])
    heights = median(one.height for one in left) if left else 1.0
    written: list[str] = []
    for at, row in enumerate(rows):
        row.sort(key=lambda one: one.left)
        text = row[0].text
        for before, after in pairwise(row):
            text += ("\t" if after.left - before.right > _GAP * heights else " ") + after.text
        apart = at and row[0].top - max(one.bottom for one in rows[at - 1]) > _GAP * heights
        written += ["", text] if apart else [text]
    return "\n".join(written)


def _columns(lines: Sequence[TextLine]) -> tuple[list[TextLine], list[TextLine]]:
    """Part the lines at a gap from top to bottom that has prose on both sides, if there is one."""
    end = 0.0
    ordered = sorted(lines, key=lambda one: one.left)
    for at, line in enumerate(ordered):
        sides = ordered[:at], ordered[at:]
        if line.left > end and all(map(_is_column, sides)):
            return sides
        end = max(end, line.right)
    return ordered, []


def _is_column(lines: Sequence[TextLine]) -> bool:
    letters = sum(len(one.text) for one in lines)
    return len(lines) >= _COLUMN_LINES and letters >= _COLUMN_LETTERS * len(lines)
