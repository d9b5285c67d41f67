"""What makes a list of operations valid: each rule is one function with one message."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from core.errors import CallerError
from core.operations import (
    ENTITY,
    AnyOperation,
    ComposeQuery,
    ExtractAnswer,
    Kind,
    MapRetrieve,
    Retrieve,
    Synthesize,
)
from core.settings import Settings
from core.tool_spec import ToolSpec
from core.types import Plan
from reasoning.planning.facts import shown
from reasoning.planning.slots import slots_in


class OperationProblem(NamedTuple):
    """Name a broken rule and the place, from 0, of the operation that breaks it; say it."""

    rule: str
    place: int
    message: str


class OperationFacts(NamedTuple):
    """Hold what rules look at; `plan` or `tools` is None where it is not known."""

    operations: Sequence[AnyOperation]
    settings: Settings
    plan: Plan | None
    tools: Sequence[ToolSpec] | None


Found = Iterator[tuple[int, str]]
OperationRule = Callable[[OperationFacts], Found]


def operation_count(facts: OperationFacts) -> Found:
    """A plan has at most `plan_operations` operations, the last a SYNTHESIZE and no other."""
    most, operations = facts.settings.plan_operations, facts.operations
    if len(operations) > most:
        yield most, f"a plan has at most {most} operations (plan_operations), not {len(operations)}"
    last = len(operations) - 1
    if not operations or not isinstance(operations[last], Synthesize):
        yield max(last, 0), "the last operation is SYNTHESIZE"
    for place, operation in enumerate(operations[:-1]):
        if isinstance(operation, Synthesize):
            yield place, "only the last operation is SYNTHESIZE"


def registers_written_once(facts: OperationFacts) -> Found:
    """No operation writes a register that is written already."""
    seen: set[str] = set()
    for place, operation in enumerate(facts.operations):
        if operation.out in seen:
            yield place, f"a register is written once, {shown(operation.out)} is already"
        seen.add(operation.out)


def registers_read(facts: OperationFacts) -> Found:
    """An operation reads what an earlier one wrote, of the kind it needs."""
    written: dict[str, Kind] = {}
    for place, operation in enumerate(facts.operations):
        for name, kind in operation.reads():
            if name not in written:
                yield place, f"{operation.op} reads register {shown(name)}, written by none above"
            elif written[name] != kind:
                yield (
                    place,
                    f"{operation.op} reads {kind}, register {shown(name)} holds {written[name]}",
                )
        written[operation.out] = operation.WRITES


def clamps(facts: OperationFacts) -> Found:
    """No operation asks for more than the settings allow."""
    for place, operation in enumerate(facts.operations):
        for field, setting in operation.CLAMPS.items():
            most = getattr(facts.settings, setting)
            if getattr(operation, field) > most:
                yield (
                    place,
                    f"{operation.op} has {field} of at most {most} ({setting}),"
                    f" not {getattr(operation, field)}",
                )


def templates_bound(facts: OperationFacts) -> Found:
    """A template uses slots that its operation gives."""
    for place, operation in enumerate(facts.operations):
        if isinstance(operation, ComposeQuery):
            for name in slots_in(operation.template):
                if name not in operation.values:
                    yield place, f"COMPOSE_QUERY has a register for each slot, none for {{{name}}}"
        elif isinstance(operation, MapRetrieve) and slots_in(operation.template) != [ENTITY]:
            yield place, f"the template of MAP_RETRIEVE uses {{{ENTITY}}} and no other slot"


def texts_fit(facts: OperationFacts) -> Found:
    """A search text holds 1 to `max_question_chars` characters."""
    most = facts.settings.max_question_chars
    for place, operation in enumerate(facts.operations):
        text = getattr(operation, "template", getattr(operation, "query", "-"))
        if isinstance(text, str) and not 1 <= len(text.strip()) <= most:
            yield (
                place,
                f"{operation.op} has a text of 1 to {most} characters (max_question_chars),"
                f" not {len(text.strip())}",
            )


def known_questions(facts: OperationFacts) -> Found:
    """Operations serve questions of the plan and their slots."""
    if facts.plan is None:
        return
    slots = {question.id: question.slot for question in facts.plan.questions}
    for place, operation in enumerate(facts.operations):
        named = operation.questions if isinstance(operation, Synthesize) else served(operation)
        for name in named:
            if name not in slots:
                yield place, f"{operation.op} names a question of the plan, {shown(name)} is none"
        if isinstance(operation, ExtractAnswer) and slots.get(operation.question) != operation.slot:
            yield (
                place,
                f"EXTRACT_ANSWER finds its question's slot, {shown(operation.slot)} is another",
            )


def every_question_searched(facts: OperationFacts) -> Found:
    """Every question of the plan is retrieved for."""
    searching = Retrieve | MapRetrieve
    searched = {op.question for op in facts.operations if isinstance(op, searching)}
    for question in facts.plan.questions if facts.plan else []:
        if question.id not in searched:
            yield 0, f"every question is searched for, {shown(question.id)} by no operation"


def known_tools(facts: OperationFacts) -> Found:
    """Searches name tools of the collection."""
    if facts.tools is None:
        return
    known = [spec.name for spec in facts.tools]
    for place, operation in enumerate(facts.operations):
        for name in getattr(operation, "tools", []):
            if name not in known:
                yield place, f"tools are known ones ({', '.join(known)}), {shown(name)} is none"


OPERATION_RULES: tuple[OperationRule, ...] = (
    *(operation_count, registers_written_once, registers_read, clamps),
    *(templates_bound, texts_fit, known_questions, every_question_searched, known_tools),
)


def operation_problems(
    operations: Sequence[AnyOperation],
    settings: Settings,
    plan: Plan | None = None,
    tools: Sequence[ToolSpec] | None = None,
) -> list[OperationProblem]:
    """Return every broken rule, in the order of OPERATION_RULES."""
    facts = OperationFacts(operations, settings, plan, tools)
    return [
        OperationProblem(rule.__name__, place, message)
        for rule in OPERATION_RULES
        for place, message in rule(facts)
    ]


def checked_operations(
    operations: Sequence[AnyOperation],
    settings: Settings,
    plan: Plan | None = None,
    tools: Sequence[ToolSpec] | None = None,
) -> list[AnyOperation]:
    """Return a valid list, or raise a CallerError with the first rule it breaks."""
    for problem in operation_problems(operations, settings, plan, tools):
        raise CallerError(f"operation {problem.place + 1}: {problem.message}", hint=HINT)
    return list(operations)


HINT = "docs/plans.md lists the operations and their limits"


def served(operation: AnyOperation) -> list[str]:
    """Return the question an operation works for, none where it joins several."""
    name = getattr(operation, "question", None)
    return [] if name is None else [name]
