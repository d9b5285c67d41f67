"""Sentences that read alone are told from fragments, code, orders and what leans on others."""

from __future__ import annotations

import pytest

from core.language.numbering import heading_number, number_of, plural_form
from core.language.passages import standalone, states_topic


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "The harbour master counts all the fishing boats of the town."),
        ("ru", "Начальник порта считает все рыбацкие лодки этого города."),
        ("uk", "Начальник порту рахує всі рибальські човни міста."),
        ("zh", "港口管理员负责统计全市所有渔船的数量。"),
    ],
)
def test_a_statement_reads_alone(language: str, text: str) -> None:
    assert standalone(text, language) >= 0.7


@pytest.mark.parametrize(
    "text",
    [
        "The harbour",
        "Why does the harbour master count the boats?",
        "- a list item of the harbour and all its boats.",
        "It counts all the fishing boats of the town.",
        "and counts all the fishing boats of the town.",
        "for boat in harbour.boats: print(boat.name, boat.length == 3).",
        "name: The harbour master of the fishing town counts boats.",
    ],
)
def test_a_fragment_or_code_does_not(text: str) -> None:
    assert standalone(text, "en") == 0


def test_what_leans_on_its_neighbours_is_worth_less() -> None:
    alone = standalone("The harbour master counts all the fishing boats of the town.", "en")
    leans = standalone("However, the harbour master counts all the fishing boats of town.", "en")
    assert 0 < leans < alone


@pytest.mark.parametrize(
    ("heading", "number"),
    [
        *(("3. Setup", 3), ("Chapter III: The Trip", 3), ("Chapter Three", 3), ("III. War", 3)),
        *(("Глава третья", 3), ("Розділ 3. Зима", 3), ("第三章 冬天", 3), ("第3节", 3)),
        *(("3.1 Setup", 0), ("2024 in review", 0), ("Setup", 0), ("I am here", 0), ("Mild", 0)),
    ],
)
def test_numbers_of_headings(heading: str, number: int) -> None:
    assert heading_number(heading) == number


def test_numbers_in_words() -> None:
    assert [number_of(word) for word in ("3", "XIV", "twelfth", "mild", "третьей")] == [
        *(3, 14, 12, 0, 3)
    ]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "This handbook explains how a small apple orchard is planted and pruned."),
        ("ru", "В этом руководстве рассматривается, как сажать и обрезать яблони."),
        ("uk", "Цей посібник пояснює, як садити й обрізати яблуні."),
        ("zh", "本手册说明如何种植、修剪和收获苹果树，供志愿者使用。"),
    ],
)
def test_a_statement_of_the_topic_reads_alone(language: str, text: str) -> None:
    assert states_topic(text, language)
    assert standalone(text, language) == 1


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "A second risk is the price of steel, which rose by a fifth last year."),
        ("en", "Another reason is that residents may go to court against the bridge."),
        ("ru", "Второй риск заключается в цене стали, которая за год выросла на треть."),
        ("uk", "Другий ризик полягає в ціні сталі, що торік зросла на третину."),
        ("zh", "第二个风险是钢材的价格，去年上涨了五分之一。"),
    ],
)
def test_what_goes_on_with_another_sentence_does_not(language: str, text: str) -> None:
    assert standalone(text, language) == 0


def test_a_sentence_that_opens_a_text_leans_on_none() -> None:
    text = "When deploying applications a common approach is to build a container image."
    assert standalone(text, "en") < standalone(text, "en", opens=True)


def test_a_noun_has_the_form_of_its_count() -> None:
    slavic = ("документ", "документа", "документов")
    counts = (1, 2, 5, 11, 12, 21, 22, 111)
    assert "".join(str(slavic.index(plural_form(n, slavic))) for n in counts) == "01222012"
    assert [plural_form(n, ("document", "documents")) for n in (1, 2)] == ["document", "documents"]
    assert plural_form(7, ("个文档",)) == "个文档"
