"""Cached values in Redis: encrypted, with their time, and never waited for long."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from core.cache.secret import Secret
from core.cache.types import Held
from core.distribution import require_extra
from core.settings import Settings

if TYPE_CHECKING:
    from redis import Redis

RETRY_SECONDS = 10  # how long a Redis that failed is left alone

T = TypeVar("T")
PREFIX = "carrel:"
SCANNED = 1000  # keys that Redis looks at in one step
MOST_BYTES = 4_000_000  # of one value: somebody else may have written it
log = logging.getLogger("carrel.serve")


class RedisStore:
    """Keep values in Redis; one that fails is left alone for a while, and work goes on without.

    A value that was not encrypted with this data directory's secret, for its key, counts as absent.
    """

    def __init__(
        self,
        client: Redis,
        secret: Secret,
        *,
        retry_seconds: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Take a client with timeouts; nothing is sent yet."""
        self._client = client
        self._secret = secret
        self._retry_seconds = retry_seconds
        self._clock = clock
        self._lock = Lock()
        self._left_alone_until = 0.0
        self.failures = 0
        self.forged = 0

    @property
    def up(self) -> bool:
        """Tell whether Redis is not being left alone."""
        return self._clock() >= self._left_alone_until

    @property
    def entries(self) -> int:
        """Return 0: nothing lies in this process's memory."""
        return 0

    def get(self, keys: Sequence[str]) -> list[Held | None]:
        """Return the value kept for each key."""

        def ask() -> list[bytes]:
            pipe = self._client.pipeline(transaction=False)
            for key in keys:
                pipe.getrange(self._place(key), 0, MOST_BYTES)
            replies: list[bytes] = pipe.execute()
            return replies

        replies = self._asked(ask) if keys else None
        if replies is None:
            return [None] * len(keys)
        return [self._opened(key, reply) for key, reply in zip(keys, replies, strict=True)]

    def put(self, values: Mapping[str, bytes], until: float) -> None:
        """Hold values until a time; those that are too large are left out."""
        milliseconds = int((until - self._clock()) * 1000)
        fitting = {key: value for key, value in values.items() if len(value) < MOST_BYTES - 100}
        if milliseconds <= 0 or not fitting:
            return

        def tell() -> Any:  # noqa: ANN401 - nobody reads it
            pipe = self._client.pipeline(transaction=False)
            for key, value in fitting.items():
                sealed = self._secret.sealed(key, Held(value, until))
                pipe.set(self._place(key), sealed, px=milliseconds)
            return pipe.execute()

        self._asked(tell)

    def clear(self) -> None:
        """Delete all that this data directory keeps there, as far as Redis can be reached."""
        pattern = self._place("*")

        def tell() -> None:
            for found in self._client.scan_iter(match=pattern, count=SCANNED):
                self._client.unlink(found)

        self._asked(tell)

    def _place(self, key: str) -> str:
        return f"{PREFIX}{self._secret.namespace}:{key}"

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _opened(self, key: str, reply: object) -> Held | None:
        if not isinstance(reply, bytes) or not reply:
            return None
        held = self._secret.opened(key, reply)
        if held is None:
            with self._lock:
                self.forged += 1
                first = self.forged == 1
            if first:
                log.warning("Redis held a value that this data directory did not seal; ignored")
            return None
        return held if held.until > self._clock() else None

    def _asked(self, ask: Callable[[], T]) -> T | None:
        from redis.exceptions import RedisError

        if not self.up:
            return None
        try:
            return ask()
        except (RedisError, OSError) as error:
            with self._lock:
                was_up = self.up
                self.failures += 1
                self._left_alone_until = self._clock() + self._retry_seconds
            if was_up:
                log.warning(
                    "Redis does not work (%s); left alone for %g s, work goes on without it",
                    type(error).__name__,
                    self._retry_seconds,
                )
            return None


def open_redis(settings: Settings, secret: Secret) -> RedisStore:
    """Return the store that the settings name; raises OperatorError without the client library."""
    require_extra("redis", "a cache in Redis", otherwise="unset CARREL_CACHING__REDIS_URL")
    from redis import Redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    password = settings.caching.redis_password
    client = Redis.from_url(
        settings.caching.redis_url,
        password=password.get_secret_value() if password else None,
        socket_timeout=settings.caching.redis_seconds,
        socket_connect_timeout=settings.caching.redis_seconds,
        retry=Retry(NoBackoff(), 1),  # a connection that lay idle may have been closed
        decode_responses=False,
    )
    return RedisStore(client, secret, retry_seconds=RETRY_SECONDS)
