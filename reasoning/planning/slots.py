"""Slots of questions: `{name}` stands for a value that an earlier question finds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import NamedTuple

from core.errors import shorten
from core.operations import AnyOperation, ComposeQuery, FilledQuery, Register
from core.settings import Settings
from core.types import Finding, Plan, SubQuestion, ToolSpec

SLOT_NAME = re.compile(r"[^\W\d]\w{0,63}")
_PIECE = re.compile(r"\{\{|\}\}|\{([^\W\d]\w{0,63})\}")


def slots_in(text: str) -> list[str]:
    """Return the names of the slots a text uses, each once, in order."""
    return list(dict.fromkeys(name for name in _PIECE.findall(text) if name))


def filled(text: str, values: Mapping[str, str]) -> str:
    """Put values in the place of slots; a value is never read for slots itself.

    A slot without a value stays as it is written.
    """

    def put(piece: re.Match[str]) -> str:
        name = piece[1]
        if name is None:
            return piece[0][0]
        return values.get(name, piece[0])

    return _PIECE.sub(put, text)


def escaped(text: str) -> str:
    """Return the text such that `filled` gives it back and no slot is seen in it."""
    return text.replace("{", "{{").replace("}", "}}")


def literal(plan: Plan) -> Plan:
    """Return a plan without slots whose braces, typed by the person who asked, are only braces."""
    questions = [
        question.model_copy(
            update={"text": escaped(question.text), "query": escaped(question.query)}
        )
        for question in plan.questions
    ]
    return Plan(questions=questions)


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


def describe_problem(problem: BrokenRule) -> str:
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


ENDS = "?？.。! "
Chosen = Mapping[str, Sequence[FilledQuery]]


def plain_query(question: SubQuestion) -> FilledQuery:
    """Return the only way to ask a question without slots."""
    return FilledQuery(text=filled(question.text, {}), query=filled(question.query, {}))


def compose_queries(
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
        unknown = {slot: f"({described[slot]})" for slot in given if slot not in words}
        sought = {slot: described[slot] for slot in unknown}
        queries.append(
            FilledQuery(
                text=filled(question.text, words | unknown),
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
