"""Single nodes on states made by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from core.auth import AuthContext
from core.budget import Usage
from core.settings import Settings
from core.types import (
    Call,
    Citation,
    Claim,
    Draft,
    Evidence,
    Plan,
    StopReason,
    SubQuestion,
    Understanding,
)
from graph.context import Context
from graph.reading import describe_question
from graph.state import State
from nodes.generate import generate
from nodes.plan import plan
from nodes.refuse import refuse
from nodes.retrieve import retrieve
from nodes.rewrite import rewrite
from nodes.stop_condition import stop_condition
from nodes.understand import question_and_history, understand
from nodes.verify import verify
from reasoning.planning.compiler import compiled
from reasoning.rules.reasoner import RulesReasoner
from tools.toolbox import Toolbox

CALL = Call(tool="search_text", arguments={"query": "beds"})
Q1 = SubQuestion(id="q1", text="How many beds", query="How many beds", language="en", calls=[CALL])
Q2 = Q1.model_copy(update={"id": "q2", "text": "Who leads it"})
TEXT = "The ward has 12 beds."


def found(grade: int, question_id: str = "q1") -> Evidence:
    return Evidence(
        evidence_id=f"e{grade}",
        chunk_id=f"c{grade}",
        document_id="d",
        document_key="k",
        source="ward.txt",
        title="",
        text=TEXT,
        language="en",
        grades={question_id: grade},
    )


def state(**values: Any) -> Any:  # noqa: ANN401
    made = values.get("plan", Plan(questions=[Q1]))
    return {
        "query": Understanding(question="How many beds?", language="en"),
        "path": "planned",
        "plan": made,
        "operations": compiled(made, Settings()),
        "wave": ["h1"],
        "started": 0.0,
        "usage": Usage(steps=3),
        **values,
    }


@pytest.fixture
def runtime(index: Callable[..., Any]) -> Callable[..., Any]:
    def make(**values: object) -> Any:  # noqa: ANN401
        searched = index()
        settings = Settings(**{"data": searched.settings.data, **values})
        tools = Toolbox(searched)
        reasoner = RulesReasoner(settings, tools.term_weights(), None)
        context = Context(AuthContext(tenant="acme"), tools, reasoner, settings, clock=lambda: 1.0)
        return SimpleNamespace(context=context, stream_writer=lambda event: None)

    return make


@pytest.mark.parametrize(
    ("grade", "rewritten", "outcome"),
    [(3, {}, "enough"), (2, {}, "enough"), (1, {}, "weak"), (0, {"h1": []}, "never")],
)
def test_stop_condition_weighs_grades_and_rewrites(
    grade: int, rewritten: dict[str, list[Any]], outcome: str, runtime: Callable[..., Any]
) -> None:
    made = stop_condition(state(evidence=[found(grade)], rewritten=rewritten), runtime())
    assert made["outcome"] == outcome
    assert made["done"] == ([] if outcome == "weak" else ["h1"])


@pytest.mark.parametrize(
    ("grade", "done", "outcome", "reason"),
    [
        (3, [], "next", "enough_evidence"),
        (3, ["h2", "h"], "enough", "required_fields_missing"),
        (0, ["h2", "h"], "never", "no_relevant_evidence"),
    ],
)
def test_stop_condition_looks_at_all_parts(
    grade: int, done: list[str], outcome: str, reason: str, runtime: Callable[..., Any]
) -> None:
    both = state(
        plan=Plan(questions=[Q1, Q2]), evidence=[found(grade)], done=done, rewritten={"h1": []}
    )
    made = stop_condition(both, runtime())
    assert (made["outcome"], made["stop_reason"]) == (outcome, reason)


@pytest.mark.parametrize(
    ("usage", "reason"),
    [
        (Usage(steps=120), "max_steps"),
        (Usage(tool_calls=24), "max_tool_calls"),
        (Usage(tokens=60_000), "max_tokens"),
        (Usage(ms=110_000.0), "timeout"),
    ],
)
@pytest.mark.parametrize("grade", [0, 3])
def test_a_limit_ends_the_search(
    usage: Usage, reason: str, grade: int, runtime: Callable[..., Any]
) -> None:
    made = stop_condition(state(usage=usage, evidence=[found(grade)]), runtime())
    assert made["outcome"] == ("enough" if grade else "never")
    assert made["stop_reason"] == reason
    assert made["warnings"] == [f"stopped early: {reason}"]


def test_retrieve_stays_within_the_calls_left(runtime: Callable[..., Any]) -> None:
    question = Q1.model_copy(update={"calls": [CALL] * 5})
    made = retrieve(state(plan=Plan(questions=[question]), usage=Usage(tool_calls=22)), runtime())
    assert len(made["trail"]) == 2
    assert made["usage"].tool_calls == 2
    none = retrieve(state(usage=Usage(tool_calls=24)), runtime())
    assert [step.decision for step in none["trail"]] == ["no call"]
    assert none["usage"].tool_calls == 0


def test_a_refused_call_is_a_warning(runtime: Callable[..., Any]) -> None:
    bad = Q1.model_copy(update={"calls": [Call(tool="search_text", arguments={"tenant": "ypay"})]})
    made = retrieve(state(plan=Plan(questions=[bad])), runtime())
    assert made["evidence"] == []
    assert made["trail"][0].auth_filter["tenant"] == "acme"
    assert "search_text" in made["warnings"][0]


def test_an_exhausted_rewrite_leaves_no_calls(runtime: Callable[..., Any]) -> None:
    made_runtime = runtime()
    reasoner = SimpleNamespace(rewrite=lambda *_: None)
    context = replace(made_runtime.context, reasoner=reasoner)
    made = rewrite(state(), SimpleNamespace(context=context))  # type: ignore[arg-type]
    assert made["rewritten"] == {"h1": []}
    assert made["trail"][0].decision == "no rewrite"


def test_generate_is_offered_relevant_and_unrejected_evidence_only(
    runtime: Callable[..., Any],
) -> None:
    evidence = [found(0), found(1), found(2), found(3)]
    made = generate(state(evidence=evidence, unsupported=["e3"]), runtime())
    cited = {c.evidence_id for claim in made["draft"].claims for c in claim.citations}
    assert cited <= {"e2"}
    assert made["drafts"] == 1


@pytest.mark.parametrize(("question", "answered"), [("q1", True), ("q2", False)])
def test_a_part_whose_antecedent_was_not_found_is_not_answered(
    question: str, answered: bool, runtime: Callable[..., Any]
) -> None:
    waits = Q2.model_copy(update={"deps": ["q1"]})
    values = {"plan": Plan(questions=[Q1, waits]), "evidence": [found(3, question)]}
    made = stop_condition(
        state(**values, done=["h1", "h2", "h"], rewritten={"h1": []}), runtime(max_rewrites=0)
    )
    assert (made["outcome"] == "enough") == answered
    assert bool(generate(state(**values), runtime())["draft"].claims) == answered


def test_a_reader_is_told_of_no_question_with_a_value_put_into_it() -> None:
    asks = Q2.model_copy(update={"text": "Where is {ward}", "deps": ["q1"]})
    made = state(plan=Plan(questions=[Q1.model_copy(update={"slot": "ward"}), asks]))
    filled = asks.model_copy(update={"text": "Where is File"})
    assert describe_question(made, filled) == "How many beds?"
    assert describe_question(made, Q1) == Q1.text


@pytest.mark.parametrize(("grade", "kept"), [(3, True), (2, True), (1, False), (0, False)])
@pytest.mark.parametrize("drafts", [1, 2])  # after the first one another is written
def test_verify_accepts_relevant_evidence_only(
    grade: int, kept: bool, drafts: int, runtime: Callable[..., Any]
) -> None:
    citation = Citation(
        evidence_id=f"e{grade}",
        document_id="d",
        source="ward.txt",
        chunk_id=f"c{grade}",
        start=0,
        end=len(TEXT),
        quote=TEXT,
    )
    claim = Claim(text=TEXT, citations=[citation], question_id="q1")
    made = verify(
        state(
            evidence=[found(grade)],
            draft=Draft(claims=[claim]),
            stop_reason=StopReason.enough_evidence,
            drafts=drafts,
        ),
        runtime(),
    )
    assert ("answer" in made) is kept
    if not kept:
        assert made["unsupported"] == [f"e{grade}"]
        assert made.get("stop_reason") == (None if drafts == 1 else "unsupported_answer")


def test_a_chat_is_read_as_turns() -> None:
    messages = [
        SystemMessage("Ignore this."),
        HumanMessage("First?"),
        AIMessage("One."),
        HumanMessage("unanswered"),
        HumanMessage("Second?"),
        AIMessage("Two."),
        AIMessage("More."),
        HumanMessage("Third?"),
    ]
    waiting, turns = question_and_history(messages)
    assert waiting == "Third?"
    assert [(turn.question, turn.answer) for turn in turns] == [
        ("First?", "One."),
        ("Second?", "Two."),
    ]
    assert question_and_history([]) == ("", [])


def test_understand_plans_a_plain_question_and_leaves_others_to_the_planner(
    runtime: Callable[..., Any],
) -> None:
    plain = understand({"question": "How many beds are there?"}, runtime())
    assert (plain["path"], plain["wave"]) == ("plain", ["h1"])
    both = understand({"question": "How many beds are there? Who leads it?"}, runtime())
    assert "plan" not in both
    made = plan({**both, "question": "x"}, runtime())  # type: ignore[typeddict-item]
    assert made["wave"] == ["h0", "h1", "h2"]
    assert len(made["plan"].questions) == 2
    following = plan({**both, **made, "done": ["h0", "h1", "h2"]}, runtime())  # type: ignore[typeddict-item]
    assert following["wave"] == ["h"]


def test_every_update_holds_keys_of_the_state_only(runtime: Callable[..., Any]) -> None:
    made = runtime()
    full = state(
        evidence=[found(3)],
        stop_reason=StopReason.no_relevant_evidence,
        draft=Draft(claims=[]),
        trail=[],
    )
    for node in (retrieve, stop_condition, rewrite, generate, verify, refuse, plan):
        assert set(node(full, made)) <= State.__annotations__.keys(), node.__name__
