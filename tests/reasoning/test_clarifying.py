"""When a question is asked back, and what a reply to it means, in all four languages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.types import Clarification, Evidence
from reasoning import clarifying
from reasoning.clarifying import (
    answer_greeting,
    chosen,
    clarification_text,
    declined,
    joined,
    not_found,
    plain_text,
    unclear,
)
from reasoning.types import Turn

PLAIN = Clarification(question="?")


@pytest.mark.parametrize(
    ("question", "word"),
    [
        ("Who maintains it?", "it"),
        ("What is its population?", "its"),
        ("When was that released?", "that"),
        ("What does this mean?", "this"),
        ("who is he", "he"),
        ("what about them?", "them"),
        ("Кто его поддерживает?", "его"),
        ("Сколько это стоит?", "это"),
        ("Это обязательно?", "это"),
        ("Какой у неё срок?", "неё"),
        ("Хто це написав?", "це"),
        ("Який у нього ліміт?", "нього"),
        ("谁维护它?", "它"),
        ("这是谁写的?", "这"),
        ("其价格是多少?", "其"),
    ],
)
def test_a_question_about_nothing_named_is_asked_back(question: str, word: str) -> None:
    asked = unclear(question, [])
    assert asked is not None and word in asked.question.lower()
    assert asked.options == []


@pytest.mark.parametrize("question", ["why?", "And when?", "А когда?", "А коли?", "为什么?"])
def test_a_question_without_any_word_of_its_own_is_asked_back(question: str) -> None:
    asked = unclear(question, [])
    assert asked is not None and "“" not in asked.question and "«" not in asked.question


@pytest.mark.parametrize(
    "question",
    [
        "Who maintains the XPay refund API?",
        "Is there parking?",
        "How long does it take to get a refund?",
        "What is the refund limit for it?",
        "Which team maintains this?",
        "refund limit",
        "Who wrote It?",
        "Who are The Who?",
        'What is "this"?',
        "What is IT?",
        "How many people live there?",
        "What happened in 1912?",
        "Кто поддерживает интерфейс возвратов?",
        "Сколько времени это занимает у клиента?",
        "Можно ли вернуть товар?",
        "Хто підтримує інтерфейс повернень?",
        "Чи є тут стоянка?",
        "谁维护退款接口?",
        "其他费用是多少?",
        "该系统由谁维护?",
    ],
)
def test_a_question_that_names_something_is_searched(question: str) -> None:
    assert unclear(question, []) is None


@pytest.mark.parametrize(
    ("earlier", "question"),
    [
        ("What is the XPay refund API?", "Who maintains it?"),
        ("Что такое интерфейс возвратов?", "Кто его поддерживает?"),
        ("Що таке інтерфейс повернень?", "Хто його підтримує?"),
        ("什么是退款接口?", "谁维护它?"),
    ],
)
def test_what_an_earlier_question_names_is_enough(earlier: str, question: str) -> None:
    assert unclear(question, [Turn(earlier, "An answer.")]) is None
    assert unclear(question, [Turn(earlier, ""), Turn("why?", "")]) is None
    assert unclear(question, [Turn(question, "An answer about the refund API.")]) is not None


def found(title: str, grade: int, source: str = "a.md") -> Evidence:
    return Evidence(
        evidence_id=title,
        chunk_id=title,
        document_id=title,
        document_key=title,
        source=source,
        title=title,
        text="",
        grades={"q1": grade},
    )


def test_related_documents_are_offered_best_first_and_each_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    evidence = [
        found("Refund rules", 1),
        found("Weather", 0),
        found("Payout API", 2),
        found("refund RULES", 1),
    ]
    asked = not_found("What is the fee?", evidence)
    assert asked is not None
    assert asked.options == ["Payout API", "Refund rules"]
    assert asked.question.startswith("I found nothing")
    monkeypatch.setattr(clarifying, "OPTIONS", 1)
    fewer = not_found("What is the fee?", evidence)
    assert fewer is not None and fewer.options == ["Payout API"]


def test_a_title_with_a_word_of_the_question_is_related() -> None:
    evidence = [found("Weather", 0), found("Payout fees", 0), found("Ledger", 1)]
    asked = not_found("Which fees are there in Japan?", evidence)
    assert asked is not None and asked.options == ["Ledger", "Payout fees"]


@pytest.mark.parametrize(
    "evidence",
    [[], [found("Weather", 0)], [found("", 1, source="")], [found("The fees", 1)]],
    ids=["nothing", "off topic", "no title", "only repeats the question"],
)
def test_without_anything_to_offer_nothing_is_asked(evidence: list[Evidence]) -> None:
    assert not_found("What is the fee?", evidence) is None


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("What is the fee?", "en"),
        ("Какая комиссия за перевод?", "ru"),
        ("Яка комісія за переказ?", "uk"),
        ("手续费是多少?", "zh"),
    ],
)
def test_it_asks_in_the_language_of_the_question(question: str, language: str) -> None:
    asked = not_found(question, [found("Payout API", 1)])
    starts = {"en": "I found", "ru": "В этих", "uk": "У цих", "zh": "在这些"}
    assert asked is not None and asked.question.startswith(starts[language])


@given(st.text(max_size=300))
def test_an_option_is_one_short_line(title: str) -> None:
    shown = plain_text(title)
    assert len(shown) <= 80 and shown.isprintable()
    assert shown == shown.strip()


def test_an_option_has_no_tags() -> None:
    assert plain_text('Fees<script src="x">\nand\x00 <b>refunds</b>') == "Fees and? refunds"
    assert plain_text("if a < b and c > d") == "if a < b and c > d"


def test_a_reply_may_be_the_number_of_an_option() -> None:
    asked = Clarification(question="Which?", options=["Payout API", "Refund API"])
    assert chosen("2", asked) == chosen(" 2. ", asked) == chosen("(2)", asked) == "Refund API"
    for text in ("3", "0", "2024", "9" * 5000, "0" * 12 + "12", "the second", "²"):
        assert chosen(text, asked) == text
    assert clarification_text(asked) == "Which?\n1. Payout API\n2. Refund API"


@pytest.mark.parametrize(
    ("reply", "question"),
    [
        ("no", "Who maintains it?"),
        ("None of these.", "Who maintains it?"),
        ("No, thanks!", "Who maintains it?"),
        ("Нет", "Кто его поддерживает?"),
        ("ни один из них", "Кто его поддерживает?"),
        ("Ні", "Хто його підтримує?"),
        ("жоден з них", "Хто його підтримує?"),
        ("都不是。", "谁维护它?"),
        ("no", "谁维护它?"),
    ],
)
def test_no_is_no(reply: str, question: str) -> None:
    assert declined(reply, question)


@pytest.mark.parametrize(
    "reply",
    ["the no-show policy", "No limit policy", "Нет, договор аренды", "нічого собі", "不锈钢"],
)
def test_what_says_more_than_no_is_an_answer(reply: str) -> None:
    assert not declined(reply, "Who maintains it?")


def test_a_reply_completes_the_question_or_takes_its_place() -> None:
    offered = Clarification(question="?", options=["Who owns what", "Payout API"])
    assert joined("Who owns it?", "Payout API", offered) == "Who owns it? (Payout API)"
    assert joined("Who owns it?", "Who owns what", offered) == "Who owns it? (Who owns what)"
    other = "Who maintains the refund API?"
    assert joined("Who owns it?", other, offered) == other
    assert joined("Who owns it?", "What about them?", PLAIN).startswith("Who owns it?")


@pytest.mark.parametrize(
    ("text", "language", "begins"),
    [
        ("Thanks, that was really helpful, have a nice day!", "en", "Goodbye"),
        ("Great, thanks a lot for explaining the refund API!", "en", "You are welcome"),
        ("You are the best, thank you!", "en", "You are welcome"),
        ("Спасибо большое, ты мне очень помог!", "ru", "Пожалуйста"),
        ("Дуже дякую, це було корисно, гарного вечора!", "uk", "До побачення"),
        ("谢谢你，帮了我大忙，祝你愉快！", "zh", "再见"),
        ("Hello, what is the timeout?", "en", ""),
        ("thanks for that, what is the timeout?", "en", ""),
        ("Привет! Кто это?", "ru", ""),
        ("Дякую! А хто це?", "uk", ""),
        ("你好，最大超时是多少？", "zh", ""),
        ("no thanks", "en", ""),
        ("haha fair enough", "en", "Glad"),
        ("oh wow, good point", "en", "All right"),
        ("ахаха, ну логично", "ru", "Хорошо"),
        ("оце так, цікаво", "uk", "Гаразд"),
        ("哈哈，有道理", "zh", "很高兴"),
        ("fair use", "en", ""),
        ("Как правильно?", "ru", ""),
        ("Як?", "uk", ""),
        ("可以报销吗", "zh", ""),
    ],
)
def test_small_talk_gets_a_line_and_a_question_behind_it_none(
    text: str, language: str, begins: str
) -> None:
    said = answer_greeting(text, language)
    assert said.startswith(begins) if begins else said == ""
