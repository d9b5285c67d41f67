"""Ask a reasoner for a plan and take it only when it is valid; else the question is one step."""

from __future__ import annotations

from collections.abc import Sequence

from core.settings import Settings
from core.types import Part, Plan, SubQuestion, ToolSpec, Understanding
from reasoning.planning.rules import checked, first_problem
from reasoning.planning.slots import escaped, literal, told
from reasoning.types import Reasoner


def proposed_plan(
    reasoner: Reasoner, understanding: Understanding, tools: Sequence[ToolSpec], settings: Settings
) -> tuple[Plan, list[str]]:
    """Return a valid plan and what a reader should know of it.

    A plan that breaks a rule is never used in part: the whole question becomes its only step. When
    that is not valid either, it names no tools, and the run chooses them.
    """
    plan = _read(reasoner.plan(understanding, tools))
    plan = plan.model_copy(update={"whole": understanding.question})
    problem = first_problem(plan, settings, tools)
    if problem is None:
        return plan, []
    note = f"the question is one step, since its plan was not valid: {told(problem)}"
    whole = _read(reasoner.plan(one_part(understanding), tools))
    if first_problem(whole, settings, tools) is None and len(whole.questions) == 1:
        return whole, [note]
    return checked(_bare(understanding), settings, tools), [note]


def _bare(understanding: Understanding) -> Plan:
    """Return the question as one step whose tools the run chooses."""
    part = one_part(understanding)
    text = escaped(understanding.question)
    question = SubQuestion(
        id="q1",
        text=text,
        query=text,
        language=understanding.language,
        wants=part.required_fields[0],
    )
    return Plan(questions=[question])


def one_part(understanding: Understanding) -> Understanding:
    """Return the same question as one part."""
    wants = understanding.required_fields[:1] or ["text"]
    update = {
        "kind": "plain",
        "confidence": 1.0,
        "parts": [Part(text=understanding.question)],
        "required_fields": wants,
    }
    return understanding.model_copy(update=update)


def _read(plan: Plan) -> Plan:
    """Without any slot a brace is what the person who asks has typed."""
    finds_slots = any(question.slot is not None for question in plan.questions)
    return plan if finds_slots else literal(plan)
