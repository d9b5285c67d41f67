"""Caches of one data directory: each looks a value up, has one thread make it, and counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, TimeoutError
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from core.cache_stores import MemoryStore, RedisStore, Secret, open_redis, random_secret, secret_of
from core.settings import Settings


@dataclass
class CacheClaim:
    """Hold a value that is looked up: None until the thread that claimed its key has made it."""

    value: bytes | None = None


class Cache:
    """Remember values of one kind for `seconds`; 0 remembers nothing.

    Values are bytes, so that no reader changes what another one gets.
    """

    def __init__(
        self,
        name: str,
        near: MemoryStore,
        secret: Secret,
        seconds: float,
        clock: Callable[[], float] = time.time,
        far: RedisStore | None = None,
    ) -> None:
        """Keep values in both stores, under keys made with `secret`; `near` is asked first."""
        self.name = name
        self._near = near
        self._far = far
        self._secret = secret
        self._seconds = seconds
        self._clock = clock
        self._lock = Lock()
        self._making: dict[str, Future[bytes | None]] = {}
        self.hits = 0
        self.misses = 0

    @property
    def enabled(self) -> bool:
        """Tell whether anything is remembered."""
        return self._seconds > 0

    @property
    def entries(self) -> int:
        """Return how many values lie in this process's memory."""
        return self._near.entries

    def key(self, **fields: object) -> str:
        """Return the key of a value that exactly these fields, JSON values all, decide."""
        return self._secret.key(self.name, fields)

    def clear(self) -> None:
        """Forget everything in this process's memory."""
        self._near.clear()

    def get(self, key: str) -> bytes | None:
        """Return the cached value of a key, None for an unknown one."""
        return self._look_up([key]).get(key) if self.enabled else None

    def put(self, key: str, value: bytes) -> None:
        """Remember a value."""
        self._remember({key: value})

    @contextmanager
    def claim(self, key: str, deadline: float | None = None) -> Iterator[CacheClaim]:
        """Look a value up; while it is None, the holder of the claim makes it and sets it there.

        None is not remembered. A key that another thread has claimed is waited for until `deadline`
        (`time.monotonic()`); when that thread fails, leaves None or is late, this one makes it.
        """
        value = self.get(key)
        if value is None and self.enabled:
            mine, others = self._claim_keys([key])
            if mine:
                claim = CacheClaim()
                with self._publish(mine) as made:
                    yield claim
                    if claim.value is not None:
                        made[key] = claim.value
                return
            value = _wait_for(others[key], deadline)
        yield CacheClaim(value)

    def many(
        self, keys: Sequence[str], make: Callable[[list[str]], Mapping[str, bytes]]
    ) -> dict[str, bytes]:
        """Return a value for each key; `make` gets the keys that are not made yet."""
        wanted = list(dict.fromkeys(keys))
        if not self.enabled:
            return dict(make(wanted)) if wanted else {}
        found = self._look_up(wanted)
        mine, others = self._claim_keys([key for key in wanted if key not in found])
        if mine:
            with self._publish(mine) as made:
                made |= make(mine)
            found |= {key: made[key] for key in mine if key in made}
        waited = {key: _wait_for(future, None) for key, future in others.items()}
        found |= {key: value for key, value in waited.items() if value is not None}
        failed = [key for key in waited if key not in found]
        return found | (dict(make(failed)) if failed else {})

    def _look_up(self, keys: Sequence[str]) -> dict[str, bytes]:
        entries = dict(zip(keys, self._near.get(keys), strict=True))
        missing = [key for key, one in entries.items() if one is None]
        if self._far is not None and missing:
            for key, one in zip(missing, self._far.get(missing), strict=True):
                if one is not None:  # it expires when the shared one does
                    self._near.hold(key, one)
                    entries[key] = one
        found = {key: one.value for key, one in entries.items() if one is not None}
        with self._lock:
            self.hits += len(found)
            self.misses += len(entries) - len(found)
        return found

    def _claim_keys(self, keys: Sequence[str]) -> tuple[list[str], dict[str, Future[bytes | None]]]:
        """Return the keys this thread has to make, and those that others are making."""
        with self._lock:
            others = {key: self._making[key] for key in keys if key in self._making}
            mine = [key for key in keys if key not in others]
            for key in mine:
                self._making[key] = Future()
        return mine, others

    @contextmanager
    def _publish(self, mine: list[str]) -> Iterator[dict[str, bytes]]:
        """Cache the values put into the mapping, and hand them to the threads waiting for them."""
        made: dict[str, bytes] = {}
        try:
            yield made
            self._remember(made)
        finally:
            with self._lock:
                futures = [(key, self._making.pop(key)) for key in mine]
            for key, future in futures:
                future.set_result(made.get(key))

    def _remember(self, values: Mapping[str, bytes]) -> None:
        if not self.enabled or not values:
            return
        until = self._clock() + self._seconds
        self._near.put(values, until)
        if self._far is not None:
            self._far.put(values, until)


def local_cache(name: str, entries: int, seconds: float = 86_400.0) -> Cache:
    """Return a cache of at most `entries` values in this process's memory alone."""
    return Cache(name, MemoryStore(entries=entries), random_secret(), seconds)


def _wait_for(future: Future[bytes | None], deadline: float | None) -> bytes | None:
    left = None if deadline is None else max(0.0, deadline - time.monotonic())
    try:
        return future.result(timeout=left)
    except TimeoutError:
        return None


HOUR, MINUTE, MB = 3600.0, 60.0, 1_000_000


@dataclass(frozen=True)
class Caches:
    """Hold the caches of vectors, a model's rewrites, search results and answers."""

    embeddings: Cache
    rewrites: Cache
    results: Cache
    answers: Cache
    secret: Secret
    redis: RedisStore | None = None

    def __iter__(self) -> Iterator[Cache]:
        return iter((self.embeddings, self.rewrites, self.results, self.answers))

    def clear(self) -> None:
        """Forget everything, near and far; what Redis does not give up can be read no more."""
        for cache in self:
            cache.clear()
        if self.redis is not None:
            self.redis.clear()
        self.secret.renew()

    def forget(self) -> None:
        """Forget what this process remembers; another one has cleared what they share."""
        for cache in self:
            cache.clear()
        self.secret.read()

    def close(self) -> None:
        """Let go of Redis."""
        if self.redis is not None:
            self.redis.close()


def open_caches(settings: Settings, folder: Path) -> Caches:
    """Return the caches of a data directory; raises OperatorError when Redis cannot be used.

    A Redis that does not answer is no error: work goes on without it.
    """
    far = None
    secret = random_secret()
    if settings.caching.redis_url:
        secret = secret_of(folder)
        far = open_redis(settings, secret)

    def cache(name: str, near: MemoryStore, seconds: float) -> Cache:
        return Cache(name, near, secret, seconds, far=far)

    size = int(settings.caching.mb * MB)
    return Caches(
        embeddings=cache(
            "embeddings",
            MemoryStore(entries=settings.embedding.cache),
            settings.caching.embedding_hours * HOUR,
        ),
        rewrites=cache("rewrites", MemoryStore(size=size), settings.caching.rewrite_hours * HOUR),
        results=cache("results", MemoryStore(size=size), settings.caching.result_minutes * MINUTE),
        answers=cache("answers", MemoryStore(size=size), settings.caching.answer_minutes * MINUTE),
        secret=secret,
        redis=far,
    )
