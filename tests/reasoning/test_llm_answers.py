"""Answers of a scripted model: streamed by sentences, cited to characters, in one language."""

from __future__ import annotations

import pytest
from builders import answered as one_answer
from builders import asking, graded, piece
from llm_doubles import breaking, purse, thinking

from core.budget import opened_ledger
from core.types import Plan, Understanding
from models.chat.types import ChatReply, ModelReplyError, ModelTimeout
from reasoning.llm.answer import cite
from reasoning.verification import unsupported_reason

CHUNK = (
    "Refunds are made through the payments gateway. The refund API waits at most 30 seconds. "
    "Then it gives up. Alice Moor maintains the refund service. She can be called at night."
)
ITEM = graded(piece(CHUNK))
OTHER = graded(piece("The gateway logs every refund for seven years."), 2)
QUESTION = asking("How long does the refund API wait, and who maintains it?")
FIRST = "The refund API waits at most 30 seconds."
SECOND = "Alice Moor maintains the refund service."
BOTH = "The refund API waits at most 30 seconds [1]. Alice Moor maintains the refund service. [1]"
NULL = "NOT FOUND"


def answered(*replies, evidence=(ITEM,), question=QUESTION, plan=None, embedder=None, **values):
    """Answer and return the draft, the model, the ledger, and what was heard on the way."""
    reasoner, model = thinking(*replies, evidence=evidence, embedder=embedder, **values)
    heard: list[object] = []
    with opened_ledger(purse()) as ledger:
        ledger.on_text = lambda text: heard.append(text)
        ledger.on_claim = heard.append
        known = Understanding(question=question.text, language=question.language)
        draft = reasoner.answer(known, plan or Plan(questions=[question]), evidence)
    return draft, model, ledger, heard


def test_sentences_are_cited_to_what_they_rest_on():
    draft, model, ledger, _ = answered(BOTH)
    assert [claim.text for claim in draft.claims] == [FIRST, SECOND]
    assert [claim.citations[0].quote for claim in draft.claims] == [FIRST, SECOND]
    known = {ITEM.evidence_id: ITEM}
    assert [unsupported_reason(claim, known) for claim in draft.claims] == ["", ""]
    assert [claim.question_id for claim in draft.claims] == ["q1", "q1"]
    assert (draft.missing, ledger.degraded) == ([], [])
    assert model.requests[0].schema is None and model.requests[0].alternatives


def test_sentences_and_text_are_heard_in_order_while_they_are_written():
    draft, _, _, heard = answered(BOTH)
    texts = [piece for piece in heard if isinstance(piece, str)]
    assert [claim for claim in heard if not isinstance(claim, str)] == draft.claims
    assert "".join(texts) == BOTH and len(texts) > 6
    before = "".join(piece for piece in heard[: heard.index(draft.claims[0])])
    assert SECOND not in before and "[1]. " in before


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
def test_whole_sentences_of_a_reply_that_breaks_off_are_kept(last):
    draft, model, ledger, heard = answered(last(BOTH[: BOTH.index("maintains")]))
    assert [claim.text for claim in draft.claims] == [FIRST]
    assert (len(model.requests), ledger.degraded) == (1, [])
    assert draft.claims[0] in heard


def test_without_a_whole_sentence_the_rules_answer():
    said = "The refund API wa"
    draft, model, ledger, _ = answered(breaking(ModelTimeout("no token for 15 s"), said))
    assert draft.claims and draft.claims[0].text in CHUNK
    assert ledger.degraded == ["answer: the model did not answer (no token for 15 s)"]
    assert len(model.requests) == 1


def test_all_parts_are_answered_in_one_call():
    asked = [asking("How long?", id="q1"), asking("Who?", id="q2"), asking("Why?", id="q3")]
    long = piece("It waits at most 30 seconds.", grades={"q1": 3, "q2": 1})
    who = piece("Alice Moor maintains it.", grades={"q2": 3})
    draft, model, _, heard = answered(
        "It waits at most 30 seconds [1]. Alice Moor maintains it [2].",
        evidence=(long, who),
        plan=Plan(questions=asked),
    )
    assert [(c.question_id, c.citations[0].chunk_id) for c in draft.claims] == [
        ("q1", long.chunk_id),
        ("q2", who.chunk_id),
    ]
    assert draft.missing == ["Why?"]
    assert len(model.requests) == 1
    assert all(isinstance(one, str) for one in heard)  # the rules' of another part may come first


def test_a_part_that_the_model_leaves_out_has_the_rules_answer():
    asked = [asking("How long does it wait?", id="q1"), asking("Who maintains it?", id="q2")]
    long = piece("It waits at most 30 seconds.", grades={"q1": 3})
    who = piece("Alice Moor maintains it.", grades={"q2": 3})
    draft, _, _, _ = answered(
        "It waits at most 30 seconds [1].", evidence=(long, who), plan=Plan(questions=asked)
    )
    assert [claim.text for claim in draft.claims] == [long.text, who.text]


def test_saying_that_nothing_answers_is_an_answer():
    draft, model, ledger, heard = answered(NULL)
    assert (draft.claims, draft.missing) == ([], [QUESTION.text])
    assert (len(model.requests), ledger.degraded, heard) == (1, [], [])


def test_what_the_rules_are_sure_of_stands_where_the_model_is_not(minilm):
    unsure = ChatReply(NULL, alternatives={"NOT": 0.2, "The": 0.7})
    question = asking("How long does the refund API wait at most?", wants="number")
    draft, _, _, _ = answered(unsure, question=question, embedder=minilm)
    assert draft.claims[0].text == FIRST
    sure = ChatReply(NULL, alternatives={"NOT": 0.9})
    draft, _, _, _ = answered(sure, question=question, embedder=minilm)
    assert draft.claims == []


