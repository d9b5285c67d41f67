"""Prose as people write it: counted nouns, words that lead a line, versions, steps, causes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from builders import answered, asking, graded, piece

from core.language.passages import spans_of
from core.settings import Settings
from reasoning.rules.answering.blocks import in_context
from reasoning.rules.answering.headings import leads
from reasoning.rules.answering.relevance import Relevance
from reasoning.rules.grade import grade
from reasoning.rules.lexicon import lexicon
from reasoning.rules.reasoner import RulesReasoner
from reasoning.rules.values.forms import counted_noun, counts
from reasoning.rules.values.versions import is_other_version

Rules = Callable[..., RulesReasoner]


@pytest.mark.parametrize(
    ("language", "question", "text", "counted"),
    [
        ("en", "How many employees are there?", "Employees get 30 days a year.", False),
        ("en", "How many employees are there?", "It has 45 skilled employees.", True),
        ("en", "How many employees are there?", "The employees number 45.", True),
        ("en", "How many employees are there?", "Employees come at 10:00.", False),
        ("en", "How many fish are caught?", "Eleven species of fish live here.", False),
        ("en", "How many species of moss grow?", "She described 31 new species of moss.", True),
        ("ru", "Сколько сотрудников в музее?", "Билет для сотрудников стоит 20 рублей.", False),
        ("ru", "Сколько экспонатов в музее?", "В музее 2300 экспонатов.", True),
        ("uk", "Скільки читачів у бібліотеці?", "У бібліотеці для читачів 84 книжки.", False),
        ("uk", "Скільки книжок у бібліотеці?", "У бібліотеці 84 книжки.", True),
        ("zh", "植物园有多少员工？", "植物园占地52公顷。", False),
        ("zh", "停车场有多少个车位？", "停车场有200个车位。", True),
        ("zh", "公司有多少员工？", "公司现有员工620人，在全国有48家门店。", True),
    ],
)
def test_a_number_counts_what_stands_by_it(
    language: str, question: str, text: str, counted: bool
) -> None:
    words = lexicon(language)
    nouns = counted_noun(question, words)
    assert nouns
    assert counts(text, nouns, words) is counted


@pytest.mark.parametrize(
    ("text", "sentence", "lead"),
    [
        ("Rent. It is due on Monday. Pay it here.\nPets. None.", "Pay it here.", "Rent"),
        ("Rent: It is due on Monday.\n\nPets: None.", "Pets: None.", "Pets"),
        ("It rained. We left.", "We left.", ""),
        ("Prices\n\nA towel costs 2 euros.", "A towel costs 2 euros.", "Prices"),
        ("Guests ask whether it rains.\nYes, it does.", "Yes, it does.", "Guests ask whether"),
    ],
)
def test_words_lead_what_follows(text: str, sentence: str, lead: str) -> None:
    spans = spans_of(text, "text")
    place = next(n for n, (start, end) in enumerate(spans) if text[start:end] == sentence)
    said = leads(text, spans, "text", "en")[place].text.strip()
    assert said.startswith(lead)
    assert bool(said) is bool(lead)


def test_the_first_line_of_a_table_leads_its_rows() -> None:
    text = "Ticket | Adults\nSingle | 5 €\nSeason | 165 €"
    assert leads(text, spans_of(text, "table"), "table", "en")[2].text == "Ticket | Adults"
    last = text.index("Season"), len(text)
    assert in_context(piece(text, kind="table"), *last, code=False) == last


def test_a_cause_comes_from_a_sentence_behind() -> None:
    text = "The treaty was broken in 1755. Welm closed the bay. The cause was a bad year."
    end = text.index(" Welm")
    assert in_context(piece(text), 0, end, code=False, brings="cause") == (0, len(text))
    assert in_context(piece(text), 0, end, code=False) == (0, end)


@pytest.mark.parametrize(
    ("question", "title", "other"),
    [
        ("What is the size in Quill 5.0?", "Quill 3.0 notes", True),
        ("What is the size in Quill 3.0?", "Quill 3.0 notes", False),
        ("What is the size in Quill 3?", "Quill 3.0 notes", False),
        ("What is the size in version 5?", "Quill version 3", True),
        ("What is the size in Quill?", "Quill 3.0 notes", False),
        ("What is the size in Quill 5.0?", "Notes", False),
    ],
)
def test_another_version_is_told(question: str, title: str, other: bool) -> None:
    assert is_other_version(question, "en", piece("The size is 4 KB.", title=title)) is other


def test_the_steps_of_a_section_are_one_answer(rules: Rules) -> None:
    parts = ["Hold the button.", "Wait for the red light.", "Then unplug the node."]
    items = [
        piece(
            text,
            document_id="node",
            document_key="node",
            title="Node",
            section="Node › Flash the firmware",
            ordinal=n,
        )
        for n, text in enumerate(parts)
    ]
    question = asking("How do I flash the firmware?")
    good = [graded(item) for item in items]
    made = answered(rules(good), question, good)
    assert [claim.text for claim in made.claims] == parts
    relevance = Relevance(None, lambda terms: dict.fromkeys(terms, 1.0))
    wanted = relevance.wanted(question, [])
    assert len({one.grade for one in grade(relevance, wanted, items, Settings())}) == 1
