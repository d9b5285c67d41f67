"""Chapters of plain texts are found by lines that stand alone; a sentence or a list is none."""

from __future__ import annotations

import pytest

from ingest.loaders.outline import Outline
from ingest.loaders.text import plain_text
from ingest.loaders.text.plain_text import add_plain_text


def sections(text: str) -> list[tuple[str, str]]:
    outline = Outline()
    add_plain_text(outline, text)
    return [(block.section, block.text.split("\n")[0]) for block in outline.finish()]


def test_a_chapter_has_its_title_from_the_line_below() -> None:
    text = (
        "A HISTORY\n\nCHAPTER I\n\nTHE ROCK\n\nIt is bare.\n\nChapter II. The Tower\n\nIt is high."
    )
    assert sections(text) == [
        ("", "A HISTORY"),
        ("CHAPTER I. THE ROCK", "It is bare."),
        ("Chapter II. The Tower", "It is high."),
    ]


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        ("Глава первая. Соль\n\nЕё варили.\n\nГлава вторая\n\nТорговля\n\nЕё везли.",
         ["Глава первая. Соль", "Глава вторая. Торговля"]),
        ("РОЗДІЛ 1\n\nПочаток\n\nБула весна.\n\nРОЗДІЛ 2\n\nМинув рік.",
         ["РОЗДІЛ 1. Початок", "РОЗДІЛ 2"]),
        ("第一章 盐的来历\n\n盐来自井。\n\n第二章\n\n盐的贸易\n\n船运盐。",
         ["第一章 盐的来历", "第二章. 盐的贸易"]),
        ("Manual\n\n1 Setup\n\nPlug it in.\n\n1.1 Cables\n\nUse two.\n\n2. Use\n\nPress it.",
         ["1 Setup", "1 Setup › 1.1 Cables", "2. Use"]),
        ("Letter\n\nOPENING HOURS:\n\nFrom nine to five.", ["OPENING HOURS"]),
        ("**NOTES**\n\nOne.\n\n**TERMS**\n\nTwo.", ["TERMS"]),
    ],
)  # fmt: skip
def test_headings_of_plain_texts(text: str, headings: list[str]) -> None:
    assert [section for section, _ in sections(text) if section] == headings


@pytest.mark.parametrize(
    "text",
    [
        "Chapter 3 explains the tides.\n\nIt is short.",
        "Глава первая рассказывает о соли.\n\nОна короткая.",
        "第三章讲的是盐的贸易。\n\n很短。",
        "List\n\n1. Buy milk.\n\n2. Buy bread.\n\nThat is all.",
        "Book\n\nCHAPTER I\n\nCHAPTER II\n\nCHAPTER III",
        "It cost 3 pounds\n\n7 Days later he paid.\n\nNobody knew.",
        "Call\n\n800.475.FAIR\n\nor write.",
    ],
)
def test_what_is_no_heading_stays_prose(text: str) -> None:
    assert [section for section, _ in sections(text)] == [""]


def test_no_word_is_lost_and_a_chapter_does_not_name_the_document() -> None:
    text = "CHAPTER I\n\nTHE ROCK\n\nIt is bare.\n\n  It is wet.\n\nCHAPTER II\n\nIt is high.\n"
    (document,) = plain_text.load("rock.txt", text)
    assert document.title == "rock"
    kept = " ".join(f"{block.section} {block.text}" for block in document.blocks)
    assert set(text.replace(".", "").split()) <= set(kept.replace(".", "").split())
