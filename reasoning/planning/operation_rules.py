"""What makes a list of operations valid: each rule is one function with one message."""

from __future__ import annotations

from core.operations import (
    ENTITY,
    ComposeQuery,
    ExtractAnswer,
    Kind,
    MapRetrieve,
    Retrieve,
    Synthesize,
)
from reasoning.planning.facts import Facts, Found, Rule, shown
from reasoning.planning.slots import slots_in


def operation_count(facts: Facts) -> Found:
    """A plan has at most `plan.operations` operations, the last a SYNTHESIZE and no other."""
    most, operations = facts.settings.plan.operations, facts.operations
    if len(operations) > most:
        yield most, f"a plan has at most {most} operations (plan.operations), not {len(operations)}"
    last = len(operations) - 1
    if not operations or not isinstance(operations[last], Synthesize):
        yield max(last, 0), "the last operation is SYNTHESIZE"
    for place, operation in enumerate(operations[:-1]):
        if isinstance(operation, Synthesize):
            yield place, "only the last operation is SYNTHESIZE"


def registers_read(facts: Facts) -> Found:
    """A register is written once, and read after that, as what it is."""
    written: dict[str, Kind] = {}
    for place, operation in enumerate(facts.operations):
        for name, kind in operation.reads():
            held = f"register {shown(name)}"
            if name not in written:
                yield place, f"{operation.op} reads {held}, written by none above"
            elif written[name] != kind:
                yield place, f"{operation.op} reads {kind}, {held} holds {written[name]}"
        if operation.out in written:
            yield place, f"a register is written once, {shown(operation.out)} is already"
        written[operation.out] = operation.WRITES


def clamps(facts: Facts) -> Found:
    """No operation asks for more than the settings allow."""
    for place, operation in enumerate(facts.operations):
        for field, setting in operation.CLAMPS.items():
            asked, most = getattr(operation, field), facts.settings.value(setting)
            if asked > most:
                limit = f"{field} of at most {most} ({setting}), not {asked}"
                yield place, f"{operation.op} has {limit}"


def templates_bound(facts: Facts) -> Found:
    """A template uses slots that its operation gives."""
    for place, operation in enumerate(facts.operations):
        if isinstance(operation, ComposeQuery):
            for name in slots_in(operation.template):
                if name not in operation.values:
                    yield place, f"COMPOSE_QUERY has a register for each slot, none for {{{name}}}"
        elif isinstance(operation, MapRetrieve) and slots_in(operation.template) != [ENTITY]:
            yield place, f"the template of MAP_RETRIEVE uses {{{ENTITY}}} and no other slot"


def texts_fit(facts: Facts) -> Found:
    """A search text holds 1 to `max_question_chars` characters."""
    most = facts.settings.answering.max_question_chars
    for place, operation in enumerate(facts.operations):
        text = getattr(operation, "template", getattr(operation, "query", "-"))
        length = len(text.strip()) if isinstance(text, str) else 1
        if not 1 <= length <= most:
            limit = f"1 to {most} characters (answering.max_question_chars), not {length}"
            yield place, f"{operation.op} has a text of {limit}"


def known_questions(facts: Facts) -> Found:
    """Operations serve questions of the plan and their slots, and every question is searched."""
    slots = {question.id: question.slot for question in facts.plan.questions}
    searched: set[str] = set()
    for place, operation in enumerate(facts.operations):
        question = getattr(operation, "question", None)
        named = operation.questions if isinstance(operation, Synthesize) else [question]
        for name in named:
            if name is not None and name not in slots:
                yield place, f"{operation.op} names a question of the plan, {shown(name)} is none"
        if isinstance(operation, ExtractAnswer) and slots.get(operation.question) != operation.slot:
            other = f"{shown(operation.slot)} is another"
            yield place, f"EXTRACT_ANSWER finds its question's slot, {other}"
        if isinstance(operation, Retrieve | MapRetrieve):
            searched.add(operation.question)
    for name in slots:
        if name not in searched:
            yield 0, f"every question is searched for, {shown(name)} by no operation"


def known_tools(facts: Facts) -> Found:
    """Searches name tools of the collection."""
    if facts.tools is None:
        return
    known = [spec.name for spec in facts.tools]
    for place, operation in enumerate(facts.operations):
        for name in getattr(operation, "tools", []):
            if name not in known:
                yield place, f"tools are known ones ({', '.join(known)}), {shown(name)} is none"


OPERATION_RULES: tuple[Rule, ...] = (
    *(operation_count, registers_read, clamps),
    *(templates_bound, texts_fit, known_questions, known_tools),
)
