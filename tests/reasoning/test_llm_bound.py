"""What binds the rules' answers binds a model's: totals, wholes, kinds, whole lists."""

from __future__ import annotations

import pytest
from builders import asking, graded, piece
from llm_doubles import ScriptedModel, purse, thinking

from core.ledger import opened_ledger
from core.record_names import HELD, ROW
from core.settings import Settings
from core.tool_spec import ToolSpec
from core.types import Evidence, FieldInfo, Plan, RecordTable, Understanding
from reasoning.llm.judging import grades_by_rules
from reasoning.verification import unsupported_reason

TOOLS = [
    ToolSpec(name="search", base="search", purpose="Find passages.", arguments={}),
    ToolSpec(name="summarise", base="summarise", purpose="Read a whole.", arguments={}),
    ToolSpec(
        name="query_records",
        base="query_records",
        purpose="Find records.",
        arguments={},
        fields=[FieldInfo(name="status", type="text", values=2, examples=["open", "closed"])],
        tables=[RecordTable(file="tickets.csv", records=9, fields=["status"])],
    ),
]


def row(text: str, *held: Evidence) -> Evidence:
    return piece(text, kind=ROW, metadata={HELD: [one.chunk_id for one in held]})


@pytest.mark.parametrize(
    ("question", "tool"),
    [("How many tickets are there?", "query_records"), ("Summarise Gilead", "summarise")],
)
def test_a_count_and_a_summary_are_planned_without_the_model(question: str, tool: str) -> None:
    reasoner, model = thinking()
    with opened_ledger(purse()):
        known = Understanding(question=question, language="en", parts=[{"text": question}],
                              required_fields=["text"])  # fmt: skip
        plan = reasoner.plan(known, TOOLS)
    assert [call.tool for call in plan.questions[0].calls] == [tool]
    assert model.verbs == []


def test_a_model_cannot_overrule_a_total() -> None:
    question = asking("How many tickets are open?", wants="number")
    total = row("4 of 9 records match: status = open.")
    reasoner, model = thinking({"claims": [{"text": "12 tickets are open.", "sources": [1]}]})
    with opened_ledger(purse()):
        grades = reasoner.grade(question, [total, piece("12 tickets were open in May.")])
        known = Understanding(question=question.text, language="en")
        draft = reasoner.answer(known, Plan(questions=[question]), [graded(total)])
    assert [grade.grade for grade in grades] == [3, 0]
    assert [claim.text for claim in draft.claims] == [total.text]
    assert model.verbs == []


def test_a_passage_without_the_number_asked_for_answers_nothing_whatever_the_model_says() -> None:
    question = asking("How many seats has the harbour hall?", wants="number")
    with_number = piece("The harbour hall has 40 seats.")
    without = piece("The harbour hall has seats for guests.")
    reasoner, _ = thinking({"e1": 3, "e2": 3}, evidence=[with_number, without])
    with opened_ledger(purse()):
        grades = reasoner.grade(question, [with_number, without])
    assert [grade.grade for grade in grades] == [3, 1]


def answered(question, item: Evidence, *claims: str):
    replies = [{"claims": [{"text": text, "sources": [1]}]} for text in claims]
    reasoner, model = thinking(*replies, evidence=[item])
    with opened_ledger(purse()):
        known = Understanding(question=question.text, language="en")
        draft = reasoner.answer(known, Plan(questions=[question]), [graded(item)])
    return draft, model


def test_a_claim_without_the_number_asked_for_is_asked_for_again() -> None:
    item = piece("The harbour hall has 40 seats. It was built for guests.")
    question = asking("How many seats has the harbour hall?", wants="number")
    vague, exact = "The harbour hall was built for guests.", "The harbour hall has 40 seats."
    draft, model = answered(question, item, vague, exact)
    assert [claim.text for claim in draft.claims] == [exact]
    assert "must say the number" in model.prompts


def test_a_claim_that_announces_a_list_brings_it() -> None:
    item = piece("The supported engines are:\n- Alpha\n- Beta\n- Gamma\n\nOther text follows here.")
    draft, _ = answered(asking("Which engines are supported?"), item, "The supported engines are:")
    claim = draft.claims[0]
    assert claim.text == "The supported engines are:\n- Alpha\n- Beta\n- Gamma"
    assert claim.citations[0].quote == claim.text
    assert unsupported_reason(claim, {item.evidence_id: item}) == ""


@pytest.mark.parametrize(
    ("model", "setting", "by_rules"),
    [
        ("qwen2.5-1.5b-instruct-q4_k_m.gguf", "auto", True),
        ("Qwen3-0.6B", "auto", True),
        ("qwen2.5-7b-instruct", "auto", False),
        ("Llama-3.1-70B", "auto", False),
        ("gpt-4o", "auto", False),
        ("qwen2.5-7b-instruct", "rules", True),
        ("qwen2.5-1.5b-instruct", "llm", False),
    ],
)
def test_the_rules_grade_for_a_small_model(model: str, setting: str, by_rules: bool) -> None:
    chat = ScriptedModel()
    chat.capabilities = chat.capabilities.model_copy(update={"model": model})
    assert grades_by_rules(chat, Settings(llm_grader=setting)) is by_rules
