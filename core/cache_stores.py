"""Where remembered values lie: in memory, or encrypted in Redis by a directory's secret."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import os
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from cachetools import TLRUCache

from core.distribution import require_extra
from core.errors import OperatorError
from core.settings import Settings

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from redis import Redis


class CachedValue(NamedTuple):
    """Pair a cached value with the time of `time.time()` until which it is good."""

    value: bytes
    until: float


SECRET_BYTES = 32  # as long as the SHA-256 that keys are made with
KEY_FILE = "cache.key"
FORMAT = b"carrel-1"
_HEAD = struct.Struct("<d")  # until when
NONCE_BYTES = 12  # of AES-GCM (NIST SP 800-38D)


class Secret:
    """Make keys of what decides a value, and encrypt values that leave this process."""

    def __init__(self, secret: bytes, path: Path | None = None) -> None:
        """Take 32 random bytes, and the file that keeps them."""
        self._secret = secret
        self._path = path
        self._cipher: AESGCM | None = None

    def renew(self) -> None:
        """Replace the secret by another: nothing made with it before is found or read again."""
        self._secret = os.urandom(SECRET_BYTES) if self._path is None else _write_secret(self._path)
        self._cipher = None

    def read(self) -> None:
        """Take over the secret in the file, which another process may have replaced."""
        if self._path is not None:
            self._secret, self._cipher = secret_of(self._path.parent)._secret, None

    @property
    def namespace(self) -> str:
        """Return a name that separates the keys of this secret from others; it reveals nothing."""
        return hmac.new(self._secret, b"namespace", hashlib.sha256).hexdigest()[:12]

    def key(self, cache: str, fields: Mapping[str, object]) -> str:
        """Return a key that tells nothing of the fields, another one for any other fields.

        The fields are JSON values; raises TypeError or ValueError for others.
        """
        text = json.dumps([cache, fields], sort_keys=True, allow_nan=False, separators=(",", ":"))
        return hmac.new(self._secret, b"key" + text.encode("ascii"), hashlib.sha256).hexdigest()

    def seal(self, key: str, entry: CachedValue) -> bytes:
        """Return a value with its time, readable and genuine under this key alone (AES-GCM)."""
        head, nonce = _HEAD.pack(entry.until), os.urandom(NONCE_BYTES)
        return head + nonce + self._aead().encrypt(nonce, entry.value, _bind_header(key, head))

    def unseal(self, key: str, sealed: bytes) -> CachedValue | None:
        """Return the decrypted value, None for anything else."""
        from cryptography.exceptions import InvalidTag

        head, rest = sealed[: _HEAD.size], sealed[_HEAD.size :]
        nonce, text = rest[:NONCE_BYTES], rest[NONCE_BYTES:]
        try:
            value = self._aead().decrypt(nonce, text, _bind_header(key, head))
        except (InvalidTag, ValueError):  # forged; too short
            return None
        return CachedValue(value, _HEAD.unpack(head)[0])

    def _aead(self) -> AESGCM:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        if self._cipher is None:  # another key than that of `key`
            self._cipher = AESGCM(hmac.new(self._secret, b"values", hashlib.sha256).digest())
        return self._cipher


def _bind_header(key: str, head: bytes) -> bytes:
    return b"|".join((FORMAT, key.encode("ascii"), head))


def random_secret() -> Secret:
    """Return a secret that ends with this process."""
    return Secret(os.urandom(SECRET_BYTES))


def secret_of(folder: Path) -> Secret:
    """Return the secret of a data directory, made when it has none; only its owner may read it.

    Raises OperatorError when it can be neither read nor made.
    """
    path = folder / KEY_FILE
    try:
        secret = path.read_bytes() if path.exists() else b""
        if len(secret) != SECRET_BYTES:
            secret = _write_secret(path)
    except OSError as error:
        raise OperatorError(
            "a cache in Redis needs its key file",
            value=f"{path} ({error.strerror})",
            hint="correct the permissions of the data directory, or unset"
            " CARREL_CACHING__REDIS_URL",
        ) from None
    return Secret(secret, path)


def _write_secret(path: Path) -> bytes:
    """Write a new secret into a file and return it."""
    secret = os.urandom(SECRET_BYTES)
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secret)
    fresh.replace(path)
    return secret


OVERHEAD = 400  # bytes of a key, its place and its time, beside the value; estimated


class MemoryStore:
    """Keep at most `entries` values, or values of `size` bytes with their keys in all.

    Safe to share between threads.
    """

    def __init__(
        self,
        *,
        entries: int | None = None,
        size: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Take one of the two limits; `clock` tells the time of `until`."""
        limit = entries if entries is not None else size
        if limit is None:
            raise TypeError("a store has a limit: entries or size")
        self._lock = Lock()
        self._entries: TLRUCache[str, CachedValue] = TLRUCache(
            maxsize=limit,
            ttu=lambda key, entry, now: entry.until,
            timer=clock,
            getsizeof=None if entries is not None else lambda entry: len(entry.value) + OVERHEAD,
        )

    @property
    def entries(self) -> int:
        """Return how many values are kept."""
        with self._lock:
            return int(len(self._entries))

    def get(self, keys: Sequence[str]) -> list[CachedValue | None]:
        """Return the value kept for each key."""
        with self._lock:
            return [self._entries.get(key) for key in keys]

    def put(self, values: Mapping[str, bytes], until: float) -> None:
        """Hold values; one that is larger than all the room is left out."""
        for key, value in values.items():
            self.hold(key, CachedValue(value, until))

    def hold(self, key: str, entry: CachedValue) -> None:
        """Hold one value."""
        with self._lock:
            try:
                self._entries[key] = entry
            except (ValueError, KeyError):  # too large for the room; over before it began
                return

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()


