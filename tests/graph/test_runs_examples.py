"""The sample corpora end to end: their twelve questions, both pipelines, the same run twice."""

from __future__ import annotations

import re

import pytest

from app.session import Session
from core.auth import AuthContext
from core.trace import RunRecord
from reasoning.rules.lexicon import lexicon

AUTH = AuthContext(tenant="default")
XPAY = {
    "zh": "XPay 退款接口 timeout 最大多少?谁维护?最近有投诉吗?",
    "zh-long": "XPay 退款接口的 timeout 最大是多少？由谁维护？最近有相关投诉吗？",
    "en": (
        "What is the maximum timeout of the XPay refund API, who maintains it and have there been "
        "complaints recently?"
    ),
}


def ask(examples: Session, collection: str, question: str, **values: object) -> RunRecord:
    return examples.ask(question, AUTH, collection, **values)  # type: ignore[arg-type]


def cited(run: RunRecord) -> list[str]:
    return [c["source"] for claim in run.result["claims"] for c in claim["citations"]]


@pytest.mark.parametrize("language", XPAY)
def test_three_parts_take_three_tools_and_three_sources(language: str, examples: Session) -> None:
    run = ask(examples, "xpay", XPAY[language])
    assert run.result["stop_reason"] == "enough_evidence"
    assert {claim["question_id"] for claim in run.result["claims"]} == {"q1", "q2", "q3"}
    tools = {(step.question_id, step.tool) for step in run.trail if step.tool}
    assert tools == {
        ("q1", "search_api_docs"),
        ("q2", "lookup_services"),
        ("q3", "search_tickets"),
    }
    docs, service, ticket = dict.fromkeys(cited(run))
    assert docs == f"docs/refund.{language[:2]}.md"
    assert service == "services.jsonl#svc-refund-api"
    assert ticket in {f"tickets.jsonl#TCK-{number}" for number in (1036, 1042, 1043)}
    assert "300" in run.result["answer"]
    # A record in two languages is quoted in that of the question.
    assert ("支付网关团队" if language[:2] == "zh" else "Payments Gateway") in run.result["answer"]
    assert "投诉" in run.result["answer"] or "complain" in run.result["answer"]


@pytest.mark.parametrize(
    ("collection", "question", "sources", "words"),
    [
        (
            "xpay",
            "What is the maximum timeout of the XPay refund API?",
            ["docs/refund.en.md"],
            ["300 seconds"],
        ),
        (
            "xpay",
            "What is the default timeout of the order query API?",
            ["docs/orders.en.md"],
            ["30 seconds"],
        ),
        (
            "xpay",
            "Who maintains the XPay payout API, and on which services does it depend?",
            ["records", "services.jsonl#svc-payout-api"],
            ["Payout Operations", "settlement"],
        ),
        ("xpay", "投递失败的 Webhook 会重试多少次？", ["docs/webhooks.zh.md"], ["8 次", "24 小时"]),
        (
            "library",
            "Посоветуйте популярную и интересную книгу по психологии для широкой публики.",
            ["catalogue.jsonl#book-047"],
            ["Внушение"],
        ),
        (
            "library",
            "До скількох книжок можна взяти додому і на скільки днів?",
            ["guide.uk.md"],
            ["6 книжок", "дн"],
        ),
        (
            "library",
            "What happens to the penny when you lower your eye to the edge of the table?",
            ["texts/flatland_section_1.docx"],
            ["straight line"],
        ),
    ],
)
def test_questions_of_the_examples_are_answered_from_the_right_source(
    collection: str, question: str, sources: list[str], words: list[str], examples: Session
) -> None:
    run = ask(examples, collection, question)
    assert not run.result["refused"]
    assert set(cited(run)) == set(sources)
    assert all(word in run.result["answer"] for word in words)
    assert run.result["missing"] == []


