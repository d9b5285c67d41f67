"""What binds the rules' answers binds a model's: totals, wholes, kinds, whole lists."""

from __future__ import annotations

import pytest
from builders import answered, asking, graded, piece
from llm_doubles import purse, thinking

from core.budget import opened_ledger
from core.metadata import LISTED_CHUNKS, ROW
from core.types import Claim, Evidence, FieldInfo, RecordTable, SubQuestion, ToolSpec, Understanding
from models.chat.types import ChatReply
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
    return piece(text, kind=ROW, metadata={LISTED_CHUNKS: [one.chunk_id for one in held]})


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
    reasoner, model = thinking("12 tickets are open [1].")
    with opened_ledger(purse()):
        grades = reasoner.grade(question, [total, piece("12 tickets were open in May.")])
        draft = answered(reasoner, question, [graded(total)])
    assert [grade.grade for grade in grades] == [3, 0]
    assert [claim.text for claim in draft.claims] == [total.text]
    assert model.verbs == []


def test_a_passage_without_the_number_asked_for_answers_nothing_whatever_the_model_says() -> None:
    question = asking("How many seats has the harbour hall?", wants="number")
    with_number = piece("The harbour hall has 40 seats.")
    without = piece("The harbour hall has seats for guests.")
    both = ChatReply("A", alternatives={"A": 0.5, "B": 0.5})
    reasoner, _ = thinking(both, evidence=[with_number, without])
    with opened_ledger(purse()):
        grades = reasoner.grade(question, [with_number, without])
    assert [grade.grade for grade in grades] == [3, 1]


def said(question: SubQuestion, item: Evidence, *claims: str) -> list[Claim]:
    """Return what is left of what a model says."""
    reasoner, _ = thinking(" ".join(claims), evidence=[item])
    with opened_ledger(purse()):
        return answered(reasoner, question, [graded(item)]).claims


def test_a_first_sentence_without_the_number_asked_for_is_left_out() -> None:
    item = piece("The harbour hall has 40 seats. It was built for guests.")
    question = asking("How many seats has the harbour hall?", wants="number")
    vague, exact = "The harbour hall was built for guests.", "The harbour hall has 40 seats."
    assert [claim.text for claim in said(question, item, vague, exact)] == [exact]


def test_a_claim_that_announces_a_list_brings_it() -> None:
    item = piece("The supported engines are:\n- Alpha\n- Beta\n- Gamma\n\nOther text follows here.")
    (claim, *_) = said(asking("Which engines are supported?"), item, "The supported engines are:")
    assert claim.text == "The supported engines are:\n- Alpha\n- Beta\n- Gamma"
    assert claim.citations[0].quote == claim.text
    assert unsupported_reason(claim, {item.evidence_id: item}) == ""
