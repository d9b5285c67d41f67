"""What a rule of plans looks at, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from core.errors import shorten
from core.settings import Settings
from core.tool_spec import ToolSpec
from core.types import Plan, SubQuestion
from reasoning.planning.slots import slots_in


class Problem(NamedTuple):
    """Name a broken rule, the question that breaks it ("" for the plan) and say it in words."""

    rule: str
    question_id: str
    message: str


class Facts(NamedTuple):
    """Hold what rules look at; `tools` is None where they are not known."""

    plan: Plan
    settings: Settings
    tools: Sequence[ToolSpec] | None


Found = Iterator[tuple[str, str]]
Rule = Callable[[Facts], Found]


def uses(question: SubQuestion) -> list[str]:
    """Return the slots that a question's text or query uses, each once, in order."""
    return list(dict.fromkeys(slots_in(question.text) + slots_in(question.query)))


def ancestors(plan: Plan, question_id: str) -> set[str]:
    """Return the ids of the questions that this one waits for, directly or over others."""
    deps = {question.id: question.deps for question in plan.questions}
    found: set[str] = set()
    waiting = list(deps.get(question_id, []))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += deps.get(name, [])
    return found


def producers(plan: Plan) -> list[tuple[SubQuestion, str]]:
    """Return the questions that find a slot, each with its name."""
    return [(question, question.slot) for question in plan.questions if question.slot is not None]


def shown(name: str) -> str:
    """Show a name in a message, on one line and in quotes."""
    return f"'{shorten(name, 64)}'"
