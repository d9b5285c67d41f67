"""Answers of a scripted model: streamed claim by claim, cited to characters, in one language."""

from __future__ import annotations

import json

import pytest
from builders import asking, graded, piece
from llm_doubles import breaking, purse, thinking

from core.ledger import opened_ledger
from core.types import Plan, Understanding
from models.chat.types import ChatReply, ModelReplyError, ModelTimeout
from reasoning.llm.citing import cite
from reasoning.verification import unsupported_reason

CHUNK = (
    "Refunds are made through the payments gateway. The refund API waits at most 30 seconds. "
    "Then it gives up. Alice Moor maintains the refund service. She can be called at night."
)
ITEM = graded(piece(CHUNK))
OTHER = graded(piece("The gateway logs every refund for seven years."), 2)
QUESTION = asking("How long does the refund API wait, and who maintains it?")
KNOWN = Understanding(question=QUESTION.text, language="en")
FIRST = {"text": "The refund API waits at most 30 seconds.", "sources": [1]}
SECOND = {"text": "Alice Moor maintains the refund service.", "sources": [1]}


def answered(*replies, evidence=(ITEM,), question=QUESTION, plan=None, embedder=None, **values):
    """Answer and return the draft, the model, the ledger, and what was heard on the way."""
    reasoner, model = thinking(*replies, evidence=evidence, embedder=embedder, **values)
    heard: list[object] = []
    with opened_ledger(purse()) as ledger:
        ledger.on_text = lambda text: heard.append(text)
        ledger.on_claim = heard.append
        draft = reasoner.answer(KNOWN, plan or Plan(questions=[question]), evidence)
    return draft, model, ledger, heard


def test_claims_are_cited_to_the_sentence_they_rest_on():
    draft, _, ledger, _ = answered({"claims": [FIRST, SECOND]})
    quotes = [claim.citations[0].quote for claim in draft.claims]
    assert quotes == [FIRST["text"], SECOND["text"]]
    known = {ITEM.evidence_id: ITEM}
    assert [unsupported_reason(claim, known) for claim in draft.claims] == ["", ""]
    assert [claim.question_id for claim in draft.claims] == ["q1", "q1"]
    assert (draft.missing, ledger.degraded) == ([], [])


def test_claims_and_text_are_heard_in_order_while_they_are_written():
    draft, _, _, heard = answered({"claims": [FIRST, SECOND]})
    texts = [piece for piece in heard if isinstance(piece, str)]
    assert [claim for claim in heard if not isinstance(claim, str)] == draft.claims
    assert "".join(texts) == f"{FIRST['text']} {SECOND['text']}"
    assert len(texts) > 6
    before = heard[: heard.index(draft.claims[0])]
    assert "".join(before) == FIRST["text"]


def test_text_with_escapes_is_heard_as_it_is_meant():
    text = 'The refund API\nwaits "at most" 30 seconds \\ 30 с 😀.'
    reply = json.dumps({"claims": [{"text": text, "sources": [1]}]})
    _, _, _, heard = answered(reply)
    assert "".join(piece for piece in heard if isinstance(piece, str)) == text


@pytest.mark.parametrize(
    "last",
    [
        lambda said: ChatReply(said, finish="length"),
        lambda said: ChatReply(said, finish="repeated"),
        lambda said: breaking(ModelTimeout("no token for 15 s"), said),
        lambda said: breaking(ModelReplyError("the connection broke"), said),
    ],
    ids=["length", "repeated", "timeout", "died"],
)
def test_whole_claims_of_a_reply_that_breaks_off_are_kept(last):
    said = json.dumps({"claims": [FIRST, SECOND]})
    draft, model, ledger, heard = answered(last(said[: said.index("maintains")]))
    assert [claim.text for claim in draft.claims] == [FIRST["text"]]
    assert (len(model.requests), ledger.degraded) == (1, [])
    assert draft.claims[0] in heard


def test_without_a_whole_claim_the_rules_answer_and_are_heard():
    said = '{"claims": [{"text": "The refund API wa'
    draft, model, ledger, heard = answered(breaking(ModelTimeout("no token for 15 s"), said))
    assert draft.claims and draft.claims[0].text in CHUNK
    assert ledger.degraded == ["answer: the model did not answer (no token for 15 s)"]
    assert [claim for claim in heard if not isinstance(claim, str)] == draft.claims
    assert len(model.requests) == 1


def test_each_sub_question_is_answered_from_its_own_evidence():
    asked = [asking("How long?", id="q1"), asking("Who?", id="q2"), asking("Why?", id="q3")]
    long = piece("It waits at most 30 seconds.", grades={"q1": 3, "q2": 1})
    who = piece("Alice Moor maintains it.", grades={"q2": 2})
    draft, model, _, _ = answered(
        {"claims": [{"text": "It waits at most 30 seconds.", "sources": [1]}]},
        {"claims": [{"text": "Alice Moor maintains it.", "sources": [1]}]},
        evidence=(long, who),
        plan=Plan(questions=asked),
    )
    assert [(c.question_id, c.citations[0].chunk_id) for c in draft.claims] == [
        ("q1", long.chunk_id),
        ("q2", who.chunk_id),
    ]
    assert draft.missing == ["Why?"]
    first, second = (request.messages[1].content for request in model.requests)
    assert "Alice" not in first and "seconds" not in second


def test_saying_that_nothing_answers_is_an_answer():
    draft, model, ledger, _ = answered({"claims": []})
    assert (draft.claims, draft.missing) == ([], [QUESTION.text])
    assert (len(model.requests), ledger.degraded) == (1, [])


