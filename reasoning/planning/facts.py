"""What a rule of plans or of operations looks at, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from core.errors import shorten
from core.operations import AnyOperation
from core.settings import Settings
from core.types import Plan, SubQuestion, ToolSpec
from reasoning.planning.slots import slots_in


class BrokenRule(NamedTuple):
    """Name a broken rule and say it in words.

    `where` is the id of the question that breaks it ("" for the plan), or the place of the
    operation that does, from 0.
    """

    rule: str
    where: str | int
    message: str


class Facts(NamedTuple):
    """Hold what rules look at; `tools` is None where they are not known."""

    plan: Plan
    settings: Settings
    tools: Sequence[ToolSpec] | None = None
    operations: Sequence[AnyOperation] = ()


Found = Iterator[tuple[str | int, str]]
Rule = Callable[[Facts], Found]


def problems(rules: Sequence[Rule], facts: Facts) -> Iterator[BrokenRule]:
    """Yield every broken rule, in the order of the rules."""
    for rule in rules:
        for where, message in rule(facts):
            yield BrokenRule(rule.__name__, where, message)


def told(problem: BrokenRule) -> str:
    """Return a problem as one line, with the question or operation it is about."""
    where = problem.where
    if isinstance(where, int):
        return f"operation {where + 1}: {problem.message}"
    return f"question {shown(where)}: {problem.message}" if where else problem.message


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