RETRY_SECONDS = 10  # how long a Redis that failed is left alone; chosen, not measured

T = TypeVar("T")
PREFIX = "carrel:"
SCANNED = 1000  # keys that Redis looks at in one step; chosen, not measured
MOST_BYTES = 4_000_000  # of one value: somebody else may have written it
log = logging.getLogger("carrel.serve")


class RedisStore:
    """Keep values in Redis; one that fails is left alone for a while, and work goes on without.

    A value that was not encrypted with this data directory's secret, for its key, counts as absent.
    Safe to share between threads.
    """

    def __init__(
        self,
        client: Redis,
        secret: Secret,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Take a client with timeouts; nothing is sent yet."""
        self._client = client
        self._secret = secret
        self._clock = clock
        self._lock = Lock()
        self._left_alone_until = 0.0
        self.failures = 0
        self.forged = 0

    @property
    def up(self) -> bool:
        """Tell whether Redis is not being left alone."""
        return self._clock() >= self._left_alone_until

    def get(self, keys: Sequence[str]) -> list[CachedValue | None]:
        """Return the value kept for each key."""

        def ask() -> list[bytes]:
            pipe = self._client.pipeline(transaction=False)
            for key in keys:
                pipe.getrange(self._place(key), 0, MOST_BYTES)
            replies: list[bytes] = pipe.execute()
            return replies

        replies = self._ask_server(ask) if keys else None
        if replies is None:
            return [None] * len(keys)
        return [self._open_reply(key, reply) for key, reply in zip(keys, replies, strict=True)]

    def put(self, values: Mapping[str, bytes], until: float) -> None:
        """Hold values until a time; those that are too large are left out."""
        milliseconds = int((until - self._clock()) * 1000)
        fitting = {key: value for key, value in values.items() if len(value) < MOST_BYTES - 100}
        if milliseconds <= 0 or not fitting:
            return

        def tell() -> Any:  # noqa: ANN401 - nobody reads it
            pipe = self._client.pipeline(transaction=False)
            for key, value in fitting.items():
                sealed = self._secret.seal(key, CachedValue(value, until))
                pipe.set(self._place(key), sealed, px=milliseconds)
            return pipe.execute()

        self._ask_server(tell)

    def clear(self) -> None:
        """Delete all that this data directory keeps there, as far as Redis can be reached."""
        pattern = self._place("*")

        def tell() -> None:
            for found in self._client.scan_iter(match=pattern, count=SCANNED):
                self._client.unlink(found)

        self._ask_server(tell)

    def _place(self, key: str) -> str:
        return f"{PREFIX}{self._secret.namespace}:{key}"

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _open_reply(self, key: str, reply: object) -> CachedValue | None:
        if not isinstance(reply, bytes) or not reply:
            return None
        entry = self._secret.unseal(key, reply)
        if entry is None:
            with self._lock:
                self.forged += 1
                first = self.forged == 1
            if first:
                log.warning("Redis held a value that this data directory did not seal; ignored")
            return None
        return entry if entry.until > self._clock() else None

    def _ask_server(self, ask: Callable[[], T]) -> T | None:
        from redis.exceptions import RedisError

        if not self.up:
            return None
        try:
            return ask()
        except (RedisError, OSError) as error:
            with self._lock:
                was_up = self.up
                self.failures += 1
                self._left_alone_until = self._clock() + RETRY_SECONDS
            if was_up:
                log.warning(
                    "Redis does not work (%s); left alone for %g s, work goes on without it",
                    type(error).__name__,
                    RETRY_SECONDS,
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
    return RedisStore(client, secret)
