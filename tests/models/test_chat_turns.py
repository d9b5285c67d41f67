"""Callers take turns: one who floods the model does not starve the others."""

from __future__ import annotations

import threading
import time

import pytest

from models.chat.turns import Turns
from models.chat.types import ModelCancelled, RunTimeout, ServerBusy


def late() -> float:
    return time.monotonic() + 60


def never() -> bool:
    return False


def waiters(turns: Turns, owners: list[str]) -> tuple[list[threading.Thread], list[str]]:
    """Start calls that wait, in this order, and return the order in which they run."""
    order: list[str] = []

    def call(owner: str) -> None:
        with turns.take_turn(owner, late(), never):
            order.append(owner)

    threads = []
    for place, owner in enumerate(owners, start=1):
        threads.append(threading.Thread(target=call, args=(owner,), daemon=True))
        threads[-1].start()
        while sum(map(len, turns._waiting.values())) < place:
            time.sleep(0.001)
    return threads, order


def test_fifty_calls_of_one_keep_nine_others_waiting_for_one_each() -> None:
    turns = Turns(1, 64)
    others = [f"user {n}" for n in range(9)]
    with turns.take_turn("flood", late(), never):
        threads, order = waiters(turns, ["flood"] * 50 + others)
    for thread in threads:
        thread.join(60)
    assert len(order) == 59
    assert order[1:10] == others
    assert set(order[10:]) == {"flood"}


def test_no_more_run_at_once_than_there_are_places() -> None:
    turns = Turns(2, 64)
    running = most = 0
    lock = threading.Lock()

    def call(owner: str) -> None:
        nonlocal running, most
        with turns.take_turn(owner, late(), never):
            with lock:
                running += 1
                most = max(most, running)
            time.sleep(0.005)
            with lock:
                running -= 1

    threads = [threading.Thread(target=call, args=(str(n % 5),)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (most, running, turns._free) == (2, 0, 2)


def test_a_full_queue_is_said_at_once() -> None:
    turns = Turns(1, 2)
    with turns.take_turn("a", late(), never):
        threads, _ = waiters(turns, ["b", "c"])
        with pytest.raises(ServerBusy, match="too many calls"), turns.take_turn("d", late(), never):
            pass
    for thread in threads:
        thread.join(60)
    assert (turns._free, turns._waiting, turns._granted) == (1, {}, set())


def test_waiting_ends_with_the_run_or_its_caller() -> None:
    turns = Turns(1, 2)
    with turns.take_turn("a", late(), never):
        with pytest.raises(RunTimeout), turns.take_turn("b", time.monotonic() + 0.05, never):
            pass
        with pytest.raises(ModelCancelled), turns.take_turn("b", late(), lambda: True):
            pass
    assert (turns._free, turns._waiting, turns._granted) == (1, {}, set())


def test_without_places_nobody_waits() -> None:
    turns = Turns(0, 0)
    with (
        turns.take_turn("a", time.monotonic(), never),
        turns.take_turn("a", time.monotonic(), never),
    ):
        pass


def test_a_call_that_fails_gives_its_place_back() -> None:
    turns = Turns(1, 2)
    with pytest.raises(ValueError), turns.take_turn("a", late(), never):
        raise ValueError
    with turns.take_turn("a", late(), never):
        pass
