"""Names are found in any case, and by those of another script."""

from __future__ import annotations

import pytest

from stores.sqlite.record_conditions import sounds_like


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("Fyodor Dostoyevsky", "Достоевского"),
        ("William Shakespeare", "Шекспіра"),
        ("Stephen King", "Стивена Кинга"),
        ("Agatha Christie", "Агаты Кристи"),
        ("Ernest Hemingway", "Хемингуэй"),
        ("Достоевский", "Достоевского"),
    ],
)
def test_a_name_in_any_case_of_any_script(value: str, name: str) -> None:
    assert sounds_like(value, name)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("Neil Gaiman", "Гоголя"),
        ("Stephen King", "Стивена Крейна"),
        ("Fiction", "Ян"),
    ],
)
def test_another_name_is_none(value: str, name: str) -> None:
    assert not sounds_like(value, name)
