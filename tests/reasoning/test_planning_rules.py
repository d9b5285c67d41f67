"""The rules of a plan: a valid DAG passes, and whatever breaks one rule is told by that rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_plans import plan_problems, valid_plans

from core.errors import CallerError
from core.settings import Settings
from core.types import Call, Plan, SubQuestion, ToolSpec
from reasoning.planning.rules import RULES, checked
from reasoning.planning.slots import escaped, filled, slots_in

SETTINGS = Settings(max_question_chars=400)
ARGUMENTS = {"properties": {"query": {}}}
TOOLS = [ToolSpec(name=name, base=name, purpose="", arguments=ARGUMENTS) for name in ("a", "b")]


def asked(name: str, text: str = "Who?", deps: str = "", **values: Any) -> SubQuestion:
    given = {"id": name, "text": text, "query": text, "deps": deps.split(), **values}
    return SubQuestion.model_validate(given)


def plan(*questions: SubQuestion) -> Plan:
    return Plan(questions=list(questions))


def changed(base: Plan, place: int, **values: Any) -> Plan:
    questions = list(base.questions)
    questions[place] = questions[place].model_copy(update=values)
    return Plan(questions=questions)


def broken(found: Plan, tools: list[ToolSpec] | None = None) -> set[str]:
    return {problem.rule for problem in plan_problems(found, SETTINGS, tools or TOOLS)}


@given(valid_plans())
def test_a_valid_plan_passes(found: Plan) -> None:
    assert plan_problems(found, SETTINGS, TOOLS) == []
    assert checked(found, SETTINGS, TOOLS) == found


def first(found: Plan) -> SubQuestion:
    return found.questions[0]


def looped(found: Plan) -> Plan:
    added = [
        asked("x", deps="z"),
        asked("y", deps="x"),
        asked("z", deps="y"),
    ]
    return Plan(questions=[*found.questions[:1], *added])


def of(found: Plan, **values: Any) -> Plan:
    return changed(found, 0, **values)


MUTATIONS: list[tuple[str, Callable[[Plan], Plan]]] = [
    ("question_count", lambda p: plan(*p.questions, *(asked(f"more{n}") for n in range(5)))),
    ("unique_ids", lambda p: plan(*p.questions, asked(first(p).id))),
    ("dependencies", lambda p: of(p, deps=[*first(p).deps, "nobody"])),
    ("dependencies", lambda p: of(p, deps=[*first(p).deps, first(p).id])),
    (
        "dependencies",
        lambda p: plan(*(asked(f"n{n}") for n in range(4)), asked("n", deps="n0 n1 n2 n3")),
    ),
    ("no_cycle", looped),
    ("slots_defined", lambda p: of(p, slot='x"}} RETRIEVE')),
    (
        "slots_defined",
        lambda p: plan(asked("x", slot="s"), asked("y", slot="s"), asked("z", "{s}?", "x y")),
    ),
    ("slots_defined", lambda p: of(p, slot="unused")),
    ("slots_downstream", lambda p: of(p, query="Who leads {nothing}?")),
    ("slots_downstream", lambda p: plan(asked("x", slot="s"), asked("y", "Who leads {s}?"))),
    ("texts_fit", lambda p: of(p, text=" … ")),
    ("texts_fit", lambda p: of(p, query=first(p).query + "w" * 401)),
    ("known_tools", lambda p: of(p, calls=[Call(tool="all_tenants")])),
]


def test_every_rule_has_a_mutation() -> None:
    assert list(dict(MUTATIONS)) == [rule.__name__ for rule in RULES]


@pytest.mark.parametrize(("rule", "mutation"), MUTATIONS)
@given(valid_plans())
def test_a_broken_rule_is_named(rule: str, mutation: Callable[[Plan], Plan], found: Plan) -> None:
    bad = mutation(found)
    assert rule in broken(bad)
    with pytest.raises(CallerError):
        checked(bad, SETTINGS, TOOLS)


@given(valid_plans(), st.data())
def test_a_back_edge_is_a_cycle_or_nothing(found: Plan, data: st.DataObject) -> None:
    """A dependency added anywhere breaks the cycle rule exactly when it closes one."""
    ids = [question.id for question in found.questions]
    source, target = data.draw(st.sampled_from(ids)), data.draw(st.sampled_from(ids))
    reached, waiting = {source}, [source]
    while waiting:
        waiting += (new := set(found.question(waiting.pop()).deps) - reached)
        reached |= new
    place = ids.index(target)
    deps = found.questions[place].deps
    bad = changed(found, place, deps=[*deps, source] if source not in deps else deps)
    assert ("no_cycle" in broken(bad)) == (target in reached and source != target)
    assert (source == target) == any(
        "itself" in problem.message for problem in plan_problems(bad, SETTINGS, TOOLS)
    )


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (plan(), "1 to 5 questions (answering.max_sub_questions), not 0"),
        (plan(*(asked(f"q{n}") for n in range(6))), "question 'q5': a plan has 1 to 5 questions"),
        (plan(asked("a", deps="b"), asked("b", deps="a")), "no cycle: 'a' → 'b' → 'a'"),
        (plan(asked("a", deps="a")), "question 'a': a question does not depend on itself"),
        (plan(asked("a"), asked("b", deps="a a")), "deps name a question once"),
        (plan(asked("a", slot="it", text="What is {it}?")), "{it} needs 'a' among the deps"),
        (
            plan(asked("a", "Who leads {team}?")),
            "{team} by none (for plain braces write {{ and }})",
        ),
        (plan(asked(" ")), "every question has an id"),
    ],
)
def test_the_first_broken_rule_is_the_error(found: Plan, words: str) -> None:
    with pytest.raises(CallerError) as error:
        checked(found, SETTINGS)
    assert words in str(error.value)


def test_arguments_of_calls_are_those_of_their_tools() -> None:
    bad = plan(asked("q", calls=[Call(tool="a", arguments={"tenant": "zoo", "query": "x"})]))
    told = plan_problems(bad, SETTINGS, TOOLS)
    assert [problem.message for problem in told] == ["tool a has no argument 'tenant'"]
    assert plan_problems(bad, SETTINGS, None) == []


@given(st.text())
def test_escaped_braces_are_only_braces(text: str) -> None:
    assert slots_in(escaped(text)) == []
    assert filled(escaped(text), {"x": "y"}) == text


@given(st.text(), st.text(), st.text())
def test_a_value_is_never_read_for_slots(before: str, value: str, after: str) -> None:
    template = f"{escaped(before)}{{team}}{escaped(after)}"
    values = {"team": value + "{team}}} {other}", "other": "leak"}
    assert slots_in(template) == ["team"]
    assert filled(template, values) == f"{before}{values['team']}{after}"


def test_a_slot_without_a_value_stays() -> None:
    assert filled("{a} and {b}", {"a": "1"}) == "1 and {b}"
