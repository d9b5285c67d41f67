"""Conditions on record fields: only values that the question names in full."""

from __future__ import annotations

import pytest

from core.tool_spec import ToolSpec
from core.types import FieldInfo
from reasoning.rules.conditions import date_field, field_conditions

SPEC = ToolSpec(
    name="staff",
    base="query_records",
    purpose="Staff.",
    fields=[
        FieldInfo(
            name="department", type="text", examples=["Surgery", "Eye Surgery", "Night Ward"]
        ),
        FieldInfo(name="head", type="text", examples=["Анна Петрова", "李明", "O. Kovalenko"]),
        FieldInfo(name="year", type="number", examples=["1998", "2004", "7"]),
        FieldInfo(name="floor", type="number", examples=["3"]),
    ],
)


@pytest.mark.parametrize(
    ("question", "language", "expected"),
    [
        ("Who leads surgery?", "en", [("department", "contains", "Surgery")]),
        ("Who leads eye surgery?", "en", [("department", "contains", "Eye Surgery")]),
        ("Is the ward at night quiet?", "en", [("department", "contains", "Night Ward")]),
        ("Чем заведует Анна Петрова?", "ru", [("head", "contains", "Анна Петрова")]),
        ("Где кабинет Анны Петровой?", "ru", [("head", "contains", "Анна Петрова")]),
        ("李明在哪个科室？", "zh", [("head", "contains", "李明")]),
        ("What was founded in 1998?", "en", [("year", "=", 1998.0)]),
        (
            "Was surgery founded in 2004?",
            "en",
            [("department", "contains", "Surgery"), ("year", "=", 2004.0)],
        ),
        ("Who works on floor 3, in room 7?", "en", []),
        ("Where is the ward?", "en", []),
        ("Где кабинет Анны?", "ru", []),
        ("谁负责？", "zh", []),
        ("", "en", []),
    ],
)
def test_named_values_become_conditions(
    question: str, language: str, expected: list[tuple[str, str, object]]
) -> None:
    found = field_conditions(question, language, SPEC)
    assert [(c["field"], c["op"], c["value"]) for c in found] == expected


@pytest.mark.parametrize(
    ("names", "field"),
    [
        (["name", "year"], "year"),
        (["updated_at", "created_at"], "created_at"),
        (["name"], None),
        ([], None),
    ],
)
def test_the_date_field_of_records(names: list[str], field: str | None) -> None:
    assert date_field(names) == field
