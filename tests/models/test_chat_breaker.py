"""A server that keeps failing is left alone, then tried again by one call."""

from __future__ import annotations

import threading

import purgatory.domain.model
import pytest
from chat_doubles import scripted_chat

from core.errors import ModelError
from models.chat.turns import BREAKER_FAILURES, Breaker, server_breaker
from models.chat.types import (
    ChatRequest,
    Message,
    ModelCancelled,
    ModelOverflow,
    ModelRefused,
    ModelReplyError,
    ModelTimeout,
    ModelUnavailable,
    RunTimeout,
)

REQUEST = ChatRequest((Message("user", "Hello?"),), 64)


class Clock:
    """A clock that a test moves on."""

    now = 1_000_000.0

    def time(self) -> float:
        return self.now

    def passes(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    moved = Clock()
    monkeypatch.setattr(purgatory.domain.model, "time", moved)
    return moved


def fail(breaker: Breaker, error: ModelError) -> None:
    with pytest.raises(type(error)), breaker.watch():
        raise error


def test_it_opens_after_failures_in_a_row_and_closes_again(clock: Clock) -> None:
    breaker = Breaker("url", 3, 60)
    for _ in range(3):
        assert not breaker.is_open
        fail(breaker, ModelTimeout("late"))
    assert breaker.is_open
    with pytest.raises(ModelUnavailable, match="left alone"), breaker.watch():
        pytest.fail("an open breaker lets nothing pass")
    clock.passes(61)
    with breaker.watch():
        pass
    assert not breaker.is_open
    fail(breaker, ModelTimeout("late"))
    assert not breaker.is_open


def test_it_opens_at_once_when_the_trial_fails(clock: Clock) -> None:
    breaker = Breaker("url", 3, 60)
    for _ in range(3):
        fail(breaker, ModelUnavailable("gone"))
    clock.passes(61)
    fail(breaker, ModelUnavailable("gone"))
    assert breaker.is_open


def test_only_one_call_tries_a_server_again(clock: Clock) -> None:
    breaker = Breaker("url", 1, 60)
    fail(breaker, ModelUnavailable("gone"))
    clock.passes(61)
    with breaker.watch():
        with pytest.raises(ModelUnavailable, match="left alone"), breaker.watch():
            pytest.fail("two trials at once")
    with breaker.watch():
        pass


@pytest.mark.parametrize(
    "error", [ModelReplyError("odd"), ModelRefused("key"), ModelUnavailable("gone")]
)
def test_a_server_that_answers_is_not_a_failing_one(error: ModelError) -> None:
    breaker = Breaker("url", 2, 60)
    fail(breaker, ModelUnavailable("gone"))
    fail(breaker, error)
    assert breaker.is_open == (type(error) is ModelUnavailable)


@pytest.mark.parametrize(
    "error", [ModelCancelled("enough"), ModelOverflow("long"), RunTimeout("over")]
)
def test_what_says_nothing_about_the_server_changes_nothing(error: ModelError) -> None:
    breaker = Breaker("url", 2, 60)
    fail(breaker, ModelUnavailable("gone"))
    fail(breaker, error)
    assert not breaker.is_open
    fail(breaker, ModelUnavailable("gone"))
    assert breaker.is_open


def test_an_open_breaker_answers_at_once_for_every_call() -> None:
    chat = scripted_chat([ModelUnavailable("gone")] * BREAKER_FAILURES)
    for _ in range(8):
        with pytest.raises(ModelUnavailable):
            chat.complete(REQUEST, verb="grade")
    assert len(chat.prompts) == BREAKER_FAILURES


def test_one_breaker_for_each_server() -> None:
    assert server_breaker("http://a/v1", 5, 15) is server_breaker("http://a/v1", 5, 15)
    assert server_breaker("http://a/v1", 5, 15) is not server_breaker("http://b/v1", 5, 15)


def test_many_threads_open_it_once() -> None:
    breaker = Breaker("url", 50, 60)
    threads = [
        threading.Thread(target=fail, args=(breaker, ModelTimeout("late"))) for _ in range(50)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert breaker.is_open
