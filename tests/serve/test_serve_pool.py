"""The pool of worker threads: bounds, turns, taking back, and the end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import cast

import pytest
from serving import SECONDS, eventually

from app.session import Session
from serve.errors import Busy
from serve.runs.pool import FairPool, Owner, PoolLimits, Ticket
from serve.runs.runner import ask_threads

ANN, BOB = ("acme", "ann"), ("acme", "bob")


class Bench:
    """Submit works that wait for their gate, and note the order in which they began."""

    def __init__(self, **limits: int) -> None:
        given = {"threads": 2, "per_caller": 2, "per_caller_shared": 1}
        given |= {"waiting": 8, "waiting_per_caller": 8}
        self.pool = FairPool("test", PoolLimits(**(given | limits)))
        self.began: list[str] = []
        self.dropped: list[str] = []
        self.gates: dict[str, threading.Event] = {}

    def submit(self, owner: Owner, name: str) -> Ticket:
        gate = self.gates[name] = threading.Event()

        def work() -> None:
            self.began.append(name)
            gate.wait(SECONDS)

        return self.pool.submit(owner, work, lambda error: self.dropped.append(name))

    def open(self, *names: str) -> None:
        for name in names:
            self.gates[name].set()

    def end(self) -> None:
        self.pool.close()
        self.open(*self.gates)
        assert self.pool.join(SECONDS)


@pytest.fixture
def bench() -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def make(**limits: int) -> Bench:
        made.append(Bench(**limits))
        return made[-1]

    yield make
    for one in made:
        one.end()


def test_a_caller_who_floods_waits_behind_the_others(bench: Callable[..., Bench]) -> None:
    works = bench(threads=1, per_caller=1)
    for number in range(4):
        works.submit(ANN, f"ann{number}")
    eventually(lambda: works.began == ["ann0"])
    works.submit(BOB, "bob0")
    works.submit(BOB, "bob1")
    works.open(*works.gates)
    eventually(lambda: len(works.began) == 6)
    assert works.began == ["ann0", "bob0", "ann1", "bob1", "ann2", "ann3"]


def test_callers_who_wait_are_served_in_the_order_in_which_they_came(
    bench: Callable[..., Bench],
) -> None:
    works = bench(threads=1, per_caller=1, waiting=40)
    works.submit(ANN, "held")
    eventually(lambda: works.began == ["held"])
    names = [f"{(7 * number) % 20:02}" for number in range(20)]
    for name in names:
        works.submit(("acme", name), name)
    works.open(*works.gates)
    eventually(lambda: len(works.began) == 21)
    assert works.began[1:] == names


def test_a_caller_who_floods_is_not_passed_by_all_who_come_later(
    bench: Callable[..., Bench],
) -> None:
    works = bench(threads=1, per_caller=1)
    works.submit(ANN, "ann0")
    works.submit(ANN, "ann1")
    eventually(lambda: works.began == ["ann0"])
    for number, owner in enumerate("xyz"):
        works.submit(("acme", owner), owner)
        eventually(lambda number=number: len(works.began) == number + 1)
        works.open(works.began[-1])
    eventually(lambda: len(works.began) == 4)
    assert "ann1" in works.began


def test_one_caller_never_has_all_threads(bench: Callable[..., Bench]) -> None:
    works = bench(threads=3, per_caller=2)
    for number in range(5):
        works.submit(ANN, f"ann{number}")
    eventually(lambda: len(works.began) == 2)
    works.submit(BOB, "bob0")  # begins at once
    eventually(lambda: works.began[2:] == ["bob0"])
    assert works.pool.load == (3, 3)


def test_nobody_begins_a_second_while_others_are_there(bench: Callable[..., Bench]) -> None:
    works = bench(threads=3)
    works.submit(BOB, "bob0")
    eventually(lambda: works.began == ["bob0"])
    works.submit(ANN, "ann0")
    eventually(lambda: works.began == ["bob0", "ann0"])
    works.submit(ANN, "ann1")
    works.submit(BOB, "bob1")
    assert works.pool._next() is None  # the third thread leaves both in line
    assert works.pool.load == (2, 2)
    works.open("bob0")
    eventually(lambda: works.began == ["bob0", "ann0", "bob1"])  # one after the other
    assert works.pool._next() is None
    assert works.pool.load == (2, 1)
    works.open("bob1")
    eventually(lambda: works.began[3:] == ["ann1"])  # alone: two at once


def test_only_so_many_may_wait(bench: Callable[..., Bench]) -> None:
    works = bench(threads=1, per_caller=1, waiting=3, waiting_per_caller=2)
    for number in range(3):
        works.submit(ANN, f"ann{number}")
    with pytest.raises(Busy, match="one caller has at most 2") as turned_away:
        works.submit(ANN, "ann3")
    assert turned_away.value.of_caller and turned_away.value.retryable
    works.submit(BOB, "bob0")
    with pytest.raises(Busy, match="at most 3 requests wait") as turned_away:
        works.submit(BOB, "bob1")
    assert not turned_away.value.of_caller
    assert works.pool.load[0] + works.pool.load[1] == 4


def test_nothing_may_wait_but_a_free_thread_is_used(bench: Callable[..., Bench]) -> None:
    works = bench(threads=2, per_caller=1, waiting=0, waiting_per_caller=0)
    works.submit(ANN, "ann0")
    works.submit(BOB, "bob0")
    eventually(lambda: len(works.began) == 2)
    with pytest.raises(Busy):
        works.submit(("zoo", "cat"), "cat0")
    works.open("ann0")
    eventually(lambda: works.pool.load == (1, 0))
    works.submit(("zoo", "cat"), "cat0")
    eventually(lambda: works.began[-1] == "cat0")


def test_what_waits_can_be_taken_back(bench: Callable[..., Bench]) -> None:
    works = bench(threads=1, per_caller=1)
    first, second = works.submit(ANN, "first"), works.submit(ANN, "second")
    third = works.submit(ANN, "third")
    eventually(lambda: works.began == ["first"])
    assert works.pool.withdraw(second)
    assert not works.pool.withdraw(second)
    assert not works.pool.withdraw(first)
    works.open("first", "third")
    eventually(lambda: works.pool.load == (0, 0))
    assert works.began == ["first", "third"]
    assert not works.pool.withdraw(third)


def test_the_end_drops_what_waits_and_says_so(bench: Callable[..., Bench]) -> None:
    works = bench(threads=1, per_caller=1)
    works.submit(ANN, "first")
    works.submit(ANN, "second")
    eventually(lambda: works.began == ["first"])
    works.pool.close()
    assert works.dropped == ["second"]
    assert not works.pool.join(0.01)
    with pytest.raises(Busy, match="stopping"):
        works.submit(BOB, "late")
    works.open("first")
    assert works.pool.join(SECONDS)
    assert works.began == ["first"]


@pytest.mark.parametrize(("given", "slots", "expected"), [(0, 64, 64), (0, 1, None), (3, 64, 3)])
def test_as_many_questions_at_once_as_the_model_serves(
    session: Session, monkeypatch: pytest.MonkeyPatch, given: int, slots: int, expected: int | None
) -> None:
    chat = SimpleNamespace(capabilities=SimpleNamespace(slots=slots))
    held = cast(Session, SimpleNamespace(chat=chat))
    settings = session.settings.model_copy(update={"serve_threads": given})
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    assert ask_threads(held, settings) == (expected or 6)
    assert ask_threads(cast(Session, SimpleNamespace(chat=None)), settings) == (given or 6)
