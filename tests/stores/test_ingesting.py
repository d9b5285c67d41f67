"""Long work on a store waits for its turn, and says what for."""

from __future__ import annotations

import threading

import pytest

from stores.lock import Ingesting


def test_one_after_the_other_and_who_waits_is_told_of_whom() -> None:
    lock, told, go = Ingesting(), threading.Semaphore(0), threading.Event()
    heard: list[str] = []
    done: list[str] = []

    def waiting(other: str) -> None:
        heard.append(other)
        told.release()

    def second() -> None:
        with lock.turn("the second", waiting):
            done.append("second")

    with lock.turn("the first", waiting):
        thread = threading.Thread(target=second)
        thread.start()
        assert told.acquire(timeout=60)
        with lock, lock.turn("a part of the first", waiting):  # again, by its own thread
            done.append("first")
    thread.join(60)
    assert done == ["first", "second"]
    assert set(heard) == {"the first"}
    go.set()


def test_what_is_raised_while_waiting_ends_the_wait() -> None:
    lock = Ingesting()
    ended: list[BaseException] = []

    def waiting(other: str) -> None:
        raise KeyboardInterrupt(other)

    def second() -> None:
        try:
            with lock.turn("the second", waiting):
                ended.append(AssertionError())
        except KeyboardInterrupt as error:
            ended.append(error)

    with pytest.raises(ZeroDivisionError), lock.turn("the first", waiting):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(60)
        raise ZeroDivisionError
    assert str(ended[0]) == "the first"
    with lock:  # free again, both times
        pass
