"""Caches of one data directory: each looks a value up, has one thread make it, and counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, TimeoutError
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from core.cache_stores import (
    CacheStore,
    MemoryStore,
    RedisStore,
    Secret,
    Tiers,
    open_redis,
    random_secret,
    secret_of,
)
from core.settings import Settings


@dataclass
class CacheClaim:
    """A value that is looked up: None until whoever claimed its key has made it."""

    value: bytes | None = None


class Cache:
    """Remember values of one kind for `seconds`; 0 remembers nothing.

    Values are bytes, so that no reader changes what another one gets.
    """

    def __init__(
        self,
        name: str,
        store: CacheStore,
        secret: Secret,
        seconds: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Keep values in `store`, under keys made with `secret`."""
        self.name = name
        self._store = store
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
        return self._store.entries

    def key(self, **fields: object) -> str:
        """Return the key of a value that exactly these fields, JSON values all, decide."""
        return self._secret.key(self.name, fields)

    def clear(self) -> None:
        """Forget everything in this process's memory."""
        self._store.clear()

    def get(self, key: str) -> bytes | None:
        """Return what is remembered."""
        return self._looked_up([key])[0] if self.enabled else None

    def put(self, key: str, value: bytes) -> None:
        """Remember a value."""
        self._remember({key: value})

    @contextmanager
    def claim(self, key: str, deadline: float | None = None) -> Iterator[CacheClaim]:
        """Look a value up; while it is None, the holder of the claim makes it and sets it there.

        None is not remembered. A key that another thread has claimed is waited for until `deadline`
        (`time.monotonic()`); when that thread fails, leaves None or is late, this one makes it.
        """
        held = self._looked_up([key])[0] if self.enabled else None
        if held is None and self.enabled:
            mine, others = self._claimed([key])
            if mine:
                claim = CacheClaim()
                try:
                    yield claim
                    self._remember(_kept(key, claim.value))
                finally:
                    self._settle(mine, _kept(key, claim.value))
                return
            held = _waited(others[key], deadline)
        yield CacheClaim(held)

    def once(
        self, key: str, make: Callable[[], bytes | None], deadline: float | None = None
    ) -> bytes | None:
        """Return what is remembered, or what `make` makes; as `claim` does."""
        with self.claim(key, deadline) as claim:
            if claim.value is None:
                claim.value = make()
        return claim.value

    def many(
        self, keys: Sequence[str], make: Callable[[list[str]], Mapping[str, bytes]]
    ) -> dict[str, bytes]:
        """Return a value for each key; `make` gets the keys that are not made yet."""
        wanted = list(dict.fromkeys(keys))
        if not self.enabled:
            return dict(make(wanted)) if wanted else {}
        looked_up = zip(wanted, self._looked_up(wanted), strict=True)
        found = {key: value for key, value in looked_up if value is not None}
        mine, others = self._claimed([key for key in wanted if key not in found])
        if mine:
            made = self._made(mine, make)
            found |= {key: made[key] for key in mine if key in made}
        waited = {key: _waited(future, None) for key, future in others.items()}
        found |= {key: value for key, value in waited.items() if value is not None}
        failed = [key for key in waited if key not in found]
        return found | (dict(make(failed)) if failed else {})

    def _looked_up(self, keys: Sequence[str]) -> list[bytes | None]:
        held = self._store.get(keys)
        hits = sum(one is not None for one in held)
        with self._lock:
            self.hits += hits
            self.misses += len(held) - hits
        return [None if one is None else one.value for one in held]

    def _claimed(self, keys: Sequence[str]) -> tuple[list[str], dict[str, Future[bytes | None]]]:
        """Return the keys this thread has to make, and those that others are making."""
        with self._lock:
            others = {key: self._making[key] for key in keys if key in self._making}
            mine = [key for key in keys if key not in others]
            for key in mine:
                self._making[key] = Future()
        return mine, others

    def _made(
        self, mine: list[str], make: Callable[[list[str]], Mapping[str, bytes]]
    ) -> Mapping[str, bytes]:
        made: Mapping[str, bytes] = {}
        try:
            made = make(mine)
            self._remember(made)
        finally:
            self._settle(mine, made)
        return made

    def _settle(self, mine: list[str], made: Mapping[str, bytes]) -> None:
        """Give those who wait for these keys what was made."""
        with self._lock:
            futures = [(key, self._making.pop(key)) for key in mine]
        for key, future in futures:
            future.set_result(made.get(key))

    def _remember(self, values: Mapping[str, bytes]) -> None:
        if self.enabled and values:
            self._store.put(values, self._clock() + self._seconds)


def local_cache(name: str, entries: int, seconds: float = 86_400.0) -> Cache:
    """Return a cache of at most `entries` values in this process's memory alone."""
    return Cache(name, MemoryStore(entries=entries), random_secret(), seconds)


def _kept(key: str, value: bytes | None) -> dict[str, bytes]:
    return {} if value is None else {key: value}


def _waited(future: Future[bytes | None], deadline: float | None) -> bytes | None:
    left = None if deadline is None else max(0.0, deadline - time.monotonic())
    try:
        return future.result(timeout=left)
    except TimeoutError:
        return None


HOUR, MINUTE, MB = 3600.0, 60.0, 1_000_000


@dataclass(frozen=True)
class Caches:
    """Hold what is remembered: vectors, a model's rewrites, search results, and answers."""

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
        return Cache(name, near if far is None else Tiers(near, far), secret, seconds)

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
