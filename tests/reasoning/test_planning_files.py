"""Plan files: a written plan is read back; a wrong one is refused by line and rule, whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_json import any_json
from random_plans import valid_plans

from core.errors import CallerError
from core.settings import Settings
from core.types import Part, Plan, SubQuestion, ToolSpec, Understanding
from reasoning.planning.compiler import compiled
from reasoning.planning.files import LineError, PlanFile, load_plan, read_plan
from reasoning.planning.rules import proposed_plan
from reasoning.rules.reasoner import RulesReasoner

SETTINGS = Settings()
TOOLS = [ToolSpec(name=name, base=name, purpose="") for name in ("a", "b")]


def known() -> Sequence[ToolSpec]:
    return TOOLS


def never() -> Sequence[ToolSpec]:
    raise AssertionError("no tool is named")


def read(value: Any, **changes: Any) -> PlanFile:
    return read_plan(json.dumps(value, indent=1), Settings(**changes), known)


def asked(name: str, text: str = "Who?", **values: Any) -> dict[str, Any]:
    return {"id": name, "text": text, **values}


HOP = [asked("q1", slot="team"), asked("q2", "Who leads {team}?", deps=["q1"])]


@given(valid_plans(), st.booleans())
def test_a_plan_reads_back_as_it_was_written(plan: Plan, whole: bool) -> None:
    operations = compiled(plan, SETTINGS)
    said: dict[str, Any] = {"questions": plan.model_dump()["questions"], "kind": "multi"}
    if whole:
        said["operations"] = [item.model_dump() for item in operations]
    assert read(said) == PlanFile(plan=plan, operations=operations, fixed=whole)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("How high is the flame?", "en"),
        ("Насколько высоко пламя свечи?", "ru"),
        ("火焰多高?", "zh"),
    ],
)
def test_a_question_without_a_language_is_in_that_of_its_text(text: str, language: str) -> None:
    assert read({"questions": [asked("1", text)]}).plan.questions[0].language == language
    given = read({"questions": [asked("1", text, language="uk")]}).plan.questions[0]
    assert given.language == "uk"


def test_the_least_that_is_a_plan() -> None:
    found = read_plan('\ufeff{"questions": [{"id": "1", "text": "Who?"}]}'[1:], SETTINGS, never)
    assert found.plan.questions == [SubQuestion(id="1", text="Who?", query="Who?", language="en")]
    assert [item.op for item in found.operations] == ["RETRIEVE", "SYNTHESIZE"]


def test_merge_and_synth_from_shape_what_is_compiled() -> None:
    three = [*HOP, asked("q3")]
    ops = read({"questions": three, "merge": "intersect"}).operations
    assert ops[-2].op == "INTERSECT_HITS"
    ops = read({"questions": three, "synth_from": ["q2"]}).operations
    assert ops[-1].reads() == [("h2", "hits")]


STEPS = [item.model_dump() for item in read({"questions": HOP}).operations]


def with_step(**values: Any) -> dict[str, Any]:
    return {"questions": HOP, "operations": [{**STEPS[0], **values}, *STEPS[1:]]}


@pytest.mark.parametrize(
    ("value", "line", "words"),
    [
        ([], 1, "a plan is an object"),
        ({"a": 1}, 1, "a plan has no key 'a'; keys: questions, operations, merge, synth_from"),
        ({"tenant": "zoo", "questions": HOP}, 1, "a plan has no key 'tenant'"),
        ({}, 1, "'questions' is missing"),
        ({"questions": {}}, 1, "'questions' is a list"),
        ({"questions": ["Who?"]}, 1, "entry 1 of 'questions' is an object"),
        ({"questions": []}, 1, "a plan has 1 to 5 questions (answering.max_sub_questions), not 0"),
        ({"questions": [asked(f"q{n}") for n in range(6)]}, 23, "question 'q5': a plan has 1 to 5"),
        ({"questions": [{"id": "q1"}]}, 3, "question 'q1': 'text' is missing"),
        ({"questions": [asked("q1", role="admin")]}, 3, "there is no key 'role' here"),
        ({"questions": [asked("q1"), asked("q1")]}, 7, "2 are called 'q1'"),
        ({"questions": [{"id": 1, "text": "Who?"}]}, 3, "id: input should be a valid string"),
        ({"questions": [asked("q1", deps=["q1"])]}, 3, "a question does not depend on itself"),
        ({"questions": [asked("q1", deps="q2")]}, 3, "deps: input should be a valid list"),
        (
            {"questions": [asked("a", deps=["b"]), asked("b", deps=["a"])]},
            3,
            "deps form no cycle: 'a' → 'b' → 'a'",
        ),
        ({"questions": [asked("q1"), HOP[1]]}, 7, "{team} by none"),
        ({"questions": HOP[:1]}, 3, "{team} by none"),
        (
            {"questions": [asked("q1", slot="}} RETRIEVE all tenants")]},
            3,
            "a slot is called by letters, digits and _",
        ),
        ({"questions": [asked("q1", calls=[{"tool": "zoo"}])]}, 3, "known tools (a, b), not 'zoo'"),
        ({"questions": HOP, "merge": "xor"}, 1, "merge is union or intersect, not xor"),
        ({"questions": HOP, "synth_from": ["q9"]}, 1, "synth_from is a list of questions: q1, q2"),
        ({"questions": HOP, "operations": []}, 1, "the last operation is SYNTHESIZE"),
        ({"questions": HOP, "operations": STEPS, "merge": "union"}, 1, "'merge' shapes what"),
        (with_step(op="DELETE"), 17, "there is no operation DELETE; operations: RETRIEVE"),
        (with_step(top_k=10**9), 17, "operation 1: RETRIEVE has top_k of at most 50 (plan.top_k)"),
        (with_step(top_k="9"), 17, "operation: top_k: input should be a valid integer"),
        (with_step(tools=["zoo"]), 17, "operation 1: tools are known ones (a, b), 'zoo' is none"),
        (with_step(out="h9"), 25, "reads register 'h1', written by none above"),
        (with_step(question="q2"), 17, "every question is searched for, 'q1' by no operation"),
        (with_step(tenant="zoo"), 17, "there is no key 'tenant' here"),
    ],
)
def test_a_wrong_plan_is_refused_by_line_and_rule(value: Any, line: int, words: str) -> None:
    with pytest.raises(LineError) as error:
        read(value)
    assert words in str(error.value)
    assert error.value.line == line


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "the plan is empty"),
        (" \n\t", 1, "the plan is empty"),
        ('{"questions": [\n{"id": "q1",}]}', 2, "this is no JSON"),
        ('{"questions": [\n\n', 3, "this is no JSON"),
        ('{"questions":\n [{"id": "q1",\n "id": "q2"}]}', 2, 'the key "id" stands twice'),
        ('{"a": ' + "[" * 90000, 1, "nested at most 16 deep"),
        ('{"a":\n' * 50000, 17, "nested at most 16 deep"),
        ('{"questions":\n[' + "9" * 5000 + "]}", 2, "a number has at most 18 digits, not 5000"),
        ('{"questions":\n[1e999]}', 2, "a number is finite"),
        ('{"questions":\n[NaN]}', 2, "NaN is no number of JSON"),
        ("NaN", 1, "NaN is no number of JSON"),
        ("7" * 50, 1, "a number has at most 18 digits"),
    ],
)
def test_what_is_no_plan_at_all(text: str, line: int, words: str) -> None:
    with pytest.raises(LineError) as error:
        read_plan(text, SETTINGS, never)
    assert words in str(error.value)
    assert error.value.line == line


def test_a_file_is_read_with_its_limits(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"questions": HOP}), encoding="utf-8-sig")
    assert load_plan(path, SETTINGS, never).plan.questions[1].deps == ["q1"]
    path.write_bytes(b'{"questions": [\n"\xff\xfe"]}')
    with pytest.raises(CallerError, match="line 2: a plan file is UTF-8 text"):
        load_plan(path, SETTINGS, never)
    path.write_text('{"questions": []}')
    with pytest.raises(CallerError, match="plan.json: line 1: a plan has 1 to 5 questions"):
        load_plan(path, SETTINGS, never)
    path.write_bytes(b" " * 10_000_000)
    with pytest.raises(CallerError, match=r"at most 256 KiB"):
        load_plan(path, SETTINGS, never)
    with pytest.raises(CallerError, match="No such file"):
        load_plan(tmp_path / "none.json", SETTINGS, never)
    with pytest.raises(CallerError, match="this is a folder"):
        load_plan(tmp_path, SETTINGS, never)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(any_json("questions", "id", "text", "deps", "op", "operations"))
def test_any_json_is_read_or_refused(value: Any) -> None:
    try:
        read(value)
    except LineError as error:
        assert error.line >= 1


class Improvising(RulesReasoner):
    """Give the plan it is told to, but one step for one part."""

    told: Plan

    def plan(self, understanding: Understanding, tools: Sequence[ToolSpec]) -> Plan:
        return self.told if len(understanding.parts) > 1 else super().plan(understanding, tools)


@pytest.fixture
def improvising() -> Improvising:
    return Improvising(SETTINGS, lambda terms: {}, None)


UNDERSTOOD = Understanding(
    question="Who leads it? And since when?",
    kind="multi",
    required_fields=["person", "date"],
    parts=[Part(text="Who leads it?"), Part(text="And since when?")],
)


def test_an_invalid_proposal_becomes_one_step(improvising: Improvising) -> None:
    looped = [SubQuestion(id=i, text="x", query="x", deps=[d]) for i, d in ("ab", "ba")]
    improvising.told = Plan(questions=looped)
    plan, notes = proposed_plan(improvising, UNDERSTOOD, [], SETTINGS)
    assert [(item.text, item.wants) for item in plan.questions] == [(UNDERSTOOD.question, "person")]
    assert "deps form no cycle" in notes[0]


def test_a_valid_proposal_is_kept(improvising: Improvising) -> None:
    improvising.told = Plan(
        questions=[
            SubQuestion(id="a", text="x", query="x", slot="s"),
            SubQuestion(id="b", text="x {s}", query="x {s}", deps=["a"]),
        ]
    )
    kept, notes = proposed_plan(improvising, UNDERSTOOD, [], SETTINGS)
    assert (kept.questions, kept.whole, notes) == (
        improvising.told.questions,
        UNDERSTOOD.question,
        [],
    )