def test_the_best_graded_evidence_comes_first():
    _, model, _, _ = answered({"claims": []}, evidence=(OTHER, ITEM))
    text = model.requests[0].messages[1].content
    assert text.index("Alice Moor") < text.index("seven years")


@pytest.mark.parametrize(("wants", "most"), [("text", 2), ("list", 5)])
def test_there_are_no_more_claims_than_settings_allow(wants, most):
    claims = [
        {"text": f"The refund API waits at most 3{n} seconds.", "sources": [1]} for n in range(9)
    ]
    question = asking("What is there?", wants=wants)
    draft, model, _, heard = answered({"claims": claims}, question=question)
    assert len(draft.claims) == most
    assert "".join(p for p in heard if isinstance(p, str)).count("waits") == most
    assert f"at most {most} claims" in model.prompts


def test_bad_claims_are_left_out_beside_good_ones():
    claims = [
        {"text": "No source.", "sources": []},
        {"text": "Unknown source.", "sources": [4, 0, -1]},
        {"text": "...", "sources": [1]},
        {"text": "x" * 5000, "sources": [1]},
        FIRST,
        FIRST,
    ]
    draft, _, _, _ = answered({"claims": claims})
    assert [claim.text for claim in draft.claims] == [FIRST["text"]]


def test_the_models_own_marks_are_taken_off():
    marked = [
        {"text": "The refund API waits at most 30 seconds [1].", "sources": [1]},
        {"text": "Alice Moor maintains the refund service.[1, 2]", "sources": [1]},
    ]
    draft, _, _, _ = answered({"claims": marked})
    assert [claim.text for claim in draft.claims] == [FIRST["text"], SECOND["text"]]


def test_a_source_that_says_nothing_of_it_is_not_cited():
    both = {**SECOND, "sources": [1, 2, 1]}
    cats = graded(piece("Cats sleep through afternoons."), 2)
    draft, _, _, _ = answered(
        {"claims": [both]}, evidence=(ITEM, cats), question=asking("Who maintains the service?")
    )
    assert [c.chunk_id for c in draft.claims[0].citations] == [ITEM.chunk_id]


def test_the_wrong_language_is_repaired_once():
    wrong = {"claims": [{"text": "Интерфейс возврата ждёт не больше 30 секунд.", "sources": [1]}]}
    draft, model, ledger, heard = answered(wrong, {"claims": [FIRST]})
    assert [claim.text for claim in draft.claims] == [FIRST["text"]]
    assert "language of the question" in model.requests[1].messages[-1].content
    assert [call.outcome for call in ledger.calls] == ["invalid", "ok"]
    draft, model, ledger, _ = answered(wrong, wrong, wrong)
    assert draft.claims[0].text in CHUNK
    assert (len(model.requests), len(ledger.degraded)) == (2, 1)


SAID = {
    "en": ("How long does the refund take?", "The refund takes at most 30 seconds.", "Answer in E"),
    "ru": ("Сколько длится возврат?", "Возврат длится не более 30 секунд.", "Отвечай по-русски"),
    "uk": ("Скільки триває повернення?", "Повернення триває щонайбільше 30 секунд.", "Відповідай"),
    "zh": ("退款需要多长时间?", "退款最多需要30秒。", "请用中文回答"),
    "de": ("Wie lange dauert die Erstattung?", "Die Erstattung dauert höchstens 30 Sekunden.",
           "answer in German"),
}  # fmt: skip


@pytest.mark.parametrize("language", SAID)
def test_an_answer_is_asked_for_in_the_language_of_the_question(language):
    question, text, style = SAID[language]
    item = graded(piece(text, language))
    draft, model, ledger, _ = answered(
        {"claims": [{"text": text, "sources": [1]}]},
        evidence=(item,),
        question=asking(question, language),
    )
    assert style in model.prompts
    assert unsupported_reason(draft.claims[0], {item.evidence_id: item}) == ""
    assert ledger.degraded == []


def test_thinking_is_asked_for_before_answers_only():
    _, model, _, _ = answered({"claims": []}, llm_thinking=True, context=16384)
    (request,) = model.requests
    assert request.thinking and request.max_tokens == 1024
    _, model, _, _ = answered({"claims": []})
    assert not model.requests[0].thinking and model.requests[0].max_tokens == 1024


def test_a_claim_over_two_sentences_cites_both():
    item = piece("Refunds are slow. The API waits 30 seconds. It is tried 5 times. Then it ends.")
    citation, overlap = cite("The API waits 30 seconds and is tried 5 times.", item)
    assert citation.quote == "The API waits 30 seconds. It is tried 5 times."
    assert item.text[citation.start : citation.end] == citation.quote
    assert overlap == 1


def test_a_claim_in_another_language_cites_what_means_the_same(minilm):
    citation, overlap = cite("谁负责", ITEM)
    assert overlap == 0
    assert CHUNK.startswith(citation.quote) and citation.quote.endswith("Then it gives up.")
    nearest, _ = cite("Nocturnal phone availability", ITEM, minilm)
    assert nearest.quote.endswith("She can be called at night.")


@pytest.mark.parametrize("text", ["", " ", "no end", "a. b", "。。。", "x" * 5000])
def test_a_quote_is_always_a_span_of_the_chunk(text):
    item = piece(text or "-")
    citation, _ = cite("Whatever x is said.", item)
    assert item.text[citation.start : citation.end] == citation.quote
    assert citation.quote
