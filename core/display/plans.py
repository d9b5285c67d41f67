"""Plans: the drawing of their questions, and the same in words."""

from __future__ import annotations

from core.display.html import folded
from core.display.markup import element, escaped, line
from core.display.plan_drawing import FATES, Outcome, plan_drawing
from core.display.view import View
from core.types import Plan, SubQuestion


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
