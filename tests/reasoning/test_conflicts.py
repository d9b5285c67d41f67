"""Documents that say the same with another value contradict each other; both are shown."""

from __future__ import annotations

import pytest

from core.types import Claim, Evidence, Plan, SubQuestion, Understanding
from reasoning.conflicts import find_conflicts, is_denied, is_other_value
from reasoning.rendering import render_answer


@pytest.mark.parametrize(
    ("left", "right", "language", "differs"),
    [
        (
            "All server logs are kept for 14 days.",
            "All server logs are kept for 90 days.",
            "en",
            True,
        ),
        (
            "All server logs are kept for seven days.",
            "Server logs are kept for 90 days.",
            "en",
            True,
        ),
        (
            "All server logs are kept for 14 days.",
            "All server logs are kept for 14 days.",
            "en",
            False,
        ),
        (
            "All server logs are kept for 14 days.",
            "All server logs are kept for 2 weeks.",
            "en",
            False,
        ),
        ("All server logs are kept for 14 days.", "The new ward of it has 12 beds.", "en", False),
        (
            "The service is maintained by team Heron.",
            "The service is maintained by team Osprey.",
            "en",
            True,
        ),
        (
            "In 2001 Ann Lee founded the club in Oslo.",
            "In 1999 Ann Lee founded the club in Oslo.",
            "en",
            True,
        ),
        (
            "In 2001 Ann Lee won the cup in Oslo.",
            "In 1999 Bo Lind won the cup in Rome.",
            "en",
            False,
        ),
        (
            "The refund service is maintained by team Heron.",
            "The payout service is maintained by team Osprey.",
            "en",
            False,
        ),
        ("The river is 3,245 km long in all.", "The river is 3,200 km long in all.", "en", False),
        (
            "Jan 2, 2020 ... The dam holds much water now.",
            "May 7, 2021 ... The dam holds much water now.",
            "en",
            False,
        ),
        (
            "Завод Волна открыли в городе в 1961 году.",
            "Завод Волна открыли в городе в 1967 году.",
            "ru",
            True,
        ),
        (
            "Завод Хвиля відкрили в місті 1961 року.",
            "Завод Хвиля відкрили в місті 1967 року.",
            "uk",
            True,
        ),
        ("该水库于1961年建成并开始供水。", "该水库于1967年建成并开始供水。", "zh", True),
        ("该水库于1961年建成并开始供水。", "该水库于1961年建成并开始供水。", "zh", False),
    ],
)
def test_one_value_differs_and_the_rest_is_the_same(
    left: str, right: str, language: str, differs: bool
) -> None:
    assert is_other_value(left, right, language) is differs
    assert is_other_value(right, left, language) is differs


def piece(name: str, text: str, updated_at: str = "", title: str = "") -> Evidence:
    return Evidence(
        evidence_id=name,
        chunk_id=name,
        document_id=name,
        document_key=name,
        source=f"{name}.txt",
        title=title or name,
        text=text,
        language="en",
        updated_at=updated_at,
        grades={"q1": 3},
    )


def asked(text: str) -> Plan:
    return Plan(questions=[SubQuestion(id="q1", text=text, query=text, language="en")])


OLD = piece(
    "old", "Backups run at night. All server logs are kept for 14 days.", "2024-02-01T08:00"
)
NEW = piece("new", "All server logs are kept for 90 days. Ask the team.", "2025-03-01T08:00")
START = OLD.text.index("All")


def said(item: Evidence, start: int, end: int) -> Claim:
    return Claim(text=item.text[start:end], citations=[item.cited(start, end)], question_id="q1")


def test_both_sides_are_cited_with_their_dates() -> None:
    plan = asked("How long are server logs kept?")
    claims = [said(OLD, START, len(OLD.text))]
    others, conflicts = find_conflicts(claims, plan, [OLD, NEW])
    assert [one.text for one in others] == ["All server logs are kept for 90 days."]
    assert [one.claims for one in conflicts] == [[0, 1]]
    text = render_answer(
        Understanding(question=plan.questions[0].text, language="en"),
        plan,
        claims,
        [],
        [OLD, NEW],
        others,
        conflicts,
    )
    assert text.splitlines() == [
        "All server logs are kept for 14 days. [1]",
        "The documents disagree:",
        "– old, 2024-02-01: All server logs are kept for 14 days. [1]",
        "– new, 2025-03-01: All server logs are kept for 90 days. [2]",
    ]


def test_what_is_said_already_is_not_said_again() -> None:
    plan = asked("How long are server logs kept?")
    claims = [said(OLD, START, len(OLD.text)), said(NEW, 0, NEW.text.index(" Ask"))]
    others, conflicts = find_conflicts(claims, plan, [OLD, NEW])
    assert others == []
    assert [one.claims for one in conflicts] == [[0, 1]]


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("How long are the server logs of Heron kept?", "Heron"),  # the other is about Osprey
        ("Are logs kept for 90 days?", ""),  # the question names the value
    ],
)
def test_another_subject_is_no_conflict(question: str, title: str) -> None:
    old, new = piece("old", OLD.text, title=title), piece("new", NEW.text, title="Osprey")
    assert find_conflicts([said(old, START, len(old.text))], asked(question), [old, new]) == (
        [],
        [],
    )


def test_evidence_that_does_not_answer_is_no_conflict() -> None:
    weak = NEW.model_copy(update={"grades": {"q1": 1}})
    claims = [said(OLD, START, len(OLD.text))]
    assert find_conflicts(claims, asked("How long are logs kept?"), [OLD, weak]) == ([], [])


def test_a_sentence_of_chinese_is_compared_by_its_characters() -> None:
    old, new = (
        piece(name, text).model_copy(update={"language": "zh"})
        for name, text in (("old", "松岭大桥全长410米。"), ("new", "松岭大桥全长460米。"))
    )
    question = SubQuestion(id="q1", text="松岭大桥全长多少米？", query="松岭大桥", language="zh")
    claims = [said(old, 0, len(old.text))]
    others, conflicts = find_conflicts(claims, Plan(questions=[question]), [old, new])
    assert [one.text for one in others] == [new.text]
    assert [one.claims for one in conflicts] == [[0, 1]]


@pytest.mark.parametrize(
    ("left", "right", "language", "denied"),
    [
        ("Dogs may enter the garden.", "Dogs may not enter the garden.", "en", True),
        ("Returns are accepted by mail.", "Returns are refused by mail.", "en", True),
        ("Dogs are not forbidden there.", "Dogs are allowed there.", "en", False),
        ("Cats are allowed in the garden.", "Dogs are not allowed in the garden.", "en", False),
        ("Adults may not enter the hall.", "Children may enter the hall.", "en", False),
        ("In winter the pool is closed.", "In summer the pool is open.", "en", False),
        ("Заявки принимаются по почте.", "Заявки не принимаются по почте.", "ru", True),
        ("Собакам дозволено заходити в сад.", "Собакам заборонено заходити в сад.", "uk", True),
        ("该票可以退款。", "该票不能退款。", "zh", True),
    ],
)
def test_a_denial_is_seen_as_what_it_is(left: str, right: str, language: str, denied: bool) -> None:
    assert is_denied(left, right, language) is denied
    assert is_denied(right, left, language) is denied
