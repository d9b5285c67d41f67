"""A plan as a drawing: what each question waits for, and what a run found for it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from core.trace import RunRecord
from core.types import Plan, SubQuestion
from display.html import Markup, View, element, escaped, folded, joined, line

Link = tuple[str, str]  # what is waited for, and what waits

GAP, BETWEEN = 22.0, 38.0  # between boxes of a row, and between rows
LANE = 14.0  # the width that an arrow takes where it passes a row


class Box(NamedTuple):
    """A rectangle by its middle and its size; x grows to the right and y downwards, in pixels."""

    x: float
    y: float
    width: float
    height: float

    @property
    def top(self) -> tuple[float, float]:
        """Return the middle of the upper side."""
        return self.x, self.y - self.height / 2

    @property
    def bottom(self) -> tuple[float, float]:
        """Return the middle of the lower side."""
        return self.x, self.y + self.height / 2


def ranks(names: Sequence[str], links: Sequence[Link]) -> dict[str, int]:
    """Return how many questions, one after the other, are answered before each."""
    found = dict.fromkeys(names, 0)
    for _ in names:  # so often at most, even where a record that is not ours has a loop
        for source, target in links:
            found[target] = max(found[target], min(found[source] + 1, len(names) - 1))
    return found


def place(
    sizes: Mapping[str, tuple[float, float]], links: Sequence[Link]
) -> tuple[dict[str, Box], dict[Link, list[Box]]]:
    """Return the box of each name, and for each link the boxes it goes through from end to end.

    Where a link passes a row it has a lane of its own there, so that it crosses no box.
    """
    rank = ranks(list(sizes), links)
    rows: list[list[str | Link]] = [[] for _ in range(1 + max(rank.values()))]
    lanes = {link: range(rank[link[0]] + 1, rank[link[1]]) for link in links}
    for name in sizes:
        rows[rank[name]].append(name)
    for link, passed in lanes.items():
        for number in passed:
            rows[number].append(link)
    boxes: dict[tuple[str | Link, int], Box] = {}
    top = 0.0
    for number, row in enumerate(rows):
        # A parent's place draws what follows it: fewer arrows cross.
        row.sort(key=lambda one: _wanted(one, number, links, boxes))
        high = max((sizes[one][1] for one in row if isinstance(one, str)), default=LANE)
        wide = [sizes[one][0] if isinstance(one, str) else LANE for one in row]
        left = -(sum(wide) + GAP * (len(row) - 1)) / 2
        for one, width in zip(row, wide, strict=True):
            own = sizes[one][1] if isinstance(one, str) else high
            boxes[one, number] = Box(left + width / 2, top + high / 2, width, own)
            left += width + GAP
        top += high + BETWEEN
    named = {name: boxes[name, rank[name]] for name in sizes}
    through = {
        link: [named[link[0]], *(boxes[link, number] for number in passed), named[link[1]]]
        for link, passed in lanes.items()
    }
    return named, through


def _wanted(
    one: str | Link, row: int, links: Sequence[Link], boxes: Mapping[tuple[str | Link, int], Box]
) -> float:
    """Return the mean x of what leads to a place from the row above; 0 is the middle."""
    own = [link for link in links if link[1] == one] if isinstance(one, str) else [one]
    above = [
        boxes[key].x
        for link in own
        for key in ((link, row - 1), (link[0], row - 1))
        if key in boxes
    ]
    return sum(above) / len(above) if above else 0.0


NARROW, WIDE = " iljtfrI.,:;|!'()[]", "mwMW@%—…→✓✗"
HAN = "\u2e80-\u2fff\u3041-\u9fff\uac00-\ud7af\uf900-\ufaff"
# What may not be broken, with the space before: words, and characters of scripts without spaces
# with the marks around them.
PIECES = re.compile(rf"\s*(?:[^\s\w]*[{HAN}][^\s\w]*|[^\s{HAN}]+)")


def text_width(text: str, size: float) -> float:
    """Return about how many pixels a line takes in a wide font of this size; never too few."""
    return size * sum(_share(character) for character in text)


def wrapped(text: str, size: float, width: float, most: int) -> list[str]:
    """Return the lines of a text, at most `most`; what is left out ends in an ellipsis.

    Lines break between words, and beside any character of a script without spaces.
    """
    lines: list[str] = []
    for piece in PIECES.findall(line(text)):
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


def _fits(text: str, size: float, width: float) -> int:
    cut = 1
    while cut < len(text) and text_width(text[: cut + 1], size) <= width:
        cut += 1
    return cut


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


Fate = Literal["answered", "found", "failed", "unreached"]
FATES: dict[Fate, str] = {
    "answered": "✓ answered",
    "found": "✓ value found",
    "failed": "✗ not answered",
    "unreached": "– not searched",
}

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif"
# In pixels, chosen by eye, as are the gaps above.
SIZE, SMALL, LEADING = 13.0, 11.0, 17.0
PADDING, MARGIN, HEAD, WIDEST = 11.0, 12.0, 7.0, 230.0
BOLD = 1.06  # how much wider a bold line is
DASHES = {"failed": "6 4", "unreached": "1.5 4"}
STROKE: dict[str, object] = {"fill": "none", "stroke": "currentColor", "stroke-width": 1.2}


@dataclass(frozen=True)
class Outcome:
    """Hold what a run made of a plan, by question id; all empty before it runs.

    `asked` has the texts with their values, several for a question that was asked of each value.
    """

    asked: Mapping[str, Sequence[str]] = field(default_factory=dict)
    values: Mapping[str, Sequence[str]] = field(default_factory=dict)
    fates: Mapping[str, Fate] = field(default_factory=dict)


def plan_of(run: RunRecord) -> Plan:
    """Return the plan that a run carried out; it has no question when the run ended before."""
    plan: dict[str, Any] = run.result.get("plan") or {}
    return Plan(questions=[SubQuestion.model_validate(one) for one in plan.get("questions", [])])


def outcome_of(run: RunRecord) -> Outcome:
    """Return what a run asked and found for each question of its plan."""
    plan: dict[str, Any] = run.result.get("plan") or {}
    ids = [question.id for question in plan_of(run).questions]
    asked: dict[str, list[str]] = {}
    for one in plan.get("asked", []):
        asked.setdefault(_question_of(one["id"], ids), []).append(one["text"])
    values: dict[str, list[str]] = {}
    for slot in plan.get("slots", []):
        values.setdefault(slot["question"], []).append(slot["value"])
    answered = {_question_of(one["question_id"], ids) for one in run.result.get("claims", [])}
    reached = {step.question_id for step in run.trail}
    if len(ids) == 1:
        reached.add(ids[0])
    fates = {name: _fate(name, answered, values, reached) for name in ids}
    return Outcome(asked, values, fates)


def plan_drawing(plan: Plan, outcome: Outcome | None = None) -> Markup:
    """Draw a plan of at least one question: a box for each, arrows to what waits for it.

    A box is `<g class="node" data-question="ID">`, an arrow `<path class="edge" data-from data-to>`
    with a `<path class="arrow">` for its head. Colours are those of the page around it.
    """
    known = outcome or Outcome()
    boxes = {one.id: _lines(one, known) for one in plan.questions}
    links = [
        (name, one.id)
        for one in plan.questions
        for name in dict.fromkeys(one.deps)
        if name in boxes
    ]
    placed, through = place({name: _size(lines) for name, lines in boxes.items()}, links)
    drawn = [arrow(link, way) for link, way in through.items()]
    drawn += [_box(one, boxes[one.id], placed[one.id], known) for one in plan.questions]
    count = len(plan.questions)
    described = "; ".join(_question_text(question, known) for question in plan.questions)
    title = "The plan: one question" if count == 1 else f"The plan: {count} questions"
    every = [*placed.values(), *(box for way in through.values() for box in way)]
    return picture(drawn, every, title, described)


def _question_of(name: str, ids: Sequence[str]) -> str:
    """Return the question that an id stands for: one asked of each value has ids like q2.1."""
    return name if name in ids else name.rpartition(".")[0]


def _fate(
    name: str, answered: set[str], values: Mapping[str, Sequence[str]], reached: set[str]
) -> Fate:
    if name in answered:
        return "answered"
    if values.get(name):
        return "found"
    return "failed" if name in reached else "unreached"


def _lines(question: SubQuestion, known: Outcome) -> list[tuple[str, dict[str, str]]]:
    asked = known.asked.get(question.id) or [question.text]
    notes = [f"and {len(asked) - 1} more of this kind"] if len(asked) > 1 else []
    if found := known.values.get(question.id):
        notes.append(f"{question.slot} = {', '.join(found)}")
    if fate := known.fates.get(question.id):
        notes.append(FATES[fate])
    heading = f"{question.id} → {question.slot}" if question.slot else question.id
    small = {"font-size": f"{SMALL:g}", "fill-opacity": "0.75"}
    return [
        *((one, {"font-weight": "600"}) for one in wrapped(heading, SIZE * BOLD, WIDEST, 2)),
        *((one, {}) for one in wrapped(asked[0], SIZE, WIDEST, 6)),
        *((one, small) for note in notes for one in wrapped(note, SMALL, WIDEST, 2)),
    ]


def _size(lines: Sequence[tuple[str, dict[str, str]]]) -> tuple[float, float]:
    size = {True: SIZE * BOLD, False: SIZE}
    widths = [
        text_width(text, SMALL if "font-size" in how else size["font-weight" in how])
        for text, how in lines
    ]
    return max(widths) + 2 * PADDING, len(lines) * LEADING + 2 * PADDING - 5


def _box(
    question: SubQuestion, lines: Sequence[tuple[str, dict[str, str]]], box: Box, known: Outcome
) -> Markup:
    fate = known.fates.get(question.id)
    left, top = box.x - box.width / 2, box.y - box.height / 2
    frame = {"x": left, "y": top, "width": box.width, "height": box.height, "rx": 8}
    rect = element("rect", frame | STROKE | {"stroke-dasharray": DASHES.get(fate or "")})
    x, first = left + PADDING, top + PADDING + SIZE - 4
    texts = [
        element(
            "text", {"x": x, "y": first + n * LEADING, "fill": "currentColor", **how}, escaped(one)
        )
        for n, (one, how) in enumerate(lines)
    ]
    title = element("title", {}, escaped(_question_text(question, known)))
    kind = f"node {fate}" if fate else "node"
    return element("g", {"class": kind, "data-question": question.id}, title, rect, *texts)


def arrow(link: Link, way: Sequence[Box], dashes: str = "") -> Markup:
    """Draw a curve that leaves and arrives vertically, and is straight where it passes a row."""
    ends = {"data-from": link[0], "data-to": link[1]}
    stroke = STROKE | ({"stroke-dasharray": dashes} if dashes else {})
    (x, y), (tip_x, tip_y) = way[0].bottom, way[-1].top
    curve = f"M{x:.1f},{y:.1f}"
    for box in way[1:]:
        to_x, to_y = box.top
        to_y -= HEAD if box is way[-1] else 0.0
        middle = (y + to_y) / 2
        curve += f" C{x:.1f},{middle:.1f} {to_x:.1f},{middle:.1f} {to_x:.1f},{to_y:.1f}"
        x, y = box.bottom
        if box is not way[-1]:
            curve += f" L{x:.1f},{y:.1f}"
    head = f"M{tip_x:.1f},{tip_y:.1f} l{-HEAD / 2:.1f},{-HEAD:.1f} h{HEAD:.1f} Z"
    return joined(
        element("path", {"class": "edge", **ends, "d": curve} | stroke),
        element("path", {"class": "arrow", **ends, "d": head, "fill": "currentColor"}),
    )


def picture(drawn: Sequence[Markup], boxes: Sequence[Box], title: str, description: str) -> Markup:
    """Return the drawing of boxes and arrows, as large as they are."""
    left = min(box.x - box.width / 2 for box in boxes) - MARGIN
    right = max(box.x + box.width / 2 for box in boxes) + MARGIN
    top = min(box.top[1] for box in boxes) - MARGIN
    bottom = max(box.bottom[1] for box in boxes) + MARGIN
    width, height = right - left, bottom - top
    attributes: dict[str, object] = {
        "xmlns": "http://www.w3.org/2000/svg",
        "class": "drawing",
        "role": "img",
        "aria-label": title,
        "viewBox": f"{left:.0f} {top:.0f} {width:.0f} {height:.0f}",
        "width": f"{width:.0f}",
        "height": f"{height:.0f}",
        "font-family": FONT,
        "font-size": f"{SIZE:g}",
    }
    texts = (element("title", {}, escaped(title)), element("desc", {}, escaped(description)))
    return element("svg", attributes, *texts, *drawn)


def _question_text(question: SubQuestion, known: Outcome) -> str:
    asked = known.asked.get(question.id) or [question.text]
    parts = [f"{question.id}: {' / '.join(asked)}"]
    if question.deps:
        parts.append(f"after {', '.join(question.deps)}")
    if found := known.values.get(question.id):
        parts.append(f"{question.slot} = {', '.join(found)}")
    if fate := known.fates.get(question.id):
        parts.append(FATES[fate][2:])
    return ", ".join(parts)


def plan_view(plan: Plan, outcome: Outcome | None = None) -> View:
    """Show the questions of a plan, with what a run found for them when it is given."""
    if not plan.questions:
        return View(element("p", {}, escaped("no plan was made")), "no plan was made")
    known = outcome or Outcome()
    count = len(plan.questions)
    title = f"Plan: {count} question{'s' if count > 1 else ''}"
    drawn = plan_drawing(plan, outcome)
    text = "\n".join(_line(question, known) for question in plan.questions)
    return View(folded(title, drawn), text)


def _line(question: SubQuestion, known: Outcome) -> str:
    asked = known.asked.get(question.id) or [question.text]
    parts = [f"{question.id}: {' / '.join(line(one) for one in asked)}"]
    if question.deps:
        parts.append(f"after {', '.join(question.deps)}")
    if question.slot:
        found = ", ".join(known.values.get(question.id, []))
        parts.append(f"{question.slot} = {found}" if found else f"finds {question.slot}")
    if fate := known.fates.get(question.id):
        parts.append(FATES[fate])
    return " · ".join(parts)
