"""A picture of a plan for the terminal: a box per question, rows by depth, arrows to what waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len, set_cell_size

from core.errors import shorten

if TYPE_CHECKING:
    from core.types import Plan, SubQuestion

WIDEST, NARROWEST, GAP = 32, 12, 2
UP, DOWN, LEFT, RIGHT = 1, 2, 4, 8
STROKES = " ╵╷│╴╯╮┤╶╰╭├─┴┬┼"  # by the sum of the sides a stroke touches


class _Place(NamedTuple):
    """Hold what stands in a row: a question's box, or the line of an arrow that passes by."""

    question: SubQuestion | None
    source: str  # the question whose arrow passes by, or the box's own
    target: str


def plan_picture(plan: Plan, width: int = 100) -> str:
    """Draw the questions of a valid plan, at most `width` columns wide where boxes allow it."""
    rows = _rows(plan)
    columns = max(len(row) for row in rows)
    box = max(NARROWEST, min(WIDEST, (width + GAP) // columns - GAP))
    lines: list[str] = []
    for depth, row in enumerate(rows):
        lines += _boxes(row, box)
        if depth + 1 < len(rows):
            starts, arrows = _arrows(row, rows[depth + 1], box)
            border = lines.pop()
            lines.append(
                "".join("┬" if x in starts and c == "─" else c for x, c in enumerate(border))
            )
            lines += arrows
    return "\n".join(line.rstrip() for line in lines)


def depths(plan: Plan) -> dict[str, int]:
    """Return how many questions, one after the other, must be answered before each."""
    found: dict[str, int] = {}
    while len(found) < len(plan.questions):
        for question in plan.questions:
            if question.id not in found and all(name in found for name in question.deps):
                found[question.id] = 1 + max((found[name] for name in question.deps), default=-1)
    return found


def _rows(plan: Plan) -> list[list[_Place]]:
    """Place every question at its depth, and in the rows between each arrow that passes by."""
    depth = depths(plan)
    rows: list[list[_Place]] = [[] for _ in range(1 + max(depth.values()))]
    for question in plan.questions:
        rows[depth[question.id]].append(_Place(question, question.id, ""))
        for name in question.deps:
            for between in range(depth[name] + 1, depth[question.id]):
                rows[between].append(_Place(None, name, question.id))
    return rows


def _boxes(row: Sequence[_Place], box: int) -> list[str]:
    cells = [_box(place, box) for place in row]
    return [(" " * GAP).join(cell[line] for cell in cells) for line in range(4)]


def _box(place: _Place, box: int) -> list[str]:
    inner, question = box - 2, place.question
    if question is None:
        enters, leaves = _enters(0, box), _leaves(0, box)
        line = set_cell_size(" " * enters + "│", box)
        turn = " " * leaves + "╭" + "─" * (enters - leaves - 1) + "╯"
        return [line, line, line, set_cell_size(turn, box)]
    title = question.id if question.slot is None else f"{question.id} → {question.slot}"
    return [
        f"╭{'─' * inner}╮",
        f"│{_fitted(title, inner)}│",
        f"│{_fitted(question.text, inner)}│",
        f"╰{'─' * inner}╯",
    ]


def _fitted(text: str, width: int) -> str:
    """Return a text on one line of exactly this many columns; a wide character fills two."""
    line = shorten(text, 4 * width)
    if cell_len(line) > width - 2:
        line = set_cell_size(line, width - 3).rstrip() + "…"
    return set_cell_size(f" {line}", width)


def _leaves(column: int, box: int) -> int:
    """Return where arrows leave; never below where they enter, so no two lines run into one."""
    return column * (box + GAP) + box // 2 - 1


def _enters(column: int, box: int) -> int:
    return column * (box + GAP) + box // 2 + 1


def _arrows(
    above: Sequence[_Place], below: Sequence[_Place], box: int
) -> tuple[set[int], list[str]]:
    """Draw the arrows between two rows, a level line for each place above that has any.

    Returns the columns they start at and the lines.
    """
    nets = [
        (
            _leaves(column, box),
            [_enters(n, box) for n, to in enumerate(below) if _joined(place, to)],
        )
        for column, place in enumerate(above)
    ]
    nets = [(start, ends) for start, ends in nets if ends]
    width = max(len(above), len(below)) * (box + GAP)
    strokes = [[0] * width for _ in range(len(nets))]
    for level, (start, ends) in enumerate(nets):
        _level(strokes[level], start, ends)
        for higher in strokes[:level]:
            higher[start] |= UP | DOWN
        for lower in strokes[level + 1 :]:
            for end in ends:
                lower[end] |= UP | DOWN
    drawn = ["".join(STROKES[sides] for sides in line) for line in strokes]
    reached = {end for _, ends in nets for end in ends}
    boxes = {_enters(n, box) for n, to in enumerate(below) if to.question is not None}
    tips = [" " if x not in reached else "▼" if x in boxes else "│" for x in range(width)]
    return {start for start, _ in nets}, [*drawn, "".join(tips)]


def _level(line: list[int], start: int, ends: Sequence[int]) -> None:
    line[start] |= UP
    for end in ends:
        line[end] |= DOWN
    first, last = min(start, *ends), max(start, *ends)
    for column in range(first, last + 1):
        line[column] |= (LEFT if column > first else 0) | (RIGHT if column < last else 0)


def _joined(place: _Place, to: _Place) -> bool:
    """Tell whether an arrow goes from one place to a place in the next row."""
    if to.question is None:
        same = place.question is None and (place.source, place.target) == (to.source, to.target)
        return same or (place.question is not None and place.source == to.source)
    if place.question is None:
        return place.target == to.question.id
    return place.source in to.question.deps
