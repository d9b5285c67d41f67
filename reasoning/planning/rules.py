"""What makes a plan valid (SPEC M7): each rule is one function with one message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from core.errors import CallerError
from core.settings import Settings
from core.tool_spec import ToolSpec
from core.types import Plan
from reasoning.planning.facts import Facts, Found, Problem, Rule, shown
from reasoning.planning.slot_rules import (
    slot_names,
    slots_defined,
    slots_defined_once,
    slots_downstream,
    slots_used,
)


def question_count(facts: Facts) -> Found:
    """A plan has 1 to `max_sub_questions` questions."""
    most, questions = facts.settings.max_sub_questions, facts.plan.questions
    if not 1 <= len(questions) <= most:
        first = questions[most].id if questions else ""
        yield first, f"a plan has 1 to {most} questions (max_sub_questions), not {len(questions)}"


def unique_ids(facts: Facts) -> Found:
    """Every question has an id of its own."""
    for name, times in Counter(q.id for q in facts.plan.questions).items():
        if not name.strip():
            yield name, "every question has an id"
        if times > 1:
            yield name, f"every question has an id of its own; {times} are called {shown(name)}"


def known_dependencies(facts: Facts) -> Found:
    """A question depends on questions of the plan, on each once."""
    known = {q.id for q in facts.plan.questions}
    for question in facts.plan.questions:
        for name, times in Counter(question.deps).items():
            if name not in known:
                yield question.id, f"deps name questions of the plan, {shown(name)} is none"
            if times > 1:
                yield question.id, f"deps name a question once, {shown(name)} is named again"


def no_self_dependency(facts: Facts) -> Found:
    """No question depends on itself."""
    for question in facts.plan.questions:
        if question.id in question.deps:
            yield question.id, "a question does not depend on itself"


def in_degree(facts: Facts) -> Found:
    """A question depends on at most `plan_in_degree` others."""
    most = facts.settings.plan_in_degree
    for question in facts.plan.questions:
        if len(set(question.deps)) > most:
            yield (
                question.id,
                f"a question depends on at most {most} others (plan_in_degree),"
                f" not {len(set(question.deps))}",
            )


def no_cycle(facts: Facts) -> Found:
    """No question waits, over others, for itself."""
    cycle = _cycle({q.id: q.deps for q in facts.plan.questions})
    if cycle:
        yield cycle[0], f"deps form no cycle: {' → '.join(shown(name) for name in cycle)}"


def _cycle(deps: dict[str, list[str]]) -> list[str]:
    """Return the ids of one cycle of two or more questions, the first again at its end."""
    done: set[str] = set()
    for start in deps:
        path: list[str] = []
        branches = [iter([start])]
        while branches:
            name = next(branches[-1], None)
            if name is None:
                branches.pop()
                if path:
                    done.add(path.pop())
            elif name in path and name != path[-1]:
                return [*path[path.index(name) :], name]
            elif name in deps and name not in done and name not in path:
                path.append(name)
                branches.append(iter(deps[name]))
    return []


def texts_present(facts: Facts) -> Found:
    """Text and query hold at least one letter or digit."""
    for question in facts.plan.questions:
        for name, text in (("text", question.text), ("query", question.query)):
            if not any(character.isalnum() for character in text):
                yield question.id, f"a question's {name} holds at least one word"


def texts_short(facts: Facts) -> Found:
    """Text and query are at most `max_question_chars` long."""
    most = facts.settings.max_question_chars
    for question in facts.plan.questions:
        for name, text in (("text", question.text), ("query", question.query)):
            if len(text) > most:
                yield (
                    question.id,
                    f"a question's {name} has at most {most} characters (max_question_chars),"
                    f" not {len(text)}",
                )


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


HINT = "docs/plans.md lists the rules of a plan"
RULES: tuple[Rule, ...] = (
    *(question_count, unique_ids, known_dependencies, no_self_dependency, in_degree, no_cycle),
    *(slot_names, slots_defined_once, slots_used, slots_defined, slots_downstream),
    *(texts_present, texts_short, known_tools),
)


def problems(
    plan: Plan, settings: Settings, tools: Sequence[ToolSpec] | None = None
) -> list[Problem]:
    """Return every broken rule, in the order of RULES; `tools` None leaves the calls unchecked."""
    return list(_problems(Facts(plan, settings, tools)))


def first_problem(
    plan: Plan, settings: Settings, tools: Sequence[ToolSpec] | None = None
) -> Problem | None:
    """Return the first broken rule without looking for more, None for a valid plan."""
    return next(_problems(Facts(plan, settings, tools)), None)


def _problems(facts: Facts) -> Iterator[Problem]:
    for rule in RULES:
        for where, message in rule(facts):
            yield Problem(rule.__name__, where, message)


def checked(plan: Plan, settings: Settings, tools: Sequence[ToolSpec] | None = None) -> Plan:
    """Return a valid plan, or raise a CallerError with the first rule it breaks."""
    problem = first_problem(plan, settings, tools)
    if problem is not None:
        raise CallerError(told(problem), hint=HINT)
    return plan


def told(problem: Problem) -> str:
    """Return a problem as one line, with the question it is about."""
    where = f"question {shown(problem.question_id)}: " if problem.question_id else ""
    return where + problem.message
