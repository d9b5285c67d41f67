"""What is kept in Redis: sealed, for its time; and work that goes on when Redis does not."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from caching import once
from redis_servers import MISSING, REDIS, RunningRedis

from core.cache import Cache, Caches, open_caches
from core.cache_stores import (
    MOST_BYTES,
    PREFIX,
    CachedValue,
    MemoryStore,
    RedisStore,
    Secret,
    open_redis,
    secret_of,
)
from core.errors import CallerError, OperatorError
from core.settings import Settings, load_settings

pytest.importorskip("redis", reason="the extra 'redis' is not installed")
needs_server = pytest.mark.skipif(REDIS is None, reason=MISSING)


@pytest.fixture
def redis() -> Iterator[RunningRedis]:
    running = RunningRedis()
    running.start()
    yield running
    running.end()


def settings_for(url: str, **values: object) -> Settings:
    return load_settings({"cache_redis_url": url, "cache_redis_seconds": 2, **values})[0]


def client(redis: RunningRedis) -> object:
    from redis import Redis

    return Redis(unix_socket_path=str(redis.socket))


@pytest.fixture
def caches(redis: RunningRedis, tmp_path: Path) -> Iterator[Caches]:
    opened = open_caches(settings_for(redis.url), tmp_path)
    yield opened
    opened.close()


@needs_server
def test_another_start_finds_what_was_kept(
    redis: RunningRedis, caches: Caches, tmp_path: Path
) -> None:
    keys = [caches.results.key(query=text) for text in ("Straße", "улица", "大街")]
    for key in keys:
        caches.results.put(key, key.encode())
    again = open_caches(settings_for(redis.url), tmp_path)
    assert again.results.entries == 0
    assert [again.results.get(key) for key in keys] == [key.encode() for key in keys]
    assert again.results.entries == 3  # now it lies near
    assert (again.results.hits, again.results.misses) == (3, 0)
    again.close()
    (tmp_path / "elsewhere").mkdir()
    other = open_caches(settings_for(redis.url), tmp_path / "elsewhere")
    assert other.results.get(keys[0]) is None
    assert other.results.key(query="Straße") != keys[0]
    other.close()


@needs_server
def test_redis_holds_no_text_and_forgets_in_time(redis: RunningRedis, caches: Caches) -> None:
    key = caches.results.key(caller="ann", query="a secret question")
    caches.results.put(key, b"a secret passage")
    with client(redis) as asked:  # type: ignore[attr-defined]
        (place,) = asked.keys()
        assert place.decode() == f"{PREFIX}{caches.secret.namespace}:{key}"
        assert b"secret" not in asked.get(place)
        left = asked.pttl(place)
    assert 14 * 60_000 < left <= 15 * 60_000


def store_of(redis: RunningRedis, secret: Secret) -> RedisStore:
    return open_redis(settings_for(redis.url), secret)


@needs_server
def test_what_is_over_is_not_taken_although_redis_holds_it(
    redis: RunningRedis, tmp_path: Path
) -> None:
    store = store_of(redis, secret_of(tmp_path))
    store.put({"k": b"v"}, store._clock() + 60)
    assert store.get(["k"]) != [None]
    began = store._clock()
    store._clock = lambda: began + 61
    assert store.get(["k"]) == [None]
    store.put({"late": b"v"}, began)
    with client(redis) as asked:  # type: ignore[attr-defined]
        assert asked.exists(store._place("late")) == 0
    store.close()


@needs_server
def test_what_others_plant_is_ignored(
    redis: RunningRedis, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secret = secret_of(tmp_path)
    store = store_of(redis, secret)
    until = store._clock() + 60
    store.put({"mine": b"true", "other": b"also true"}, until)
    forged = Secret(b"x" * 32).seal("forged", CachedValue(b"lies", until))
    with client(redis) as asked:  # type: ignore[attr-defined]
        asked.set(store._place("forged"), forged)
        asked.set(store._place("plain"), b"lies")
        asked.set(store._place("long"), b"x" * (MOST_BYTES + 100))
        asked.set(store._place("moved"), asked.get(store._place("other")))
        asked.rpush(store._place("list"), "lies")
    caplog.set_level(logging.WARNING, "carrel.serve")
    names = ["mine", "forged", "plain", "long", "moved", "absent"]
    held = store.get(names)
    assert [one.value if one else None for one in held] == [b"true", *[None] * 5]
    assert store.forged == 4
    assert store.up
    (record,) = caplog.records
    assert "did not seal" in record.getMessage()
    store.put({"huge": b"x" * MOST_BYTES}, until)
    assert store.get(["huge"]) == [None]
    assert store.get(["list"]) == [None]  # another type: an error, which is not ours to wait for
    store.close()


@needs_server
def test_work_goes_on_without_redis_and_finds_it_again(
    redis: RunningRedis, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "carrel.serve")
    caches = open_caches(settings_for(redis.url), tmp_path)
    far, now = caches.redis, [1000.0]
    assert far is not None
    far._clock = lambda: now[0]
    nothing = MemoryStore(entries=0)
    cache = Cache("results", nothing, secret_of(tmp_path), 60, lambda: now[0], far)
    assert once(cache, "a", lambda: b"1") == b"1"
    assert cache.get("a") == b"1"
    redis.stop()
    assert once(cache, "a", lambda: b"2") == b"2"
    assert (far.up, far.failures) == (False, 1)
    for _ in range(20):  # left alone: nobody waits for it
        assert once(cache, "a", lambda: b"3") == b"3"
    assert far.failures == 1
    assert [record.getMessage() for record in caplog.records] == [
        "Redis does not work (ConnectionError); left alone for 10 s, work goes on without it"
    ]
    redis.start()
    assert cache.get("a") is None  # still left alone
    now[0] += 11
    assert far.up
    assert once(cache, "a", lambda: b"4") == b"4"
    assert once(cache, "a", lambda: b"5") == b"4"
    caches.close()


def test_a_redis_that_never_was_costs_one_try(tmp_path: Path) -> None:
    caches = open_caches(settings_for(f"unix://{tmp_path / 'none'}"), tmp_path)
    for number in range(3):
        key = caches.answers.key(n=number)
        assert once(caches.answers, key, lambda: b"v") == b"v"
        assert caches.answers.get(key) == b"v"  # this process's memory is there
    assert caches.redis is not None
    assert caches.redis.failures == 1
    caches.close()


def test_without_the_library_the_operator_learns_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(OperatorError, match=r"carrel-rag\[redis\]"):
        open_caches(settings_for("redis://127.0.0.1:1/0"), tmp_path)
    assert open_caches(load_settings()[0], tmp_path).redis is None
    assert [path.name for path in tmp_path.iterdir()] in ([], ["cache.key"])


@pytest.mark.parametrize(
    "url", ["localhost:6379", "http://localhost", "redis://", "redis://ann:secret@localhost"]
)
def test_a_redis_is_named_by_a_url_without_password(url: str) -> None:
    with pytest.raises(CallerError, match="caching.redis_url") as raised:
        settings_for(url)
    assert "secret" not in str(raised.value)


@needs_server
def test_what_is_cleared_is_in_no_store_and_opens_with_no_key(
    redis: RunningRedis, caches: Caches, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = open_caches(settings_for(redis.url), tmp_path / "other")
    key, kept = caches.results.key(query="q"), other.results.key(query="q")
    caches.results.put(key, b"a secret passage")
    other.results.put(kept, b"another's")
    secret = (tmp_path / "cache.key").read_bytes()
    caches.clear()
    with client(redis) as asked:  # type: ignore[attr-defined]
        assert asked.keys() == [f"{PREFIX}{other.secret.namespace}:{kept}".encode()]
    assert caches.results.get(key) is None and caches.results.entries == 0
    assert (tmp_path / "cache.key").read_bytes() != secret
    assert caches.results.key(query="q") != key
    caches.results.put(caches.results.key(query="q"), b"new")
    again = open_caches(settings_for(redis.url), tmp_path)  # the new secret is that of the file
    assert again.results.get(again.results.key(query="q")) == b"new"
    assert other.results.get(kept) == b"another's"
    for one in (other, again):
        one.close()
