"""A plan as a drawing: what each question waits for, and what a run found for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from core.display.drawing import draw
from core.display.markup import Markup
from core.display.shapes import Edge, Node
from core.trace import RunRecord
from core.types import Plan, SubQuestion

Fate = Literal["answered", "found", "failed", "unreached"]
FATES: dict[Fate, str] = {
    "answered": "✓ answered",
    "found": "✓ value found",
    "failed": "✗ not answered",
    "unreached": "– not searched",
}


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
    held: dict[str, Any] = run.result.get("plan") or {}
    return Plan(questions=[SubQuestion.model_validate(one) for one in held.get("questions", [])])


def outcome_of(run: RunRecord) -> Outcome:
    """Return what a run asked and found for each question of its plan."""
    held: dict[str, Any] = run.result.get("plan") or {}
    ids = [question.id for question in plan_of(run).questions]
    asked: dict[str, list[str]] = {}
    for one in held.get("asked", []):
        asked.setdefault(_question_of(one["id"], ids), []).append(one["text"])
    values: dict[str, list[str]] = {}
    for slot in held.get("slots", []):
        values.setdefault(slot["question"], []).append(slot["value"])
    answered = {_question_of(one["question_id"], ids) for one in run.result.get("claims", [])}
    reached = {step.question_id for step in run.trail}
    if len(ids) == 1:
        reached.add(ids[0])
    fates = {name: _fate(name, answered, values, reached) for name in ids}
    return Outcome(asked, values, fates)


def plan_drawing(plan: Plan, outcome: Outcome | None = None) -> Markup:
    """Draw a plan of at least one question: a box for each, arrows to what waits for it."""
    known = outcome or Outcome()
    nodes = [_box(question, known) for question in plan.questions]
    edges = [
        Edge(name, question.id)
        for question in plan.questions
        for name in dict.fromkeys(question.deps)
    ]
    count = len(nodes)
    described = "; ".join(_told(question, known) for question in plan.questions)
    title = "The plan: one question" if count == 1 else f"The plan: {count} questions"
    return draw(nodes, edges, title=title, description=described, kind="question")


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


def _box(question: SubQuestion, known: Outcome) -> Node:
    asked = known.asked.get(question.id) or [question.text]
    notes = [f"and {len(asked) - 1} more of this kind"] if len(asked) > 1 else []
    if found := known.values.get(question.id):
        notes.append(f"{question.slot} = {', '.join(found)}")
    fate = known.fates.get(question.id)
    if fate:
        notes.append(FATES[fate])
    return Node(
        question.id,
        heading=f"{question.id} → {question.slot}" if question.slot else question.id,
        text=asked[0],
        notes=tuple(notes),
        classes=(fate,) if fate else (),
        description=_told(question, known),
    )


def _told(question: SubQuestion, known: Outcome) -> str:
    asked = known.asked.get(question.id) or [question.text]
    parts = [f"{question.id}: {' / '.join(asked)}"]
    if question.deps:
        parts.append(f"after {', '.join(question.deps)}")
    if found := known.values.get(question.id):
        parts.append(f"{question.slot} = {', '.join(found)}")
    if fate := known.fates.get(question.id):
        parts.append(FATES[fate][2:])
    return ", ".join(parts)
