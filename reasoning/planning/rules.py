"""The rules that a plan and its operations must keep; a proposed plan is taken only so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

from core.errors import CallerError
from core.operations import (
    ENTITY,
    ComposeQuery,
    ExtractAnswer,
    Kind,
    MapRetrieve,
    Retrieve,
    Synthesize,
)
from core.settings import Settings
from core.types import Part, Plan, SubQuestion, ToolSpec, Understanding
from reasoning.planning.slots import (
    SLOT_NAME,
    BrokenRule,
    Facts,
    Found,
    Rule,
    ancestors,
    describe_problem,
    escaped,
    literal,
    problems,
    producers,
    shown,
    slots_in,
    uses,
)
from reasoning.types import Reasoner


def question_count(facts: Facts) -> Found:
    """A plan has 1 to `max_sub_questions` questions."""
    most, questions = facts.settings.answering.max_sub_questions, facts.plan.questions
    if not 1 <= len(questions) <= most:
        first = questions[most].id if questions else ""
        yield (
            first,
            f"a plan has 1 to {most} questions (answering.max_sub_questions), not {len(questions)}",
        )


def unique_ids(facts: Facts) -> Found:
    """Every question has an id of its own."""
    for name, times in Counter(q.id for q in facts.plan.questions).items():
        if not name.strip():
            yield name, "every question has an id"
        if times > 1:
            yield name, f"every question has an id of its own; {times} are called {shown(name)}"


def dependencies(facts: Facts) -> Found:
    """A question depends on at most `plan.in_degree` others of the plan, on each once."""
    known, most = {q.id for q in facts.plan.questions}, facts.settings.plan.in_degree
    for question in facts.plan.questions:
        for name, times in Counter(question.deps).items():
            if name not in known:
                yield question.id, f"deps name questions of the plan, {shown(name)} is none"
            if times > 1:
                yield question.id, f"deps name a question once, {shown(name)} is named again"
        if question.id in question.deps:
            yield question.id, "a question does not depend on itself"
        count = len(set(question.deps))
        if count > most:
            rule = f"a question depends on at most {most} others (plan.in_degree), not {count}"
            yield question.id, rule


def no_cycle(facts: Facts) -> Found:
    """No question waits, over others, for itself."""
    deps = {q.id: [one for one in q.deps if one != q.id] for q in facts.plan.questions}
    try:
        TopologicalSorter(deps).prepare()
    except CycleError as error:
        # It leads from what is waited for to what waits.
        cycle = list(reversed(error.args[1]))
        yield cycle[0], f"deps form no cycle: {' → '.join(map(shown, cycle))}"


def slots_defined(facts: Facts) -> Found:
    """A slot has a plain name, is found by one question alone, and used by another."""
    seen: set[str] = set()
    used = {name for question in facts.plan.questions for name in uses(question)}
    for question, slot in producers(facts.plan):
        if not SLOT_NAME.fullmatch(slot):
            named = f"a slot is called by letters, digits and _ (at most 64), not {shown(slot)}"
            yield question.id, named
        elif slot in seen:
            yield question.id, f"a slot is found by one question, {{{slot}}} is by another already"
        elif slot not in used:
            yield question.id, f"a slot is used by another question, {{{slot}}} by none"
        seen.add(slot)


def slots_downstream(facts: Facts) -> Found:
    """A slot is used only by questions that depend, also over others, on the one that finds it."""
    found_by = {slot: question.id for question, slot in producers(facts.plan)}
    for question in facts.plan.questions:
        above = ancestors(facts.plan, question.id)
        for name in uses(question):
            if name not in found_by:
                rule = f"a slot that is used is found by a question, {{{name}}} by none"
                yield question.id, f"{rule} (for plain braces write {{{{ and }}}})"
            elif found_by[name] not in above:
                needed = f"{{{name}}} needs {shown(found_by[name])} among the deps"
                yield question.id, f"a slot is used downstream of its question: {needed}"


def texts_fit(facts: Facts) -> Found:
    """Text and query hold a letter or digit and at most `max_question_chars` characters."""
    most = facts.settings.answering.max_question_chars
    for question in facts.plan.questions:
        for name, text in (("text", question.text), ("query", question.query)):
            if not any(character.isalnum() for character in text):
                yield question.id, f"a question's {name} holds at least one word"
            if len(text) > most:
                limit = f"at most {most} characters (answering.max_question_chars), not {len(text)}"
                yield question.id, f"a question's {name} has {limit}"


def known_tools(facts: Facts) -> Found:
    """Calls name tools of the collection, and arguments that these have."""
    if facts.tools is None:
        return
    known = {spec.name: spec for spec in facts.tools}
    for question in facts.plan.questions:
        for call in question.calls:
            spec = known.get(call.tool)
            if spec is None:
                names = ", ".join(known)
                yield question.id, f"calls name known tools ({names}), not {shown(call.tool)}"
                continue
            for name in sorted(call.arguments.keys() - spec.arguments.get("properties", {}).keys()):
                yield question.id, f"tool {spec.name} has no argument {shown(name)}"


HINT = "correct it; `carrel plan QUESTION --json` writes a plan to begin with"
RULES: tuple[Rule, ...] = (
    *(question_count, unique_ids, dependencies, no_cycle),
    *(slots_defined, slots_downstream, texts_fit, known_tools),
)


def first_problem(
    plan: Plan, settings: Settings, tools: Sequence[ToolSpec] | None = None
) -> BrokenRule | None:
    """Return the first broken rule in the order of RULES, None for a valid plan.

    `tools` None leaves the calls unchecked.
    """
    return next(problems(RULES, Facts(plan, settings, tools)), None)


def checked(plan: Plan, settings: Settings, tools: Sequence[ToolSpec] | None = None) -> Plan:
    """Return a valid plan, or raise a CallerError with the first rule it breaks."""
    problem = first_problem(plan, settings, tools)
    if problem is not None:
        raise CallerError(describe_problem(problem), hint=HINT)
    return plan


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
    note = f"the question is one step, since its plan was not valid: {describe_problem(problem)}"
    part = one_part(understanding)
    single = _read(reasoner.plan(part, tools))
    if first_problem(single, settings, tools) is None and len(single.questions) == 1:
        return single, [note]
    text = escaped(understanding.question)
    bare = SubQuestion(
        id="q1",
        text=text,
        query=text,
        language=understanding.language,
        wants=part.required_fields[0],
    )
    return checked(Plan(questions=[bare]), settings, tools), [note]


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
            label = f"register {shown(name)}"
            if name not in written:
                yield place, f"{operation.op} reads {label}, written by none above"
            elif written[name] != kind:
                yield place, f"{operation.op} reads {kind}, {label} holds {written[name]}"
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


def search_texts_fit(facts: Facts) -> Found:
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


def searched_tools(facts: Facts) -> Found:
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
    *(templates_bound, search_texts_fit, known_questions, searched_tools),
)