@pytest.mark.parametrize(
    ("collection", "question", "language"),
    [
        ("xpay", "What is the salary of the engineers of the Payments Gateway team?", "en"),
        ("library", "阅览室可以借自行车吗？", "zh"),
        ("xpay", "How many complaints did YPay receive about its refund timeout?", "en"),
        ("library", "What is the maximum timeout of the XPay refund API?", "en"),
        ("library", "Сколько стоит билет в цирк?", "ru"),
        ("xpay", "Скільки коштує квиток до цирку?", "uk"),
    ],
)
def test_what_no_document_says_is_refused(
    collection: str, question: str, language: str, examples: Session
) -> None:
    run = ask(examples, collection, question)
    assert run.result["refused"]
    assert run.result["claims"] == []
    assert run.result["stop_reason"] == "no_relevant_evidence"
    places = lexicon(language).known.messages["tools"]
    searched = {step.tool for step in run.trail if step.tool}
    assert all(places.get(tool, tool) in run.result["answer"] for tool in searched)
    assert question.rstrip("?？") in run.result["answer"]


def test_a_reading_list_names_works_about_the_subject(examples: Session) -> None:
    run = ask(examples, "library", "What can I read on physics without mathematics?")
    first, *lines = run.result["answer"].splitlines()
    assert "physics without mathematics" in first
    assert 1 <= len(lines) <= 5
    assert all(re.match(rf"{place}\. .+ — authors: ", line) for place, line in enumerate(lines, 1))
    assert len(set(cited(run)) - {"records"}) == len(lines)


@pytest.mark.parametrize("pipeline", ["agentic", "classic"])
def test_both_pipelines_answer_a_plain_question(pipeline: str, examples: Session) -> None:
    run = ask(
        examples, "xpay", "What is the default timeout of the order query API?", pipeline=pipeline
    )
    assert cited(run) == ["docs/orders.en.md"]
    tools = {step.tool for step in run.trail if step.tool}
    assert tools == ({"search_classic"} if pipeline == "classic" else {"search_api_docs"})


def test_the_classic_pipeline_searches_once_and_cites_one_document(examples: Session) -> None:
    run = ask(examples, "xpay", XPAY["en"], pipeline="classic")
    assert [step.tool for step in run.trail if step.tool] == ["search_classic"]
    assert len(set(cited(run))) <= 1
    assert "rewrite" not in {step.node for step in run.trail if step.decision != "no rewrite"}


def decisions(run: RunRecord) -> list[tuple[object, ...]]:
    return [
        (step.node, step.decision, step.reason, step.tool, str(step.arguments), step.evidence)
        for step in run.trail
    ]


@pytest.mark.parametrize(
    ("collection", "question"),
    [
        ("xpay", XPAY["en"]),
        ("xpay", "What is the salary of the engineers of the Payments Gateway team?"),
        ("library", "Что почитать по истории?"),
    ],
)
def test_the_same_question_takes_the_same_way(
    collection: str, question: str, examples: Session
) -> None:
    first, second = (ask(examples, collection, question) for _ in range(2))
    assert first.result["claims"] == second.result["claims"]
    assert first.result["answer"] == second.result["answer"]
    assert decisions(first) == decisions(second)


def test_every_citation_quotes_its_evidence(examples: Session) -> None:
    for collection, question in [("xpay", XPAY["zh"]), ("library", "What is Alice tired of?")]:
        run = ask(examples, collection, question)
        texts = {item["evidence_id"]: item["text"] for item in run.result["evidence"]}
        for claim in run.result["claims"]:
            for c in claim["citations"]:
                assert texts[c["evidence_id"]][c["start"] : c["end"]] == c["quote"]


def test_a_refusal_names_no_question_that_waits_for_a_value(run):
    state = run("When did the country that contains Nugegoda leave the British Empire?", "library")
    [before, *after] = state["plan"].questions
    answer = state["answer"]
    assert answer.refused and after and after[0].deps
    assert before.query.rstrip("?") in answer.text
    assert answer.missing == [before.text]
