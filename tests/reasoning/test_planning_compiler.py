"""Operations: a compiled plan is valid, complete and always the same; wrong lists are refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_plans import valid_plans
from written_operations import parse

from core.operations import (
    OPERATIONS,
    AnyOperation,
    ComposeQuery,
    IntersectHits,
    Retrieve,
    Synthesize,
    UnionHits,
)
from core.settings import Settings
from core.types import Call, Plan, SubQuestion, ToolSpec
from reasoning.planning.compiler import compiled, entity_hop, in_order
from reasoning.planning.rules import OPERATION_RULES
from reasoning.planning.slots import BrokenRule, Facts, describe_problem, problems, uses

SETTINGS = Settings()
MERGES = st.sampled_from(["union", "intersect"])


def asked(name: str, text: str = "Who?", deps: str = "", slot: str | None = None) -> SubQuestion:
    return SubQuestion(id=name, text=text, query=text, deps=deps.split(), slot=slot)


def operation_problems(
    operations: list[AnyOperation], plan: Plan, tools: list[ToolSpec] | None = None
) -> list[BrokenRule]:
    return list(problems(OPERATION_RULES, Facts(plan, SETTINGS, tools, operations)))


HOP = Plan(questions=[asked("q1", slot="team"), asked("q2", "Who leads {team}?", "q1")])


@given(valid_plans(), MERGES)
def test_compiled_operations_are_valid_and_complete(plan: Plan, merge: Any) -> None:
    operations = compiled(plan, SETTINGS, merge)
    assert operation_problems(operations, plan) == []
    searched = [item.question for item in operations if isinstance(item, Retrieve)]
    assert sorted(searched) == sorted(question.id for question in plan.questions)
    written: set[str] = set()
    for item in operations:
        assert {name for name, _ in item.reads()} <= written
        assert item.out not in written
        written.add(item.out)
    assert isinstance(operations[-1], Synthesize)
    composed = {item.question for item in operations if isinstance(item, ComposeQuery)}
    assert composed == {question.id for question in plan.questions if uses(question)}


@given(valid_plans())
def test_compiling_is_deterministic(plan: Plan) -> None:
    assert compiled(plan, SETTINGS) == compiled(plan.model_copy(deep=True), SETTINGS)


@given(valid_plans())
def test_order_respects_deps_and_keeps_the_rest(plan: Plan) -> None:
    ordered = [question.id for question in in_order(plan)]
    assert sorted(ordered) == sorted(question.id for question in plan.questions)
    for place, name in enumerate(ordered):
        assert set(plan.question(name).deps) <= set(ordered[:place])
    given_order = [question.id for question in plan.questions]
    if all(set(plan.question(n).deps) <= set(given_order[:p]) for p, n in enumerate(given_order)):
        assert ordered == given_order


def test_a_hop_compiles_to_its_six_operations() -> None:
    names = [item.op for item in compiled(HOP, SETTINGS)]
    assert names == [
        *("RETRIEVE", "EXTRACT_ANSWER", "COMPOSE_QUERY"),
        *("RETRIEVE", "UNION_HITS", "SYNTHESIZE"),
    ]


def test_what_the_answer_rests_on() -> None:
    three = Plan(questions=[*HOP.questions, asked("q3")])
    every = [item.hits for item in compiled(three, SETTINGS) if isinstance(item, UnionHits)]
    assert every == [["h1", "h2", "h3"]]
    alone = compiled(three, SETTINGS, "union", ["q2"])
    assert not [item for item in alone if isinstance(item, UnionHits)]
    both = compiled(three, SETTINGS, "intersect")
    assert [item.hits for item in both if isinstance(item, IntersectHits)] == [["h2", "h3"]]


def test_a_search_text_without_slots_has_its_braces_back() -> None:
    first = compiled(Plan(questions=[asked("q", "What is {{HOME}}?")]), SETTINGS)[0]
    assert isinstance(first, Retrieve) and first.query == "What is {HOME}?"


def test_top_k_keeps_within_its_clamp() -> None:
    first = compiled(HOP, Settings(top_k=80, plan_top_k=20))[0]
    assert isinstance(first, Retrieve) and first.top_k == 20


@given(st.text(min_size=1))
def test_an_entity_hop_is_valid_after_any_search(query: str) -> None:
    operations = compiled(HOP, SETTINGS)
    hop = entity_hop(HOP.questions[1], query, "h2", "x", SETTINGS)
    extended = [*operations[:-1], *hop, operations[-1]]
    assert operation_problems(extended, HOP) == []
    assert {item.op for item in extended} | {"INTERSECT_HITS"} == set(OPERATIONS)


START = 'h1 = RETRIEVE(question="q1", query="x", tools=[], top_k=10)\n'
SEARCHES = START + 'h2 = RETRIEVE(question="q2", query="y", tools=[], top_k=10)\n'
END = 'answer = SYNTHESIZE(questions=["q1"], hits=h1, max_evidence=5)'
WRONG = [
    ("operation_count", SEARCHES),
    ("registers_read", SEARCHES + START + END),
    ("registers_read", SEARCHES + END.replace("h1", "h9")),
    ("clamps", SEARCHES.replace("top_k=10", "top_k=1000000") + END),
    (
        "templates_bound",
        SEARCHES
        + 'v = EXTRACT_ANSWER(question="q1", slot="team", wants="text", hits=h1, fan_out=1)\n'
        + 't = COMPOSE_QUERY(question="q2", template="{a}", values={"b": v}, fan_out=1)\n'
        + END,
    ),
    ("search_texts_fit", SEARCHES.replace('"x"', '" "') + END),
    ("known_questions", SEARCHES + END.replace('"q1"', '"q7"')),
    ("known_questions", START + END),
    ("searched_tools", SEARCHES.replace("tools=[]", 'tools=["all_tenants"]') + END),
]


def test_every_rule_of_operations_is_broken_once() -> None:
    assert list(dict(WRONG)) == [rule.__name__ for rule in OPERATION_RULES]


@pytest.mark.parametrize(("rule", "lines"), WRONG)
def test_a_wrong_list_is_named_by_its_rule(rule: str, lines: str) -> None:
    assert {item.rule for item in operation_problems(parse(lines), HOP, [])} == {rule}


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("", "the last operation is SYNTHESIZE"),
        (END + "\n" + END.replace("answer", "b"), "only the last operation is SYNTHESIZE"),
        (START + END.replace("h1", "answer"), "reads register 'answer', written by none above"),
        (
            START
            + 'e = EXTRACT_ENTITIES(question="q1", hits=h1, max_entities=1)\n'
            + END.replace("h1", "e"),
            "operation 3: SYNTHESIZE reads hits, register 'e' holds entities",
        ),
        (
            START
            + 'v = EXTRACT_ANSWER(question="q1", slot="other", wants="text", hits=h1, fan_out=1)\n'
            + END,
            "EXTRACT_ANSWER finds its question's slot, 'other' is another",
        ),
        (
            START
            + 'e = EXTRACT_ENTITIES(question="q1", hits=h1, max_entities=1)\n'
            + 'm = MAP_RETRIEVE(question="q1", template="{x}", entities=e, top_k=1, fan_out=1)\n'
            + END,
            "the template of MAP_RETRIEVE uses {entity} and no other slot",
        ),
    ],
)
def test_the_error_says_which_operation(lines: str, words: str) -> None:
    assert any(
        words in describe_problem(problem) for problem in operation_problems(parse(lines), HOP)
    )


def test_too_many_operations_are_refused() -> None:
    line = 'h{} = RETRIEVE(question="q1", query="x", tools=[], top_k=1)'
    many: list[AnyOperation] = parse("\n".join(line.format(n) for n in range(60)))
    found = operation_problems(many, HOP)[0].message
    assert "at most 40 operations (plan.operations), not 60" in found


def test_the_whole_question_is_searched_where_parts_share_their_tools() -> None:
    calls = [Call(tool="search", arguments={})]
    parts = [SubQuestion(id=name, text="x", query="x", calls=calls) for name in ("a", "b")]
    ops = compiled(Plan(questions=parts, whole="x and {y}?"), SETTINGS)
    assert (ops[0].out, ops[0].op, getattr(ops[0], "query", "")) == ("h0", "RETRIEVE", "x and {y}?")
    assert ops[-2].reads() == [("h0", "hits"), ("h1", "hits"), ("h2", "hits")]
    other = [parts[0], parts[1].model_copy(update={"calls": [Call(tool="tickets", arguments={})]})]
    waiting = [parts[0], parts[1].model_copy(update={"deps": ["a"]})]
    for questions in (other, waiting, parts[:1]):
        assert compiled(Plan(questions=questions, whole="x"), SETTINGS)[0].out == "h1"
    assert compiled(Plan(questions=parts, whole="x"), SETTINGS, "intersect")[0].out == "h1"
