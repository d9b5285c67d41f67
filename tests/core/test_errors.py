"""Each error is one line: the rule, the actual value, the next step; its class says who acts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import errors
from core.errors import CarrelError, DataLockedError, PolicyError, shorten
from tools.types import ToolError

EXIT_CODES = {
    "CarrelError": 1,
    "CallerError": 2,
    "PolicyError": 2,
    "AbsentError": 2,
    "InUseError": 2,
    "OperatorError": 4,
    "DataLockedError": 4,
    "DiskFullError": 4,
    "ModelError": 1,
    "DocumentError": 1,
}


def test_the_tree_and_its_exit_codes() -> None:
    found = {
        name: kind.exit_code
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, CarrelError)
    }
    assert found == EXIT_CODES
    assert issubclass(PolicyError, errors.CallerError)
    assert issubclass(ToolError, errors.CallerError)
    assert issubclass(DataLockedError, errors.OperatorError)


def test_only_what_others_hold_is_worth_another_try() -> None:
    kinds = [getattr(errors, name) for name in EXIT_CODES]
    again = [kind.__name__ for kind in kinds if kind.retryable]
    assert again == ["InUseError", "DataLockedError", "DiskFullError"]


@pytest.mark.parametrize(
    ("given_parts", "text"),
    [
        ({}, "the rule."),
        ({"value": "x"}, "the rule: x."),
        ({"value": 5}, "the rule: 5."),
        ({"value": 0}, "the rule: 0."),
        ({"hint": "do that."}, "the rule. Do that."),
        ({"value": ["a"], "hint": "do that"}, "the rule: ['a']. Do that."),
    ],
)
def test_the_parts_become_one_line(given_parts, text: str) -> None:
    assert str(CarrelError("the rule.", **given_parts)) == text


@given(st.one_of(st.text(), st.binary(), st.lists(st.integers())))
def test_any_value_is_shown_on_one_short_printable_line(value: object) -> None:
    shown = shorten(value)
    assert len(shown) <= 120
    assert shown.isprintable()
