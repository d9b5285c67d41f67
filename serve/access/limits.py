"""What each caller may use: questions, other requests, and tokens of the chat model."""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import json
import math
import time
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace

from limits import RateLimitItemPerMinute
from limits.errors import StorageError
from limits.storage import MemoryStorage, RedisStorage
from limits.strategies import MovingWindowRateLimiter

from core.auth import AuthContext
from core.cache_stores import RETRY_SECONDS
from core.distribution import require_extra
from core.errors import OperatorError, StorageUnavailableError
from core.errors import StorageError as CatalogueError
from core.settings import Settings
from core.trace import RunRecord, Step
from serve.errors import LimitExceeded
from serve.runs.observers import RunObserver
from serve.telemetry.logs import log
from stores.accounts.keys import Key, Spending
from stores.coordination import Coordination, SharedCoordination

PREFIX = "carrel-limits"


class _Rate(RateLimitItemPerMinute):
    """Count in one window whatever the limit, so that a changed one holds for what was done.

    Its key names nobody. It is a digest without a secret, for servers of other data directories
    count in the same window.
    """

    def key_for(self, *identifiers: bytes | str | float) -> str:
        text = json.dumps([str(one) for one in identifiers], separators=(",", ":"))
        return f"{self.namespace}/{hashlib.sha256(text.encode('ascii')).hexdigest()}"


@dataclass(frozen=True)
class RateLimitStatus:
    """How much of a limit is left; `reset` is in seconds until the oldest no longer counts."""

    allowed: bool
    limit: int
    remaining: int
    reset: int


class RateLimiter:
    """Count by name and owner within the last minute, in memory.

    Several servers count in Redis, else in the PostgreSQL that they share. While that does not
    answer, each server counts alone; no caller is turned away for that.
    """

    def __init__(self, settings: Settings, coordination: Coordination | None = None) -> None:
        """Begin at zero, or where others are; raises OperatorError without Redis' library."""
        self._coordination = coordination
        self._memory = MovingWindowRateLimiter(MemoryStorage())
        self._shared = _redis(settings) if settings.caching.redis_url else None
        self._alone_until = 0.0

    async def hit(self, name: str, owner: tuple[str, ...], limit: int) -> RateLimitStatus:
        """Count one call, unless that is more than `limit` in a minute; return the calls left."""
        return await self._ask(_Rate(limit, namespace=name), owner, count=True)

    async def look(self, name: str, owner: tuple[str, ...], limit: int) -> RateLimitStatus:
        """Return the calls left without counting one."""
        return await self._ask(_Rate(limit, namespace=name), owner, count=False)

    async def _ask(self, item: _Rate, owner: tuple[str, ...], *, count: bool) -> RateLimitStatus:
        if time.monotonic() >= self._alone_until:
            try:
                if self._shared is not None:
                    given = (self._shared, item, owner)
                    return await asyncio.to_thread(_standing, *given, count=count)
                if isinstance(self._coordination, SharedCoordination):
                    found = (self._coordination, item, owner)
                    return await asyncio.to_thread(_counted, *found, count=count)
            except (StorageError, CatalogueError) as error:
                where = "Redis" if self._shared else "PostgreSQL"
                log.warning("%s does not count requests, this server does: %s", where, error)
                self._alone_until = time.monotonic() + RETRY_SECONDS
        return _standing(self._memory, item, owner, count=count)


def _counted(
    coordination: SharedCoordination, item: _Rate, owner: tuple[str, ...], *, count: bool
) -> RateLimitStatus:
    window = coordination.hit(item.key_for(*owner), item.amount, count=count)
    left = max(0, item.amount - window.used)
    return RateLimitStatus(window.allowed, item.amount, left, max(1, math.ceil(window.reset_s)))


def _standing(
    limiter: MovingWindowRateLimiter, item: _Rate, owner: tuple[str, ...], *, count: bool
) -> RateLimitStatus:
    allowed = limiter.hit(item, *owner) if count else limiter.test(item, *owner)
    stats = limiter.get_window_stats(item, *owner)
    seconds = max(1, math.ceil(stats.reset_time - time.time()))
    return RateLimitStatus(allowed, item.amount, max(0, stats.remaining), seconds)


def _redis(settings: Settings) -> MovingWindowRateLimiter:
    require_extra("redis", "limits in Redis", otherwise="unset CARREL_CACHING__REDIS_URL")
    password = settings.caching.redis_password
    url = settings.caching.redis_url
    if url.startswith("unix:"):
        url = f"redis+{url}"
    secret = password.get_secret_value() if password else ""
    storage = RedisStorage(
        url,
        wrap_exceptions=True,
        key_prefix=PREFIX,
        socket_timeout=settings.caching.redis_seconds,
        socket_connect_timeout=settings.caching.redis_seconds,
        password=secret,
    )
    return MovingWindowRateLimiter(storage)


