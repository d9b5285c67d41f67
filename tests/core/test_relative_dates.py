"""Days that a text names by the day it was written on."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from core.language.relative_dates import format_day, with_dates
from languages.language import known_languages

WEDNESDAY = date(2023, 6, 14)


@pytest.mark.parametrize(
    ("language", "text", "named"),
    [
        ("en", "I lost my job yesterday.", "13 June 2023"),
        ("en", "We met two days ago", "12 June 2023"),
        ("en", "I dyed my hair last week", "the week before 14 June 2023"),
        ("en", "We won last Friday", "9 June 2023"),
        ("en", "The exam is next Wednesday", "21 June 2023"),
        ("en", "I go there next month", "July 2023"),
        ("en", "I was in Rome last summer", "summer 2022"),
        ("en", "We married last year", "2022"),
        ("ru", "Позавчера я переехал", "12 июня 2023 года"),
        ("ru", "на прошлой неделе", "неделя перед 14 июня 2023 года"),
        ("ru", "в прошлую пятницу", "9 июня 2023 года"),
        ("ru", "через месяц", "июль 2023 года"),
        ("uk", "Вчора я переїхала", "13 червня 2023 року"),
        ("uk", "минулої п'ятниці", "9 червня 2023 року"),
        ("uk", "торік", "2022 рік"),
        ("zh", "我昨天辞职了", "2023年6月13日"),
        ("zh", "上周五我们见面", "2023年6月9日"),
        ("zh", "三天前", "2023年6月11日"),
    ],
)
def test_a_day_is_named_by_its_date(language: str, text: str, named: str) -> None:
    assert f"({named})" in with_dates(text, language, WEDNESDAY)


def test_a_text_without_such_a_day_stays_and_a_calendar_ends_somewhere() -> None:
    assert with_dates("I live in Kyiv since 2019.", "en", WEDNESDAY) == "I live in Kyiv since 2019."
    assert with_dates("yesterday", "en", date.min) == "yesterday"
    assert "(" in with_dates("last week", "eo", WEDNESDAY)  # an unknown language has English words
    assert format_day(WEDNESDAY, "en") == "14 June 2023"
    assert format_day(WEDNESDAY, "eo") == "14 June 2023"


@given(
    st.dates(),
    st.sampled_from([*known_languages()]),
    st.lists(
        st.sampled_from(
            ["yesterday", "last week", "вчера", "минулого тижня", "昨天", "上周五", "in"]
        )
    ),
)
@settings(max_examples=examples(200), deadline=None, derandomize=True)
def test_dates_are_only_added(written: date, language: str, words: list[str]) -> None:
    text = " ".join(words)
    dated = iter(with_dates(text, language, written))
    assert all(one in dated for one in text)  # every character, in its order
