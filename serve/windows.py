"""Counts of what was done in the last minute, in a window that moves."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import time
from dataclasses import dataclass

from limits import RateLimitItemPerMinute
from limits.errors import StorageError
from limits.storage import MemoryStorage, RedisStorage
from limits.strategies import MovingWindowRateLimiter

from core.errors import OperatorError
from core.settings import Settings
from serve.logs import log

PREFIX = "carrel-limits"


class _Rate(RateLimitItemPerMinute):
    """Count in one window whatever the limit, so that a changed one holds for what was done.

    Its key names nobody. It is a digest without a secret, for servers of other data directories
    count in the same window.
    """

    def key_for(self, *identifiers: bytes | str | float) -> str:
        told = json.dumps([str(one) for one in identifiers], separators=(",", ":"))
        return f"{self.namespace}/{hashlib.sha256(told.encode('ascii')).hexdigest()}"


@dataclass(frozen=True)
class Standing:
    """Say how much of a limit is left; `reset` is in seconds until the oldest no longer counts."""

    allowed: bool
    limit: int
    remaining: int
    reset: int


class Windows:
    """Count by name and owner within the last minute, in memory and for several servers in Redis.

    While Redis does not answer, each server counts alone; nobody is turned away for that.
    """

    def __init__(self, settings: Settings) -> None:
        """Begin at zero, or where Redis is; raises OperatorError without its client library."""
        self._near = MovingWindowRateLimiter(MemoryStorage())
        self._far = _redis(settings) if settings.cache_redis_url else None
        self._retry_seconds = settings.cache_redis_retry_seconds
        self._alone_until = 0.0

    async def hit(self, name: str, owner: tuple[str, ...], limit: int) -> Standing:
        """Count one, unless that is more than `limit` in a minute, and say what is left."""
        return await self._asked(_Rate(limit, namespace=name), owner, count=True)

    async def look(self, name: str, owner: tuple[str, ...], limit: int) -> Standing:
        """Say what is left without counting."""
        return await self._asked(_Rate(limit, namespace=name), owner, count=False)

    async def _asked(self, item: _Rate, owner: tuple[str, ...], *, count: bool) -> Standing:
        if self._far is not None and time.monotonic() >= self._alone_until:
            try:
                return await asyncio.to_thread(_standing, self._far, item, owner, count=count)
            except StorageError as error:
                log.warning("Redis does not count requests, this server does: %s", error)
                self._alone_until = time.monotonic() + self._retry_seconds
        return _standing(self._near, item, owner, count=count)


def _standing(
    limiter: MovingWindowRateLimiter, item: _Rate, owner: tuple[str, ...], *, count: bool
) -> Standing:
    allowed = limiter.hit(item, *owner) if count else limiter.test(item, *owner)
    stats = limiter.get_window_stats(item, *owner)
    seconds = max(1, math.ceil(stats.reset_time - time.time()))
    return Standing(allowed, item.amount, max(0, stats.remaining), seconds)


def _redis(settings: Settings) -> MovingWindowRateLimiter:
    from limits.errors import ConfigurationError

    password = settings.cache_redis_password
    url = settings.cache_redis_url
    if url.startswith("unix:"):
        url = f"redis+{url}"
    secret = password.get_secret_value() if password else ""
    try:
        storage = RedisStorage(
            url,
            wrap_exceptions=True,
            key_prefix=PREFIX,
            socket_timeout=settings.cache_redis_seconds,
            socket_connect_timeout=settings.cache_redis_seconds,
            password=secret,
        )
    except ConfigurationError:
        raise OperatorError(
            "limits in Redis need a package that is not installed",
            value="redis",
            hint="pip install 'carrel[redis]', or unset CARREL_CACHE_REDIS_URL",
        ) from None
    return MovingWindowRateLimiter(storage)
