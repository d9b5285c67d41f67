"""Understanding: kinds of answers, wishes for a list, names, and what a follow-up is about."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from core.types import Understanding
from reasoning.rules.lexicon import lexicon
from reasoning.rules.topic import entities
from reasoning.rules.understand import understand
from reasoning.types import Turn


def known(question: str, *earlier: str, parts: int = 5) -> Understanding:
    return understand(question, [Turn(text, "An answer.") for text in earlier], parts)


@pytest.mark.parametrize(
    ("question", "wants"),
    [
        ("Who leads the blood bank?", "person"),
        ("Which team runs the pharmacy?", "person"),
        ("Who's on call tonight?", "person"),
        ("When does the ward open?", "date"),
        ("What year was the ward built?", "date"),
        ("Where can I park?", "place"),
        ("Where's the pharmacy?", "place"),
        ("How many beds are there?", "number"),
        ("How long is the visit?", "number"),
        ("Can a child be admitted?", "yesno"),
        ("Is the ward open?", "yesno"),
        ("What is a triage nurse?", "text"),
        ("What happens when the alarm rings?", "text"),
        ("Why is the lift closed?", "text"),
        ("Кто заведует отделением?", "person"),
        ("Когда открывается отделение?", "date"),
        ("Где находится аптека?", "place"),
        ("Сколько длится приём?", "number"),
        ("Можно ли приходить ночью?", "yesno"),
        ("Что такое триаж?", "text"),
        ("Хто завідує відділенням?", "person"),
        ("Коли відчиняється відділення?", "date"),
        ("Де розташована аптека?", "place"),
        ("Скільки триває прийом?", "number"),
        ("Чи можна приходити вночі?", "yesno"),
        ("Що таке тріаж?", "text"),
        ("谁负责药房？", "person"),
        ("病房什么时候开放？", "date"),
        ("药房在哪里？", "place"),
        ("药房有几个窗口？", "number"),
        ("最大剂量是多少？", "number"),
        ("可以带孩子吗？", "yesno"),
        ("什么是分诊？", "text"),
    ],
)
def test_the_question_word_decides_the_kind_of_answer(question: str, wants: str) -> None:
    assert known(question).required_fields == [wants]


@pytest.mark.parametrize(
    ("question", "intent"),
    [
        ("Recommend something on botany.", "recommend"),
        ("What can I read about botany?", "recommend"),
        ("Botany for beginners", "recommend"),
        ("Посоветуйте книгу по ботанике", "recommend"),
        ("Что почитать по ботанике?", "recommend"),
        ("Порадьте книжку з ботаніки", "recommend"),
        ("Що почитати з ботаніки?", "recommend"),
        ("推荐几本植物学的书", "recommend"),
        ("植物学入门", "recommend"),
        ("Is there a ward for children?", "fact"),
        ("What do beginners need?", "fact"),
        ("Who wrote the guide to botany?", "fact"),
        ("Кто написал учебник ботаники?", "fact"),
        ("Хто написав підручник ботаніки?", "fact"),
        ("谁写了植物学教材？", "fact"),
    ],
)
def test_a_wish_for_a_list_is_told_from_a_question(question: str, intent: str) -> None:
    made = known(question)
    assert made.intent == intent
    assert len(made.parts) == 1


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", "Who leads the Blood Bank in Lyon?", ["Blood Bank", "Lyon"]),
        ("en", "The pump is broken", []),
        ("en", "What does HL7 mean?", ["HL7"]),
        ("en", "Does jax.lax.scan unroll?", ["jax.lax.scan"]),
        ("en", "What did Marie Curie find in 1898?", ["Marie Curie", "1898"]),
        ("ru", "Кто такой Николай Пирогов?", ["Николай Пирогов"]),
        ("ru", "Что пишет журнал «Здоровье детей»?", ["Здоровье детей"]),
        ("uk", "Хто така Леся Українка?", ["Леся Українка"]),
        ("zh", "《本草纲目》是谁写的？", ["本草纲目"]),
    ],
)
def test_names_are_found(language: str, text: str, expected: list[str]) -> None:
    assert entities(text, lexicon(language)) == expected


@pytest.mark.parametrize(
    ("question", "about"),
    [
        ("Where is the Night Ward, who runs it and how many beds are there?", "Night Ward"),
        ("Где находится аптека, кто ею заведует и сколько там окон?", "аптека"),
        ("Де розташована аптека, хто нею завідує і скільки там вікон?", "аптека"),
        ("药房的容量是多少？谁维护？最近有故障吗？", "药房"),
    ],
)
def test_parts_that_leave_the_topic_out_get_it(question: str, about: str) -> None:
    first, *rest = known(question).parts
    assert first.about == ""
    assert len(rest) == 2
    assert all(about in part.about for part in rest)
    assert all(part.about in part.search_text for part in rest)


@pytest.mark.parametrize(
    ("question", "earlier", "about"),
    [
        ("and who maintains it?", ["What is the capacity of the Night Ward?"], "Night Ward"),
        ("who runs it?", ["Tell me about the Night Ward. What is its capacity?"], "Night Ward"),
        ("And where is it?", ["What is the dose?"], "dose"),
        ("And its price?", ["Where is Pump Nine?", "Who repairs it?"], "Pump Nine"),
        ("Who leads it?", ["Where is Pump Nine?", "Who built the Night Ward?"], "Night Ward"),
        ("а кто его поддерживает?", ["Какой предел дозы у прибора Альфа?"], "Альфа"),
        ("И где он?", ["Кто построил корпус?"], "корпус"),
        ("а хто його підтримує?", ["Яка межа дози у приладу Альфа?"], "Альфа"),
        ("А де він?", ["Хто збудував корпус?"], "корпус"),
        ("那谁维护它?", ["药房的容量是多少？"], "药房"),
        ("谁维护?", ["XR9 仪器的最大剂量是多少?"], "XR9"),
    ],
)
def test_a_follow_up_is_about_what_was_asked_before(
    question: str, earlier: list[str], about: str
) -> None:
    made = known(question, *earlier)
    assert about in made.parts[0].about
    assert about in made.question


@pytest.mark.parametrize(
    ("question", "earlier"),
    [
        ("Who leads the Blood Bank?", "What is the capacity of the Night Ward?"),
        ("How many patients did the eye clinic treat last year?", "Where is the Night Ward?"),
        ("Кто руководит Банком Крови?", "Где находится Ночное отделение?"),
        ("Хто керує Банком Крові?", "Де розташоване Нічне відділення?"),
        ("XR9 仪器由谁维护？", "药房的容量是多少？"),
    ],
)
def test_a_complete_question_keeps_to_itself(question: str, earlier: str) -> None:
    made = known(question, earlier)
    assert [part.about for part in made.parts] == [""]
    assert made.question == question


@pytest.mark.parametrize(
    ("question", "searched"),
    [
        (
            "When was the pump of Pump Nine repaired and by whom?",
            [
                "When was the pump of Pump Nine repaired",
                "by whom was the pump of Pump Nine repaired",
            ],
        ),
        (
            "Where and when was Ida Marlow born?",
            ["Where was Ida Marlow born", "when was Ida Marlow born"],
        ),
        ("By whom or by what was it damaged?", ["By whom by what was it damaged"]),
        ("Кем и когда был основан музей?", ["Кем был основан музей", "когда был основан музей"]),
        ("Коли й де відбулися збори?", ["Коли відбулися збори", "де відбулися збори"]),
    ],
)
def test_words_that_only_ask_share_what_is_asked_about(question: str, searched: list[str]) -> None:
    parts = known(question).parts
    whole = [one.text if one.text in searched else one.search_text for one in parts]
    assert whole == searched


def test_a_follow_up_that_only_asks_is_about_all_of_the_question_before() -> None:
    made = known("And by whom?", "When was the pump of the cellar repaired?")
    assert made.parts[0].about == "was the pump of the cellar repaired"


def test_a_follow_up_with_no_history_has_no_topic() -> None:
    assert known("and who maintains it?").parts[0].about == ""


def test_one_part_is_plain_and_two_are_multi() -> None:
    assert known("Who runs the ward?").kind == "plain"
    assert known("Who runs the ward? When is it open?").kind == "multi"
    assert known("Who runs the ward? When is it open?", parts=1).kind == "plain"


@settings(max_examples=examples(100), deadline=None)
@given(
    question=st.text(min_size=1, max_size=60),
    earlier=st.lists(st.text(max_size=40), max_size=2),
    limit=st.integers(1, 5),
)
def test_any_text_is_understood(question: str, earlier: list[str], limit: int) -> None:
    made = understand(question, [Turn(text, text) for text in earlier], limit)
    assert 1 <= len(made.parts) <= limit or not any(c.isalnum() for c in question)
    assert len(made.required_fields) == len(made.parts)
    assert (made.kind == "multi") == (len(made.parts) > 1)
