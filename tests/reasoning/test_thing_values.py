"""Values that are things: phrases of technical texts, fields of records, titles."""

from __future__ import annotations

import pytest
from builders import asking, graded, piece, weights_for

from core.settings import Settings
from core.types import Evidence, Finding, SubQuestion
from reasoning.rules.reasoner import RulesReasoner


def found(question: SubQuestion, *evidence: Evidence) -> list[Finding]:
    return RulesReasoner(Settings(), weights_for(evidence), None).extract(question, evidence)


def record(text: str, language: str = "en", **values: object) -> Evidence:
    return graded(piece(text, language, **values))


@pytest.mark.parametrize(
    ("question", "text", "value"),
    [
        (
            asking("Which interface's longest delay is 40 seconds?", slot="interface"),
            "The ward uses it. The longest `delay` of the blood bank API is 40 seconds.",
            "blood bank API",
        ),
        (
            asking("Which API allows 12 calls per minute?", slot="api"),
            "The scan API allows 3 calls per minute. The bed list API allows 12 calls per minute.",
            "bed list API",
        ),
        (
            asking("Which department buys soap?", slot="department"),
            "Soap is bought by the central supply department. It opens at nine.",
            "central supply department",
        ),
        (
            asking("Which band sang Waterloo?", slot="band"),
            "Waterloo is a song. It was sung by the band ABBA in Lyon.",
            "ABBA",
        ),
    ],
)
def test_a_thing_is_its_whole_phrase(question: SubQuestion, text: str, value: str) -> None:
    assert found(question, graded(piece(text)))[0].value == value


def test_a_field_whose_label_says_the_noun_is_the_value() -> None:
    text = "subject: Beds arrive late\nbody: Ann Lee says beds arrive late.\nservice: svc-beds"
    item = record(text, kind="record", title="Beds arrive late")
    question = asking("What is the service that the ticket about late beds names?", slot="service")
    (first, *_) = found(question, item)
    assert (first.value, first.field) == ("svc-beds", "text")


def test_each_item_of_a_field_is_a_value() -> None:
    item = record("title: Tides\nauthors: Ann Lee, Bob Ray", kind="record", title="Tides")
    question = asking("Who is the author of Tides?", wants="person", slot="author")
    values = [one.value for one in found(question, item)]
    assert {"Ann Lee", "Bob Ray"} <= set(values)
    assert "Ann Lee, Bob Ray" not in values


@pytest.mark.parametrize(
    ("language", "question", "text", "title", "slot"),
    [
        ("en", "Which service counts beds?", "It counts beds and soap.", "Ward ledger", "service"),
        ("ru", "Какая книга учит читать детей?", "Учит читать детей.", "Азбука", "книга"),
        ("uk", "Яка повість розповідає про лікаря?", "Розповідає про лікаря.", "Місто", "повість"),
        ("zh", "统计床位的服务是哪个？", "它统计床位。", "床位账务", "服务"),
    ],
)
def test_a_record_is_the_thing_it_describes(
    language: str, question: str, text: str, title: str, slot: str
) -> None:
    item = record(text, language, kind="annotation", title=title, metadata={"name": title})
    first = found(asking(question, language, slot=slot), item)[0]
    assert (first.value, first.field, first.start) == (title, "title", 0)


def test_a_field_of_a_record_comes_before_its_name() -> None:
    text = "name: Ward ledger\nteam: Soap\nrole: counts beds"
    metadata = {"name": "Ward ledger", "team": "Soap"}
    item = record(text, kind="record", title="Ward ledger", metadata=metadata)
    question = asking("Which team runs what counts beds?", slot="team")
    assert found(question, item)[0].value == "Soap"


def test_a_word_in_small_letters_is_no_title() -> None:
    item = record("The tides are high. It tells of Ann Lee.", kind="annotation", title="The Tides")
    first = found(asking("Which book tells of Ann Lee?", slot="book"), item)[0]
    assert (first.value, first.field) == ("The Tides", "title")


def test_the_title_of_a_page_is_no_value_without_a_reason() -> None:
    item = graded(piece("Ford makes cars in the north. Cars need oil.", title="Victoria"))
    values = [one.value for one in found(asking("Which brand makes cars?", slot="brand"), item)]
    assert "Victoria" not in values