# Routes whose requests are counted as the questions they ask, not as requests.
ASKING = frozenset({"/api/v1/chat", "/v1/chat/completions", "/v1/responses"}) | {
    f"/agent{below}/{name}"
    for below in ("", "/c/{config_hash}")
    for name in ("invoke", "batch", "stream", "stream_log", "stream_events")
}
SITE_BITS = 64  # the part of an IPv6 address that one customer's machines share

_key: ContextVar[Key | None] = ContextVar("key", default=None)


class CallerLimits:
    """Count what verified callers do, whichever address or key they use.

    A key's own limits hold for the requests it is used for; the counts are the user's.
    """

    def __init__(
        self, settings: Settings, spending: Spending, coordination: Coordination | None = None
    ) -> None:
        """Begin with the tokens that were used before."""
        self.settings = settings
        self._spending = spending
        self._limiter = RateLimiter(settings, coordination)

    async def enter(self, auth: AuthContext, key: Key | None, route: str) -> Mapping[str, str]:
        """Count a request and return the limit headers of its response; raises LimitExceeded.

        What is asked in this request is then counted by the limits of `key`.
        """
        _key.set(key)
        owner = (auth.tenant, auth.user)
        if route in ASKING:
            limit = self._ask_rate()
            if not limit:
                return {}
            before = await self._limiter.look("ask", owner, limit)
            return headers_of(replace(before, remaining=max(0, before.remaining - 1)))
        standing = await self._count("request", owner, self.settings.serve.rate)
        return headers_of(standing) if standing else {}

    async def admit(self, auth: AuthContext) -> RunObserver:
        """Count a question; raises LimitExceeded when the caller has asked or used too much."""
        owner = (auth.tenant, auth.user)
        key = _key.get()
        own = key.tokens_per_day if key else None
        allowed = self.settings.serve.tokens_per_day if own is None else own
        if allowed and (wait := self._spending.seconds_until(*owner, allowed)):
            standing = RateLimitStatus(allowed=False, limit=allowed, remaining=0, reset=wait)
            rule = f"a caller uses at most {allowed} tokens of the chat model in 24 hours"
            raise LimitExceeded(rule, headers_of(standing), retry_after=wait, of_tokens=True)
        await self._count("ask", owner, self._ask_rate())
        return _Charge(self._spending, auth)

    async def wrong_key(self, address: str) -> None:
        """Count a wrong key; raises LimitExceeded when too many came from its address.

        A right key is never counted, nor refused because of others: who tries wrong ones from the
        same address must not keep it out. A key has 256 random bits, so what is slowed down here is
        the noise, not the chance to guess one.
        """
        limit = self.settings.serve.wrong_keys
        await self._count("wrong", (_site(address),), limit, "an address sends", "wrong keys")

    def _ask_rate(self) -> int:
        key = _key.get()
        own = key.rate if key else None
        return self.settings.serve.ask_rate if own is None else own

    async def _count(
        self,
        name: str,
        owner: tuple[str, ...],
        limit: int,
        who: str = "a caller sends",
        what: str = "",
    ) -> RateLimitStatus | None:
        if not limit:
            return None
        standing = await self._limiter.hit(name, owner, limit)
        if not standing.allowed:
            noun = what or {"ask": "questions", "request": "requests"}[name]
            rule = f"{who} at most {limit} {noun} in a minute"
            raise LimitExceeded(rule, headers_of(standing), retry_after=standing.reset)
        return standing


class _Charge(RunObserver):
    """Charge the tokens of one run to its caller when it ends, however it ends."""

    def __init__(self, spending: Spending, auth: AuthContext) -> None:
        self._spending = spending
        self._auth = auth
        self._tokens = 0

    def on_step(self, step: Step) -> None:
        """Add the tokens of a step: a run that is cancelled later has used them all the same."""
        self._tokens += sum(one.prompt_tokens + one.completion_tokens for one in step.calls)

    def on_end(self, run: RunRecord | None) -> None:
        """Keep the sum; where that cannot be written this process alone remembers it."""
        if not self._tokens:
            return
        try:
            self._spending.add(self._auth.tenant, self._auth.user, self._tokens)
        except (StorageUnavailableError, OperatorError) as error:
            log.error("spent tokens were not kept: %s", error)


def headers_of(standing: RateLimitStatus) -> dict[str, str]:
    """Return a standing as headers of a response."""
    return {
        "X-RateLimit-Limit": str(standing.limit),
        "X-RateLimit-Remaining": str(standing.remaining),
        "X-RateLimit-Reset": str(standing.reset),
    }


def _site(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    return str(ipaddress.ip_network((parsed, SITE_BITS), strict=False))
