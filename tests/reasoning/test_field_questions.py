"""Questions for the fields of works: under other names, in other languages, of other works."""

from __future__ import annotations

import pytest
from builders import asking, piece, weights_for

from core.settings import Settings
from core.types import AnswerKind, Evidence
from reasoning.rules.field_questions import Meant, field_question
from reasoning.rules.field_words import field_of, kind_of, scan
from reasoning.rules.reasoner import RulesReasoner

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
    assert answered(text, wants, RECORD, PROSE, language=language) == answer


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


@pytest.mark.parametrize("text", ["The mill stands by the river.", "He wrote down the number."])
def test_the_text_of_a_work_does_not_say_its_publisher(text: str) -> None:
    assert answered(f"Who published {TITLE}?", "person", piece(text, title=TITLE)) == ""


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
        ("Who wrote The Amber Mill of Velbor?", Meant.named),
        ("Who wrote amber mill of velbor?", Meant.named),
        ("Who wrote Amber Mill?", Meant.named),
        ("Who wrote the book that Galtan Press made?", Meant.described),
        ("Who wrote The Copper Mill of Velbor?", Meant.other),
        ("who wrote the copper mill of velbor", Meant.other),
        ("Who wrote the cover of The Amber Mill of Velbor?", Meant.other),
        ("Who wrote much about walruses?", Meant.unknown),
    ],
)
def test_which_document_is_meant(question: str, meant: Meant) -> None:
    assert field_question(question, RECORD).meant is meant


@pytest.mark.parametrize(
    ("label", "field"),
    [
        ("Author", "author"), ("автори", "author"), ("作者", "author"), ("publisher", "publisher"),
        ("published", "published"), ("год издания", "published"), ("出版年", "published"),
        ("updated_at", "updated"), ("объём", "pages"), ("мова", "language"), ("author_id", ""),
        ("weight", ""),
    ],
)  # fmt: skip
def test_labels_of_every_language(label: str, field: str) -> None:
    assert field_of(label) == field


def test_a_verb_counts_by_the_kind_that_is_wanted() -> None:
    for asked, field in (("Who", "publisher"), ("When", "published"), ("Where", "place")):
        question = f"{asked} was it published?"
        assert scan(question, kind_of(question)).verbs == {field}


def test_a_year_that_is_said_is_not_asked_for() -> None:
    question = field_question("Who ran the mill in the year 1931?", RECORD)
    assert "published" not in question.fields
