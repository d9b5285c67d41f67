"""Failures whose cause is known are laid at it, each by its own stage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.session import Session
from benchmarks.attribution import FAULTS, Fault, laid_at, laid_in, world
from core.settings import load_settings
from evals.trajectories import agrees

NAMES = [f"{one.cause}-{one.kinds[0].__name__}" for one in FAULTS]
IN_THE_RUN = [one for one in FAULTS if not one.without and not one.acl]


@pytest.fixture(scope="module")
def bridges(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Session]]:
    settings = load_settings({"reasoner": "rules"})[0]
    folder = tmp_path_factory.mktemp("bridges")
    with world(folder, settings) as session:
        yield folder, session


@pytest.mark.parametrize(
    ("expected", "given", "agree"),
    [
        ("refund", "the refund window", True),
        ("window", "refund", False),
        (300, "300", True),
        ({"field": "year"}, {"field": "year", "op": "<", "value": 1800}, True),
        ({"field": "year", "value": 1900}, {"field": "year", "value": 1800}, False),
        ([{"field": "a"}, {"field": "b"}], [{"field": "b"}, {"field": "a"}], True),
        ([{"field": "a"}], [{"field": "a"}, {"field": "b"}], False),
        (["a"], "a", True),
        (True, None, False),
    ],
)
def test_arguments_agree_where_the_expected_ones_are_there(
    expected: object, given: object, agree: bool
) -> None:
    assert agrees(expected, given) is agree


@pytest.mark.parametrize("fault", IN_THE_RUN, ids=lambda one: one.cause)
def test_a_planted_fault_is_the_cause(bridges: tuple[Path, Session], fault: Fault) -> None:
    folder, session = bridges
    laid = laid_in(session, folder, replace(fault, kinds=fault.kinds[:1]), count=1)
    assert set(laid) == {fault.cause}


@pytest.mark.parametrize("fault", FAULTS, ids=NAMES)
def test_planted_faults_of_every_kind_of_case_are_the_cause(fault: Fault) -> None:
    settings = load_settings({"reasoner": "rules"})[0]
    laid = laid_at(fault, 3, settings)
    assert set(laid) - {"passed"} == {fault.cause}