def test_a_model_that_was_not_examined_takes_no_sure_answer_away(minilm):
    reasoner, _ = thinking(NULL, NULL, evidence=[ITEM], embedder=minilm)
    question = asking("How long does the refund API wait at most?", wants="number")
    with opened_ledger(purse()) as ledger:
        assert not one_answer(reasoner, question, [ITEM]).claims
        reasoner._verbs -= {"null"}
        (claim,) = one_answer(reasoner, question, [ITEM]).claims
    assert claim.text == FIRST
    assert ledger.notes == ["the model finds no answer; the rules' stands"]


@pytest.mark.parametrize(
    "said",
    [
        f"{FIRST} [1] Она ждёт не больше тридцати секунд [1].",
        f"{FIRST} [1] It waits at most 30 seconds [1].",
        "The **refund API** waits at most 30 seconds [1]. It waits, it waits, it waits [1].",
    ],
    ids=["another script", "said before", "repeats"],
)
def test_what_adds_nothing_is_not_printed(said):
    draft, _, _, _ = answered(said, question=asking("How long does the refund API wait at most?"))
    assert [claim.text for claim in draft.claims] == [FIRST]


def test_a_fragment_gives_way_to_the_rules_sentence():
    draft, _, _, _ = answered("Alice Moor [1]", question=asking("Who maintains the service?"))
    assert draft.claims[0].text.endswith(".")


def test_a_sentence_that_its_evidence_does_not_support_gives_way_to_the_rules():
    draft, _, _, _ = answered("The refund API waits at most 99 seconds [1].")
    assert draft.claims[0].text in CHUNK


def test_the_best_evidence_comes_first():
    _, model, _, _ = answered(NULL, evidence=(OTHER, ITEM))
    text = model.requests[0].messages[-1].content
    assert text.index("Alice Moor") < text.index("seven years")


def test_there_are_no_more_sentences_than_settings_allow():
    said = " ".join(f"The refund API waits at most 3{n} seconds [1]." for n in range(9))
    _, _, _, heard = answered(said)
    assert sum(not isinstance(one, str) for one in heard) == 2


def test_bad_sentences_are_left_out_beside_good_ones():
    bad = ["... [1]", f"{'x' * 5000} [1].", "Интерфейс возврата ждёт не больше 30 секунд [1]."]
    said = "\n".join([*bad, BOTH, FIRST])
    draft, _, _, _ = answered(said)
    assert [claim.text for claim in draft.claims] == [FIRST, SECOND]


@pytest.mark.parametrize(
    "said",
    [
        "The refund API waits at most 30 seconds [1].",
        "The refund API waits at most 30 seconds.[1, 2]",
        "The refund API waits at most 30 seconds. [1][2]",
        "- The refund API waits at most 30 seconds 【1】.",
        "The refund API waits at most 30 seconds [9].",
        "The refund API waits at most 30 seconds.",
    ],
)
def test_the_models_own_marks_are_read_and_taken_off(said):
    draft, _, _, _ = answered(said, evidence=(ITEM, OTHER))
    assert [claim.text for claim in draft.claims] == [FIRST]
    assert draft.claims[0].citations[0].chunk_id == ITEM.chunk_id


def test_what_cannot_be_written_or_shown_becomes_a_blank():
    draft, _, _, _ = answered("The refund API\u009b waits at most\u202e 30 seconds [1].")
    assert [claim.text for claim in draft.claims] == [FIRST]


def test_a_source_that_says_nothing_of_it_is_not_cited():
    cats = graded(piece("Cats sleep through afternoons."), 2)
    draft, _, _, _ = answered(
        "Alice Moor maintains the refund service [1, 2, 1].",
        evidence=(ITEM, cats),
        question=asking("Who maintains the service?"),
    )
    assert [c.chunk_id for c in draft.claims[0].citations] == [ITEM.chunk_id]


SAID = {
    "en": ("How long does the refund take?", "The refund takes at most 30 seconds.", "in English"),
    "ru": ("Сколько длится возврат?", "Возврат длится не более 30 секунд.", "in Russian"),
    "uk": ("Скільки триває повернення?", "Повернення триває щонайбільше 30 секунд.", "Ukrainian"),
    "zh": ("退款需要多长时间?", "退款最多需要30秒。", "in Chinese"),
    "de": ("Wie lange dauert die Erstattung?", "Die Erstattung dauert höchstens 30 Sekunden.",
           "in German"),
}  # fmt: skip


@pytest.mark.parametrize("language", SAID)
def test_an_answer_is_asked_for_in_the_language_of_the_question(language):
    question, text, style = SAID[language]
    item = graded(piece(text, language))
    draft, model, ledger, _ = answered(
        f"{text} [1]",
        evidence=(item,),
        question=asking(question, language),
    )
    assert style in model.prompts
    assert unsupported_reason(draft.claims[0], {item.evidence_id: item}) == ""
    assert ledger.degraded == []


def test_thinking_is_asked_for_before_answers_only():
    _, model, _, _ = answered(NULL, llm_thinking=True, context=16384)
    (request,) = model.requests
    assert request.thinking and request.max_tokens == 300
    _, model, _, _ = answered(NULL)
    assert not model.requests[0].thinking and model.requests[0].max_tokens == 300


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
