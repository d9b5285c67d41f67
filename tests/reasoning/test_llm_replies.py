"""Replies of every broken shape: each ends in a decision, within three calls, without an error."""

from __future__ import annotations

import pytest
from builders import asking, graded, piece
from hypothesis import given
from hypothesis import strategies as st
from llm_doubles import purse, thinking, tool

from core.budget import opened_ledger
from core.types import Part, Plan, Understanding
from models.chat.types import ChatReply
from reasoning.llm.replies import Unfit, loaded, other_language, parsed
from reasoning.llm.searching import Rewritten

ITEM = graded(piece("The refund API waits 30 seconds. Alice maintains it."))
QUESTION = asking("How long does the refund API wait?", query="refund API wait long")
TOOLS = [tool("search_api"), tool("find_service")]
KNOWN = Understanding(
    question=QUESTION.text, language="en", required_fields=["text"], parts=[Part(text="Why?")]
)
MALFORMED = [
    "", " ", "\n\n", "\x00", "null", "true", "0", '"text"', "[]", "{}", "{", "}", "}{", "{]",
    "[" * 5000, "{" * 5000, '{"a":' * 5000, '{"e1": }', '{"e1": 3', '{"e1" 3}', "{'e1': 3}",
    "{e1: 3}", '{"e1": 3,}', '{"e1": 03}', '{"e1": NaN}', '{"e1": 1e999}', '{"e1": 99999999999}',
    '{"e1": null}', '{"e1": [3]}', '{"e1": {"grade": 3}}', '{"e1": "three"}', '{"e1": 3}{"e1": 0}',
    '{"E1": 3}', '{"error": {"message": "overloaded"}}', "I'm sorry, but I can't help with that.",
    "```json\n```", "<tool_call>{}</tool_call>", "<think>{", "data: [DONE]", "\ufeff", "\ud83d",
    '{"questions": [{}]}', '{"questions": "all"}', '{"claims": {}}', '{"claims": [[]]}',
    '{"claims": [',
    '{"claims": [{"text": "A.", "sources": []}]}', '{"claims": [{"text": "", "sources": [1]}]}',
    '{"claims": [{"text": "A is B.", "sources": [7]}]}', '{"claims": [{"text": 5, "sources": 1}]}',
    '{"claims": [{"text": "\\ud83d", "sources": [1]}]}', '{"query": "", "tools": []}',
    '{"standalone": null, "kind": "x", "intent": [], "parts": 1}', '{"values": [{"value": 1}]}',
    '{"verdict": "SUPPORTED!"}', '{"verdict": ["supported"]}', "x" * 100_000,
]  # fmt: skip


@pytest.mark.parametrize("verb", ["understand", "plan", "grade", "rewrite", "extract"])
@pytest.mark.parametrize("reply", MALFORMED, ids=range(len(MALFORMED)))
def test_a_malformed_reply_ends_with_the_rules_within_three_calls(reply, verb):
    reasoner, model = thinking(reply, reply, reply, evidence=[ITEM])
    decide = {
        "understand": lambda who: who.understand(QUESTION.text, []),
        "plan": lambda who: who.plan(KNOWN, TOOLS),
        "grade": lambda who: who.grade(QUESTION, [ITEM]),
        "rewrite": lambda who: who.rewrite(QUESTION, [ITEM], TOOLS),
        "extract": lambda who: who.extract(QUESTION, [ITEM]),
    }[verb]
    with opened_ledger(purse()) as ledger:
        made = decide(reasoner)
    assert made == decide(reasoner._rules)
    tries = {"plan": 1, "grade": 1}.get(verb, 3)  # a choice of one token is not asked for again
    assert len(model.requests) == len(ledger.calls) == tries
    assert ledger.degraded == [f"{verb}: the model gave no valid reply"]
    assert all(call.outcome == "invalid" and call.error for call in ledger.calls)


@pytest.mark.parametrize("reply", MALFORMED, ids=range(len(MALFORMED)))
def test_an_answer_that_is_no_sentence_of_the_evidence_gives_way_to_the_rules(reply):
    reasoner, model = thinking(reply, evidence=[ITEM])
    with opened_ledger(purse()):
        made = reasoner.answer(KNOWN, Plan(questions=[QUESTION]), [ITEM])
    assert made.claims and all(claim.text in ITEM.text for claim in made.claims)
    assert len(model.requests) == 1


@given(st.text(max_size=200), st.text(max_size=50))
def test_no_text_breaks_the_reader(before, after):
    for text in (before, f'{before}{{"query": "a", "tools": []}}{after}'):
        try:
            assert parsed(text, Rewritten).query is not None
        except Unfit as error:
            assert str(error)


@pytest.mark.parametrize(
    "text",
    [
        '{"query": "waits", "tools": []}',
        'Sure! Here it is:\n```json\n{"query": "waits", "tools": []}\n```\nAnything else?',
        '\ufeff\x00{"query":\t"wa\x00its", "tools": [], "why": "a\nb\tc"}',
        '{"query": "waits", "tools": [], "extra": {"tenant": "other"}}',
    ],
)
def test_safe_deviations_are_read(text):
    assert parsed(text, Rewritten) == Rewritten(query="waits", tools=[])


def test_raw_line_breaks_in_strings_become_blanks():
    assert loaded('{"a": "one\ntwo"}') == {"a": "one two"}


def test_escapes_name_nothing_that_cannot_be_written_or_shown():
    said = loaded(r'{"a": ["x\u001b[2Jy\u202ez\u0000", {"b": "\u009b\u2066"}]}')
    assert said == {"a": ["x [2Jy z ", {"b": "  "}]}


def test_an_error_names_the_field_and_the_value():
    with pytest.raises(Unfit, match="tools: Input should be .* not all"):
        parsed('{"query": "waits", "tools": "all"}', Rewritten)


def test_a_cut_reply_keeps_its_outcome_and_the_model_hears_of_it():
    cut = ChatReply('{"values": ', finish="length")
    found = {"values": [{"value": "30 seconds", "source": 1}]}
    reasoner, model = thinking(cut, ChatReply("{" * 9, finish="repeated"), found)
    with opened_ledger(purse()) as ledger:
        assert reasoner.extract(QUESTION, [ITEM])[0].value == "30 seconds"
    assert [call.outcome for call in ledger.calls] == ["length", "repeated", "ok"]
    assert "write less" in model.requests[1].messages[-1].content


@pytest.mark.parametrize("repairs", [0, 1])
def test_repairs_can_be_fewer(repairs):
    reasoner, model = thinking(*["{}"] * 3, llm_repairs=repairs)
    reasoner.extract(QUESTION, [ITEM])
    assert len(model.requests) == repairs + 1


@pytest.mark.parametrize(
    ("text", "language", "found"),
    [
        ("The refund interface waits for thirty seconds.", "zh", "en"),
        ("Интерфейс возврата ждёт не больше тридцати секунд.", "en", "ru"),
        ("退款接口最多等待三十秒钟的时间。", "ru", "zh"),
        ("Time: 30 s", "zh", ""),
        ("The refund interface waits for thirty seconds.", "en", ""),
        ("The refund interface waits for thirty seconds.", "und", ""),
        ("退款接口 RefundService 的 timeout 最大为 30 秒。", "zh", ""),
    ],
)
def test_another_language_is_seen_when_there_is_enough_text(text, language, found):
    assert other_language(text, language) == found
