"""Values of slots: short, of the wanted kind, at their exact place, in four languages."""

from __future__ import annotations

import pytest
from builders import asking, graded, piece, weights_for
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from core.settings import Settings
from core.types import AnswerKind, Evidence, Finding, SubQuestion
from reasoning.rules.reasoner import RulesReasoner


def found(question: SubQuestion, *evidence: Evidence) -> list[Finding]:
    reasoner = RulesReasoner(Settings(), weights_for(evidence), None)
    return reasoner.extract(question, evidence)


FIRST = [
    (
        asking("Which association published Journal of Botany?", slot="association"),
        piece(
            "The Journal of Botany is a journal. It has been published by the American Plant "
            "Association since 1950.",
            title="Journal of Botany",
        ),
        "American Plant Association",
    ),
    (
        asking("Which association published Journal of Botany?", slot="association"),
        piece(
            "The American Plant Association was founded in Boston. It publishes the Journal of "
            "Botany and two newsletters.",
            title="American Plant Association",
        ),
        "American Plant Association",
    ),
    (
        asking("Who is the composer of Aurora?", wants="person", slot="composer"),
        piece("Aurora is an opera in three acts by Héctor Panizza, first performed in 1908."),
        "Héctor Panizza",
    ),
    (
        asking("In which city was Ann Lee born?", wants="place", slot="city"),
        piece("Ann Lee was a leader. She was born in Manchester, England, and moved to York."),
        "Manchester",
    ),
    (
        asking("Which country is Ann Lee from?", wants="place", slot="country"),
        piece("Ann Lee was a leader who came from the old city of Manchester, England, in 1890."),
        "England",
    ),
    (
        asking("When was the ward opened?", wants="date", slot="date"),
        piece("The ward has 12 beds. The ward was opened on 3 May 1921 by Bob Ray."),
        "3 May 1921",
    ),
    (
        asking("What is the highest dose of morphine?", wants="number"),
        piece("The dose is on a card. The highest dose of morphine is 20 mg. Ask at 7 pm."),
        "20 mg",
    ),
    (
        asking("Какая ассоциация издавала журнал «Ботаника»?", "ru", slot="ассоциация"),
        piece("Его читали все. Журнал «Ботаника» издавала Русская ассоциация врачей в 1950 году."),
        "Русская ассоциация врачей",
    ),
    (
        asking("В каком городе родился Иван Петров?", "ru", wants="place", slot="город"),
        piece("Иван Петров родился 14 марта 1879 года в городе Ульм на юге Германии.", "ru"),
        "Ульм",
    ),
    (
        asking("Коли засновано місто Одеса?", "uk", wants="date", slot="рік"),
        piece("Одеса — місто на півдні. Місто Одеса засновано 2 вересня 1794 року.", "uk"),
        "2 вересня 1794",
    ),
    (
        asking("《晨光》的作者是谁？", "zh", wants="person", slot="作者"),
        piece("《晨光》是清代小说，作者曹雪芹。全书共一百二十回。", "zh"),
        "曹雪芹",
    ),
    (
        asking("北京的人口是多少？", "zh", wants="number"),
        piece("北京是中国的首都，2020年常住人口为2189万人。", "zh"),
        "2189万人",
    ),
]


@pytest.mark.parametrize(("question", "evidence", "value"), FIRST)
def test_the_best_value_comes_first(question: SubQuestion, evidence: Evidence, value: str) -> None:
    if question.language == "ru":
        evidence = evidence.model_copy(update={"language": "ru"})
    assert found(question, graded(evidence))[0].value == value


def test_what_the_question_names_is_no_answer() -> None:
    question = asking("Who is the wife of Bob Ray?", wants="person")
    item = graded(piece("Bob Ray lived in Lyon. In 1950 Bob Ray married Ann Lee."))
    values = [one.value for one in found(question, item)]
    assert values[0] == "Ann Lee"
    assert "Bob Ray" not in values


def test_files_addresses_and_words_run_together_are_no_values() -> None:
    question = asking("What are the subtypes of liver cancer?", wants="list", slot="subtype")
    text = (
        "Subtypes of liver cancer: File:Liver.svg from commons.wikimedia.org shows "
        "anditsbloodsupplyCRUKsvg. The subtypes of liver cancer are Hepatoma and Cholangioma."
    )
    values = {one.value for one in found(question, graded(piece(text)))}
    assert "Hepatoma" in values
    assert not any(part in value for value in values for part in ("wikimedia", "svg", "File"))


def test_each_value_is_named_once() -> None:
    question = asking("Who leads the ward?", wants="person")
    item = graded(piece("Today the ward is led by Ann Lee. The ward was led by Ann Lee in May."))
    values = [one.value for one in found(question, item)]
    assert values.count("Ann Lee") == 1


def test_a_list_gives_its_items() -> None:
    question = asking("What are the five largest cities?", wants="list", slot="city")
    item = graded(piece("The five largest cities are Lyon, Nice, Lille, Nantes and Brest."))
    values = {one.value for one in found(question, item)}
    assert {"Lyon", "Nice", "Lille", "Nantes", "Brest"} <= values


def test_yes_or_no_has_no_value() -> None:
    question = asking("Is the ward open?", wants="yesno")
    assert found(question, graded(piece("The ward is open. Ann Lee runs it."))) == []


WORDS = (
    "The ward. Ann Lee 12 beds! 3 May 1921 Где врач? Иван Петров 床位 20 张。 《晨光》 \n\n - | Dr."
    " No… «Тут» dose, 3.5 mg; (1970) United States, Lyon $1,000 5% 北京 1950年 is a of"
).split(" ")
KINDS: list[AnswerKind] = ["text", "person", "place", "date", "number", "list"]


@settings(max_examples=examples(150), deadline=None)
@given(
    text=st.one_of(
        st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join), st.text(max_size=60)
    ),
    title=st.sampled_from(["", "Ann Lee", "Lyon (city)", "晨光"]),
    language=st.sampled_from(["en", "ru", "uk", "zh", "de"]),
    wants=st.sampled_from(KINDS),
)
def test_every_value_stands_where_it_says(
    text: str, title: str, language: str, wants: AnswerKind
) -> None:
    item = graded(piece(text, language, title=title))
    question = asking("Which city is the dose of Bob from?", language, wants=wants)
    for one in found(question, item):
        assert getattr(item, one.field)[one.start : one.end] == one.value
        assert one.value.strip() == one.value != ""
