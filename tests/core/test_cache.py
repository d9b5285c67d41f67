"""What is remembered: for exactly its key, for its time, once made by one thread."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from caching import once
from fakes import Clock
from hypothesis import given
from hypothesis import strategies as st

from core.cache import Cache, local_cache
from core.cache_stores import (
    KEY_FILE,
    OVERHEAD,
    CachedValue,
    MemoryStore,
    Secret,
    random_secret,
    secret_of,
)
from core.errors import OperatorError

LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
FIELDS = st.dictionaries(
    st.sampled_from(["caller", "version", "question", "model", "decides"]), VALUES, min_size=1
)
SECRET = Secret(b"s" * 32)


def same(left: object, right: object) -> bool:
    """Compare as JSON does: 1, 1.0 and True are three values."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and left == right


@given(FIELDS, FIELDS, st.sampled_from(["results", "answers"]), st.sampled_from(["results", "x"]))
def test_a_key_is_that_of_the_same_fields_alone(
    left: dict[str, object], right: dict[str, object], one: str, other: str
) -> None:
    equal = one == other and same(left, right)
    assert (SECRET.key(one, left) == SECRET.key(other, right)) is equal
    assert SECRET.key(one, dict(reversed(left.items()))) == SECRET.key(one, left)
    assert SECRET.key(one, left) != Secret(b"t" * 32).key(one, left)


@given(FIELDS, st.data())
def test_a_value_is_found_by_its_fields_and_by_no_others(
    fields: dict[str, object], data: st.DataObject
) -> None:
    cache = local_cache("answers", 16)
    cache.put(cache.key(**fields), b"mine")
    assert cache.get(cache.key(**fields)) == b"mine"
    name = data.draw(st.sampled_from(sorted(fields)))
    other = data.draw(VALUES.filter(lambda value: not same(value, fields[name])))
    assert cache.get(cache.key(**{**fields, name: other})) is None
    less = {key: value for key, value in fields.items() if key != name}
    assert cache.get(cache.key(**less)) is None
    assert (cache.hits, cache.misses) == (1, 2)


def test_a_key_tells_nothing_of_what_it_is_of() -> None:
    key = SECRET.key("answers", {"question": "Who killed Cock Robin?"})
    assert set(key) <= set("0123456789abcdef")
    assert len(key) == 64
    for bad in ({"x": object()}, {"x": float("nan")}):
        with pytest.raises((TypeError, ValueError)):
            SECRET.key("answers", bad)


@given(st.binary(max_size=40), st.integers(0, 200), st.integers(0, 255))
def test_what_was_changed_in_any_byte_is_not_opened(value: bytes, place: int, to: int) -> None:
    held = CachedValue(value, 1234.5)
    sealed = SECRET.seal("k", held)
    assert SECRET.unseal("k", sealed) == held
    assert SECRET.unseal("other", sealed) is None
    assert Secret(b"t" * 32).unseal("k", sealed) is None
    changed = bytearray(sealed)
    changed[place % len(sealed)] = to
    if bytes(changed) != sealed:
        assert SECRET.unseal("k", bytes(changed)) is None
    assert SECRET.unseal("k", sealed[: place % len(sealed)]) is None


def test_a_secret_is_kept_for_its_owner_and_made_anew_when_broken(tmp_path: Path) -> None:
    first = secret_of(tmp_path).key("a", {"b": 1})
    assert secret_of(tmp_path).key("a", {"b": 1}) == first
    path = tmp_path / KEY_FILE
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_bytes(b"short")
    second = secret_of(tmp_path).key("a", {"b": 1})
    assert second != first
    assert secret_of(tmp_path).key("a", {"b": 1}) == second
    assert len(path.read_bytes()) == 32
    path.unlink()
    os.mkdir(path)
    with pytest.raises(OperatorError, match="key file"):
        secret_of(tmp_path)


def clocked(seconds: float, **limit: int) -> tuple[Cache, Clock]:
    clock = Clock(1000.0)
    store = MemoryStore(**(limit or {"entries": 8}), clock=clock)
    return Cache("c", store, random_secret(), seconds, clock), clock


