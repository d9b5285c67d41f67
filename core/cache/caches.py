"""All caches of one data directory, as the settings say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from core.cache.cache import Cache
from core.cache.memory import MemoryStore, Tiers
from core.cache.redis_store import RedisStore, open_redis
from core.cache.secret import Secret, random_secret, secret_of
from core.settings import Settings

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
