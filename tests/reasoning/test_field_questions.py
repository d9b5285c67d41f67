"""Questions for the fields of works: under other names, in other languages, of other works."""

from __future__ import annotations

import pytest
from builders import asking, piece, weights_for

from core.settings import Settings
from core.types import AnswerKind, Evidence
from reasoning.rules.reasoner import RulesReasoner
from reasoning.rules.records.fields import (
    asked_fields,
    counts_records,
    field_lines,
    is_name,
    records_of,
    theme_of,
)
from reasoning.rules.records.schema import canonical

TITLE = "The Amber Mill of Velbor"
RECORD = piece(
    f"title: {TITLE}\nauthor: Ada Lumson\npublisher: Galtan Press\nextent: 240 p.\nyear: 1931",
    title=TITLE,
    kind="record",
)
PROSE = piece(f"In the evening Hugo Kirman counts the steps in {TITLE}.", title=TITLE)


def answered(question: str, wants: AnswerKind, *evidence: Evidence, language: str = "en") -> str:
    """Return the answer to a question from the evidence that is graded as good enough."""
    rules = RulesReasoner(Settings(), weights_for(evidence), None)
    asked = asking(question, language, wants)
    grades = rules.grade(asked, evidence)
    good = [
        item.model_copy(update={"grades": {"q1": grade.grade}})
        for item, grade in zip(evidence, grades, strict=True)
        if grade.grade >= 2
    ]
    understood = rules.understand(question, [])
    plan = rules.plan(understood, []).model_copy(update={"questions": [asked]})
    return " | ".join(claim.text for claim in rules.answer(understood, plan, good).claims)


@pytest.mark.parametrize(
    ("question", "language", "wants", "answer"),
    [
        ("Who wrote {t}?", "en", "person", "author: Ada Lumson"),
        ("Хто автор книги «{t}»?", "uk", "person", "author: Ada Lumson"),
        ("Кем написана «{t}»?", "ru", "person", "author: Ada Lumson"),
        ("《{t}》是谁写的?", "zh", "person", "author: Ada Lumson"),
        ("В каком издательстве вышла «{t}»?", "ru", "text", "publisher: Galtan Press"),
        ("Which company brought out {t}?", "en", "text", "publisher: Galtan Press"),
        ("When did {t} come out?", "en", "date", "year: 1931"),
        ("《{t}》有多少页?", "zh", "number", "extent: 240 p."),
        ("Who wrote Amber Mill?", "en", "person", "author: Ada Lumson"),
    ],
)
def test_a_field_under_another_name(
    question: str, language: str, wants: AnswerKind, answer: str
) -> None:
    text = question.format(t=TITLE)
    assert answered(text, wants, RECORD, PROSE, language=language) == f"{TITLE} — {answer}"


@pytest.mark.parametrize(
    ("question", "wants"),
    [
        ("Who translated {t}?", "person"),
        ("What is the ISBN of {t}?", "text"),
        ("What language is {t} in?", "text"),
        ("Who wrote the preface to {t}?", "person"),
        ("Who wrote The Amber Ferry of Velbor?", "person"),
        ("What is the price of {t}?", "text"),
        ("What colour is {t}?", "text"),
    ],
)
def test_what_a_record_lacks_is_not_answered(question: str, wants: AnswerKind) -> None:
    assert answered(question.format(t=TITLE), wants, RECORD) == ""


def test_a_sentence_that_speaks_of_the_field_answers() -> None:
    said = piece(
        "The book was published by Galtan Press of Velbor in the spring of 1931.", title=TITLE
    )
    assert "Galtan" in answered(f"Who published {TITLE}?", "person", said)
    page = piece(f"{TITLE}, by Ada Lumson.", title=TITLE)
    assert "Lumson" in answered(f"Who wrote {TITLE}?", "person", page)


@pytest.mark.parametrize(
    ("question", "meant"),
    [
        ("Who wrote The Amber Mill of Velbor?", True),
        ("who wrote amber mill of velbor", True),
        ("Who wrote Amber Mill?", True),
        ("Who wrote Mill?", False),
        ("Who wrote The Copper Mill of Velbor?", False),
        ("who wrote the copper mill of velbor", False),
    ],
)
def test_which_record_is_meant(question: str, meant: bool) -> None:
    asked = asked_fields(question)
    assert asked is not None
    assert bool(records_of(asked.name, question, [RECORD])) is meant


def test_the_title_said_in_full_is_meant_before_longer_ones() -> None:
    longer = piece("title: The Amber Mill of Velbor Revisited", kind="record")
    longer = longer.model_copy(update={"title": "The Amber Mill of Velbor Revisited"})
    assert records_of("Amber Mill of Velbor", f"Who wrote {TITLE}?", [longer, RECORD]) == [RECORD]


@pytest.mark.parametrize(
    ("question", "fields"),
    [
        ("Who published Gilead?", ("publisher",)),
        ("When was Gilead published?", ("published",)),
        ("Where was Gilead published?", ("place",)),
        ("Кем издана «Gilead»?", ("publisher",)),
        ("Who wrote the preface to Gilead?", ("part",)),
        ("Is Gilead by Marilynne Robinson?", ()),
        ("Who ran the mill in the year 1931?", ()),
        ("How does Gilead end?", ()),
    ],
)
def test_a_verb_counts_by_the_kind_that_is_wanted(question: str, fields: tuple[str, ...]) -> None:
    asked = asked_fields(question)
    assert (asked.fields if asked else ()) == fields


@pytest.mark.parametrize(
    ("label", "field"),
    [
        ("Author", "author"), ("автори", "author"), ("作者", "author"), ("publisher", "publisher"),
        ("published", "published"), ("год издания", "published"), ("出版年", "published"),
        ("рік", "published"), ("объём", "pages"), ("мова", "language"), ("isbn13", "isbn"),
    ],
)  # fmt: skip
def test_labels_of_every_language(label: str, field: str) -> None:
    assert canonical(label) == field


@pytest.mark.parametrize(
    ("question", "theme"),
    [
        ("What should I read about war and soldiers?", "war and soldiers"),
        ("books about animals for small children", "animals for small children"),
        ("Порадь книжки про магію та чарівників", "магію та чарівників"),
        ("Посоветуйте литературу по психологии", "психологии"),
        ("推荐几本哲学书", "哲学"),
    ],
)
def test_a_wish_for_something_to_read_has_a_theme(question: str, theme: str) -> None:
    assert theme_of(question) == theme
    assert not is_name(theme)


@pytest.mark.parametrize(
    ("question", "counts"),
    [
        ("How many tickets are open?", True),
        ("Сколько заявок по продукту?", True),
        ("How many pages does Gilead have?", False),
    ],
)
def test_a_count_of_records_is_no_field_of_one(question: str, counts: bool) -> None:
    assert counts_records(question) is counts


def test_a_field_of_its_own_is_asked_for_in_the_language_of_the_question() -> None:
    text = "name: Tern\nsigned by: Ada Lumson\nsigned by zh: 阿达"
    labels = ("signed by",)
    asked = asked_fields("Who signs Tern?", labels)
    assert asked is not None
    assert asked.fields == labels
    shown = {lang: [text[a:b] for a, b in field_lines(text, labels, lang)] for lang in ("en", "zh")}
    assert shown == {"en": ["signed by: Ada Lumson"], "zh": ["signed by zh: 阿达"]}
