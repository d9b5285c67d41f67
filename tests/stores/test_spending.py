"""Tokens of callers: counted over 24 hours; the rest is in tests/contracts."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes import Clock
from hypothesis import given
from hypothesis import strategies as st

from stores.accounts.keys import HOUR, HOURS, Spending
from stores.sqlite.database import Database

ANN = ("acme", "ann")
START = 1_000_000 * HOUR + 120


def test_what_is_a_day_old_no_longer_counts(tmp_path: Path) -> None:
    clock = Clock(float(START))
    database = Database(tmp_path / "catalogue.sqlite3")
    spending = Spending(database, clock)
    spending.add(*ANN, 300)
    clock.now += 5 * HOUR
    spending.add(*ANN, 200)
    assert spending.seconds_until(*ANN, 501) == 0
    wait = spending.seconds_until(*ANN, 400)
    assert 18 * HOUR < wait <= 19 * HOUR
    clock.now += wait
    assert (spending.spent(*ANN), spending.seconds_until(*ANN, 400)) == (200, 0)
    clock.now += HOURS * HOUR
    spending.add(*ANN, 1)
    rows = database.read().execute("SELECT count(*) FROM spending").fetchone()
    assert (spending.spent(*ANN), rows[0]) == (1, 1)
    database.close()


@given(
    st.lists(st.tuples(st.integers(0, 30 * HOUR), st.integers(1, 1000)), max_size=12),
    st.integers(1, 3000),
)
def test_after_the_wait_there_is_room_and_not_before(
    tmp_path_factory: pytest.TempPathFactory, spent: list[tuple[int, int]], allowed: int
) -> None:
    clock = Clock(float(START))
    database = Database(tmp_path_factory.mktemp("spending") / "catalogue.sqlite3")
    spending = Spending(database, clock)
    for later, tokens in spent:
        clock.now += later / 6
        spending.add(*ANN, tokens)
    wait = spending.seconds_until(*ANN, allowed)
    assert (wait == 0) == (spending.spent(*ANN) < allowed)
    if wait:
        clock.now += wait - 2
        assert spending.spent(*ANN) >= allowed
        clock.now += 2
        assert spending.spent(*ANN) < allowed
    assert wait <= HOURS * HOUR
    database.close()
