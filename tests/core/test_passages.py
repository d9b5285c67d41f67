"""Sentences that read alone are told from fragments, code, orders and what leans on others."""

from __future__ import annotations

import pytest

from core.language.numbering import heading_number, number_of
from core.language.passages import standalone


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
