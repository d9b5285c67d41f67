"""Contract of the stores of caches: bytes by key, for their time; what is lost raises nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis_servers import MISSING, REDIS, RunningRedis

from core.cache_stores import CachedValue, MemoryStore, RedisStore, open_redis, random_secret
from core.settings import load_settings

CacheStore = MemoryStore | RedisStore


def _redis(folder: Path) -> Iterator[CacheStore]:
    pytest.importorskip("redis", reason="the extra 'redis' is not installed")
    if REDIS is None:
        pytest.skip(MISSING)
    running = RunningRedis()
    running.start()
    given = {"cache_redis_url": running.url, "cache_redis_seconds": 5}
    store = open_redis(load_settings(given)[0], random_secret())
    yield store
    store.close()
    running.end()


def _memory(folder: Path) -> Iterator[CacheStore]:
    yield MemoryStore(entries=1000)


def _sized(folder: Path) -> Iterator[CacheStore]:
    yield MemoryStore(size=1_000_000)


STORES: dict[str, Callable[[Path], Iterator[CacheStore]]] = {
    "memory": _memory,
    "memory of a size": _sized,
    "redis": _redis,
}


@pytest.fixture(params=STORES)
def cache_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CacheStore]:
    yield from STORES[request.param](tmp_path)


def soon() -> float:
    return time.time() + 60


def values(store: CacheStore, *keys: str) -> list[bytes | None]:
    return [held.value if held else None for held in store.get(keys)]


def test_a_value_is_found_by_its_key_alone_until_its_time(cache_store: CacheStore) -> None:
    until = soon()
    assert cache_store.get([]) == []
    assert cache_store.get(["a", "b"]) == [None, None]
    cache_store.put({"a": b"1", "b": b"2"}, until)
    assert cache_store.get(["b", "c", "a", "b"]) == [
        CachedValue(b"2", until), None, CachedValue(b"1", until), CachedValue(b"2", until)
    ]  # fmt: skip


def test_a_later_value_takes_the_place_of_an_earlier_one(cache_store: CacheStore) -> None:
    cache_store.put({"a": b"1", "b": b"2"}, soon())
    cache_store.put({"a": b"3"}, soon())
    assert values(cache_store, "a", "b") == [b"3", b"2"]


def test_what_is_over_is_gone(cache_store: CacheStore) -> None:
    cache_store.put({"past": b"1"}, time.time() - 1)
    cache_store.put({"brief": b"2"}, time.time() + 0.3)
    assert values(cache_store, "past") == [None]
    time.sleep(0.35)
    assert values(cache_store, "brief") == [None]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.text("0123456789abcdef", min_size=1), st.binary(max_size=99), max_size=4))
def test_any_bytes_come_back_as_they_were(
    cache_store: CacheStore, given_values: dict[str, bytes]
) -> None:
    cache_store.put(given_values, soon())
    assert values(cache_store, *given_values) == list(given_values.values())


def test_what_is_too_large_is_left_out_and_harms_nothing(cache_store: CacheStore) -> None:
    cache_store.put({"huge": b"x" * 5_000_000, "small": b"1"}, soon())
    assert values(cache_store, "small") == [b"1"]
    assert values(cache_store, "huge") in ([None], [b"x" * 5_000_000])


def test_clearing_forgets_what_lies_here(cache_store: CacheStore) -> None:
    cache_store.put({"a": b"1"}, soon())
    cache_store.clear()
    assert values(cache_store, "a") == [None]


def test_threads_share_it(cache_store: CacheStore) -> None:
    def use(number: int) -> list[bytes | None]:
        key = f"{number % 5:x}"
        cache_store.put({key: key.encode()}, soon())
        return values(cache_store, key)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(use, range(100)))
    assert found == [[f"{number % 5:x}".encode()] for number in range(100)]