def test_a_value_is_held_for_its_time_and_no_longer() -> None:
    cache, clock = clocked(15)
    cache.put("k", b"v")
    clock.now += 14.9
    assert cache.get("k") == b"v"
    clock.now += 0.2  # reading has not made it younger
    assert cache.get("k") is None
    assert cache.entries == 0


def test_nothing_is_remembered_for_no_time() -> None:
    cache, _ = clocked(0)
    made: list[int] = []
    for _ in range(2):
        assert once(cache, "k", lambda: made.append(1) or b"v") == b"v"  # type: ignore[func-returns-value]
        assert cache.many(["k"], lambda keys: {key: b"w" for key in keys}) == {"k": b"w"}
    cache.put("k", b"v")
    assert cache.get("k") is None
    assert len(made) == 2
    assert (cache.hits, cache.misses, cache.entries) == (0, 0, 0)


def test_the_least_recently_used_go_first() -> None:
    cache, _ = clocked(15, entries=2)
    for key in ("a", "b", "a", "c"):
        once(cache, key, key.encode)
    assert [cache.get(key) for key in "abc"] == [b"a", None, b"c"]


def test_memory_is_bounded_by_bytes_too() -> None:
    cache, _ = clocked(15, size=3 * (100 + OVERHEAD))
    for key in "abcd":
        cache.put(key, b"x" * 100)
    cache.put("huge", b"x" * 10_000)
    assert cache.get("huge") is None
    assert [cache.get(key) is not None for key in "abcd"] == [False, True, True, True]


def test_only_what_is_missing_is_made() -> None:
    cache, _ = clocked(15)
    asked: list[list[str]] = []

    def make(keys: list[str]) -> dict[str, bytes]:
        asked.append(keys)
        return {key: key.encode() for key in keys}

    assert cache.many(["a", "b", "a"], make) == {"a": b"a", "b": b"b"}
    assert cache.many(["b", "c"], make) == {"b": b"b", "c": b"c"}
    assert cache.many([], make) == {}
    assert asked == [["a", "b"], ["c"]]


@pytest.mark.parametrize("kind", ["once", "many"])
def test_two_threads_never_make_the_same_at_once(kind: str) -> None:
    cache, started, go = local_cache("c", 8), Event(), Event()

    def ask(make: Callable[[], bytes]) -> bytes | None:
        if kind == "once":
            return once(cache, "k", make, time.monotonic() + 30)
        return cache.many(["k"], lambda keys: {"k": make()})["k"]

    def slow() -> bytes:
        started.set()
        assert go.wait(60)
        return b"slow"

    def never() -> bytes:
        raise AssertionError("made twice")

    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(ask, slow)
        assert started.wait(60)
        others = [pool.submit(ask, never) for _ in range(3)]
        go.set()
        assert [one.result(60) for one in (first, *others)] == [b"slow"] * 4


@pytest.mark.parametrize("kind", ["fails", "keeps nothing", "is late"])
def test_who_waits_in_vain_makes_it(kind: str) -> None:
    cache, started, go = local_cache("c", 8), Event(), Event()

    def first() -> bytes | None:
        started.set()
        assert go.wait(60)
        if kind == "fails":
            raise OSError("no")
        return None if kind == "keeps nothing" else b"first"

    with ThreadPoolExecutor(2) as pool:
        running = pool.submit(once, cache, "k", first)
        assert started.wait(60)
        if kind == "is late":
            assert once(cache, "k", lambda: b"second", time.monotonic() - 1) == b"second"
            go.set()
        else:
            other = pool.submit(once, cache, "k", lambda: b"second", time.monotonic() + 30)
            go.set()
            assert other.result(60) == b"second"
        if kind == "fails":
            with pytest.raises(OSError, match="no"):
                running.result(60)
        else:
            running.result(60)


def test_a_failure_in_many_is_nobody_elses() -> None:
    cache = local_cache("c", 8)

    def fails(keys: list[str]) -> dict[str, bytes]:
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        cache.many(["a"], fails)
    assert cache.many(["a"], lambda keys: {"a": b"a"}) == {"a": b"a"}
