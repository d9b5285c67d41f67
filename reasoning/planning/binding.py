"""Fill the slots of questions with what was found for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice, product

from core.operations import ComposeQuery, FilledQuery, Register
from core.types import Finding, Plan, SubQuestion
from reasoning.planning.facts import producers, uses
from reasoning.planning.slots import filled

ENDS = "?？.。! "
Chosen = Mapping[str, Sequence[FilledQuery]]


def plain_query(question: SubQuestion) -> FilledQuery:
    """Return the only way to ask a question without slots."""
    return FilledQuery(text=filled(question.text, {}), query=filled(question.query, {}))


def composed(
    operation: ComposeQuery,
    plan: Plan,
    registers: Mapping[str, Register],
    settled: Mapping[str, Finding],
    fan_out: int,
) -> list[FilledQuery]:
    """Return one query for each combination of values, at most `fan_out`, best values first.

    A slot that a later search has settled keeps that value. One without any value is described by
    the search text of the question that should have found it.
    """
    question = plan.question(operation.question)
    described = {
        slot: filled(made.query, {}).strip().rstrip(ENDS) for made, slot in producers(plan)
    }
    choices = [
        _values(registers.get(name), settled.get(slot), fan_out) or [None]
        for slot, name in operation.values.items()
    ]
    queries = []
    for picked in islice(product(*choices), fan_out):
        given = dict(zip(operation.values, picked, strict=True))
        values = {slot: finding for slot, finding in given.items() if finding is not None}
        words = {slot: one_line(finding.value) for slot, finding in values.items()}
        told = {slot: f"({described[slot]})" for slot in given if slot not in words}
        sought = {slot: described[slot] for slot in told}
        queries.append(
            FilledQuery(
                text=filled(question.text, words | told),
                query=filled(operation.template, words | sought),
                values=values,
            )
        )
    return queries


def _values(
    register: Register | None, settled: Finding | None, fan_out: int
) -> list[Finding | None]:
    if settled is not None:
        return [settled]
    if register is None:
        return []
    return list(register.findings[register.skipped : register.skipped + fan_out])


def one_line(text: str) -> str:
    """Return a value without line breaks and repeated blanks."""
    return " ".join(text.split())


def bound(question: SubQuestion, query: FilledQuery, name: str = "") -> SubQuestion:
    """Return a question that asks with a filled query, under another id when `name` gives one.

    Its text and search text hold plain braces: nothing reads slots in them again.
    """
    update = {"text": query.text, "query": query.query, "id": name or question.id}
    return question.model_copy(update=update)


def branch_id(question_id: str, branch: int) -> str:
    """Return the id under which one of several answers of a question is kept."""
    return f"{question_id}.{branch + 1}"


def asks_each(plan: Plan, question: SubQuestion) -> bool:
    """Tell whether a question is asked of every value of a slot, as in "of each of the ten"."""
    listed = {slot for made, slot in producers(plan) if made.wants == "list"}
    return not listed.isdisjoint(uses(question))


def bound_plan(plan: Plan, chosen: Chosen) -> Plan:
    """Return the plan as it was asked: each question with the values that its answer rests on.

    A question asked of every value stands once for each; one that was never reached has its slots
    left as they are written.
    """
    questions: list[SubQuestion] = []
    for question in plan.questions:
        ways = list(chosen.get(question.id) or [plain_query(question)])
        if asks_each(plan, question) and question.id in chosen:
            questions += [
                bound(question, way, branch_id(question.id, place))
                for place, way in enumerate(ways)
            ]
        else:
            questions.append(bound(question, ways[0]))
    return Plan(questions=questions)
