"""What makes a plan valid (SPEC M7): each rule is one function with one message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

from core.errors import CallerError
from core.settings import Settings
from core.types import Plan, ToolSpec
from reasoning.planning.facts import (
    BrokenRule,
    Facts,
    Found,
    Rule,
    ancestors,
    problems,
    producers,
    shown,
    told,
    uses,
)
from reasoning.planning.slots import SLOT_NAME


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


HINT = "docs/reference/plans.md lists the rules of a plan"
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
        raise CallerError(told(problem), hint=HINT)
    return plan
