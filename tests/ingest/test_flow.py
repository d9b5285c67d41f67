"""Steps on threads of their own: in order, bounded, and ended by whatever ends the run."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from ingest.known import RunIndex
from ingest.steps import in_background


def double(number: int) -> int:
    return 2 * number


def test_steps_keep_the_order() -> None:
    with (
        in_background(iter(range(50)), double) as first,
        in_background(first, double) as second,
    ):
        assert list(second) == [4 * number for number in range(50)]


def test_a_step_is_only_a_little_ahead() -> None:
    made: list[int] = []

    def work(number: int) -> int:
        made.append(number)
        return number

    with in_background(iter(range(100)), work) as results:
        for result in results:
            assert len(made) <= result + 1 + 3  # given, waiting, at work
            if result == 20:
                break
    assert len(made) < 100


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("where", ["items", "work", "second"])
def test_what_a_step_raises_is_raised_where_its_results_are_taken(
    error: type[BaseException], where: str
) -> None:
    def items() -> Iterator[int]:
        yield from range(3)
        if where == "items":
            raise error("here")

    def work(number: int) -> int:
        if where == "work" and number == 1:
            raise error("here")
        return number

    def second(number: int) -> int:
        if where == "second":
            raise error("here")
        return number

    before = threading.active_count()
    found = []
    with (
        pytest.raises(error, match="here"),
        in_background(items(), work) as one,
        in_background(one, second) as two,
    ):
        found += list(two)
    assert threading.active_count() == before
    assert found == []


def test_leaving_early_ends_the_threads() -> None:
    before = threading.active_count()
    with in_background(iter(int, 1), double) as first, in_background(first, double) as second:
        assert next(second) == 0
    assert threading.active_count() == before


def test_what_was_seen_is_kept_by_kind_and_by_file() -> None:
    with closing(RunIndex()) as seen:
        seen.add("given", "a")
        seen.add("given", "a")
        assert seen.has("given", "a") and not seen.has("named", "a") and not seen.has("given", "b")
        seen.add_document("d", "a.md", "1")
        seen.add_document("d", "b.md", "2")
        assert seen.document("d") == ("b.md", "2")
        seen.drop_document("d")
        assert seen.document("d") is None
