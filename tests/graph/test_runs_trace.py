"""The trace of a run: what each step holds, and that the stored run is the returned one."""

from __future__ import annotations

import pytest

from app.session import Session
from core.auth import AuthContext
from core.trace import RunRecord, Step

AUTH = AuthContext(tenant="default", user="tracer", roles=frozenset({"staff"}))
QUESTIONS = [
    ("xpay", "What is the default timeout of the order query API?"),
    ("xpay", "XPay 退款接口 timeout 最大多少?谁维护?最近有投诉吗?"),
    ("xpay", "What is the salary of the engineers of the Payments Gateway team?"),
    ("library", "Посоветуйте книгу по физике"),
    ("xpay", "How many services are there?"),
]


@pytest.fixture(params=range(len(QUESTIONS)))
def traced(request: pytest.FixtureRequest, examples: Session) -> RunRecord:
    collection, question = QUESTIONS[request.param]
    return examples.ask(question, AUTH, collection)


def test_each_tool_call_records_its_filter_arguments_and_scores(traced: RunRecord) -> None:
    calls = [step for step in traced.trail if step.tool]
    assert calls
    found = {item["evidence_id"] for item in traced.result["evidence"]}
    for step in calls:
        assert step.node == "retrieve"
        assert step.question_id
        assert step.arguments
        assert step.auth_filter["tenant"] == "default"
        assert step.auth_filter["user"] == "tracer"
        assert step.auth_filter["roles"] == ["staff"]
        assert "allowed_sources" in step.auth_filter
        assert "version_policy" in step.auth_filter
        assert {evidence_id for evidence_id, _ in step.evidence} <= found
        assert all(isinstance(score, float) for _, score in step.evidence)
        assert step.decision == f"{len(step.evidence)} found"


def test_each_step_says_what_was_decided_and_how_long_it_took(traced: RunRecord) -> None:
    assert traced.trail[0].node == "understand"
    assert traced.trail[-1].node in ("verify", "refuse")
    for step in traced.trail:
        assert step.decision
        assert step.ms > 0
    # Searches run side by side: their times add up to more than the run took.
    assert max(step.ms for step in traced.trail) <= traced.result["usage"]["ms"] * 1.5 + 50


def test_the_steps_follow_the_edges_of_the_graph(traced: RunRecord) -> None:
    follows = {
        "understand": {"plan", "retrieve"},
        "plan": {"retrieve", "extract", "compose_query", "merge_hits"},
        "retrieve": {"retrieve", "grade_documents"},
        "grade_documents": {"grade_documents", "stop_condition"},
        "extract": {"extract", "stop_condition"},
        "compose_query": {"compose_query", "stop_condition"},
        "merge_hits": {"merge_hits", "stop_condition"},
        "stop_condition": {"generate", "rewrite", "plan", "refuse"},
        "rewrite": {"rewrite", "retrieve"},
        "generate": {"verify"},
        "verify": {"generate", "refuse"},
    }
    nodes = [step.node for step in traced.trail]
    for before, after in zip(nodes, nodes[1:], strict=False):
        assert after in follows[before]


def test_grades_are_in_the_trace_and_on_the_evidence(traced: RunRecord) -> None:
    grades = {item["evidence_id"]: item["grades"] for item in traced.result["evidence"]}
    for step in traced.trail:
        if step.node == "grade_documents":
            for evidence_id, grade in step.evidence:
                assert 0 <= grade <= 3
                assert grades[evidence_id][step.question_id] >= grade


def test_a_rewrite_records_its_similarity(examples: Session) -> None:
    collection, question = QUESTIONS[2]
    steps = [s for s in examples.ask(question, AUTH, collection).trail if s.node == "rewrite"]
    assert len(steps) == 1
    assert all(0 <= step.arguments["similarity"] <= 1.001 for step in steps)


def test_the_stored_run_is_the_returned_run(traced: RunRecord, examples: Session) -> None:
    stored = examples.store.runs.load(AUTH, traced.run_id)
    assert stored.trail == traced.trail
    assert stored.model_dump(mode="json") == traced.model_dump(mode="json")


def test_steps_are_seen_as_they_happen(examples: Session) -> None:
    seen: list[Step] = []
    collection, question = QUESTIONS[1]
    run = examples.ask(question, AUTH, collection, on_step=seen.append)
    # What runs side by side is seen as it ends, and kept in the order of the plan.
    assert sorted(seen, key=repr) == sorted(run.trail, key=repr)
    assert [step.node for step in seen] == [step.node for step in run.trail]
