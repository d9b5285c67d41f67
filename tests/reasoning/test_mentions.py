"""What a question wants all that is written about, and the things that it names."""

from __future__ import annotations

import pytest

from reasoning.rules.answering.summaries import topic_asked
from reasoning.rules.answering.things import things_asked
from reasoning.rules.lexicon import lexicon


@pytest.mark.parametrize(
    ("question", "language", "topic"),
    [
        ("What do the documents say about scrap wood?", "en", "scrap wood"),
        ("Does the staff handbook mention pets?", "en", "pets"),
        ("Is there anything about lost keys in the handbook?", "en", "lost keys"),
        ("Is the laser cutter mentioned anywhere?", "en", "the laser cutter"),
        ("Tell me about how to start the compressor", "en", "how to start the compressor"),
        ("Что в документах сказано о «читательский билет»?", "ru", "читательский билет"),
        ("Есть ли что-нибудь о выставках?", "ru", "выставках"),
        ("Що кажуть документи про гардероб?", "uk", "гардероб"),
        ("Чи згадується тут ліфт?", "uk", "ліфт"),
        ("文档里关于浇花说了什么？", "zh", "浇花"),
        ("规定里有关于申请的内容吗？", "zh", "申请"),
    ],
)
def test_a_question_about_all_that_is_written(question: str, language: str, topic: str) -> None:
    assert topic_asked(question, language) == topic


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("What did Darwin say about pigeons?", "en"),
        ("What about Saturdays?", "en"),
        ("What do you know about me?", "en"),
        ("What do the documents cost?", "en"),
        ("Что вы знаете обо мне?", "ru"),
        ("Кто выдаёт билет?", "ru"),
        ("谁负责浇花？", "zh"),
    ],
)
def test_other_questions_name_no_topic(question: str, language: str) -> None:
    assert topic_asked(question, language) == ""


@pytest.mark.parametrize(
    ("question", "language", "things"),
    [
        ("When does the museum open?", "en", ["museum"]),
        ("How much does lunch cost?", "en", ["lunch"]),
        ("How long does a reboot take?", "en", ["reboot"]),
        ("What colour is the badge?", "en", ["badge"]),
        ("Who founded Rome?", "en", []),
        ("Сколько стоит обед?", "ru", ["обед"]),
        ("Де розташований басейн?", "uk", ["басейн"]),
        ("", "uk", []),
        ("До котрої години працює офіс?", "uk", ["офіс"]),
        ("Are pharmacists allowed to smoke?", "en", ["pharmacists"]),
        ("博物馆几点开门？", "zh", ["博物馆"]),
    ],
)
def test_the_things_that_a_question_names(question: str, language: str, things: list[str]) -> None:
    assert [one.noun for one in things_asked(question, lexicon(language))] == things


def test_a_word_within_another_is_not_taken_out() -> None:
    assert lexicon("zh").remove("谁审批申请？", "filler") == "谁审批申请？"
    assert "请" not in lexicon("zh").remove("请告诉我如何申请", "filler").replace("申请", "")
