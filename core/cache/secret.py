"""The secret of a data directory: nobody without it reads keys or makes values."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import struct
from collections.abc import Mapping
from pathlib import Path

from core.cache.types import Held
from core.errors import OperatorError

SECRET_BYTES = 32
KEY_FILE = "cache.key"
FORMAT = b"carrel-1"
_HEAD = struct.Struct("<d")  # until when
_SIGN = hashlib.sha256().digest_size


class Secret:
    """Make keys of what decides a value, and sign values that leave this process."""

    def __init__(self, secret: bytes) -> None:
        """Take 32 random bytes."""
        self._secret = secret

    def key(self, cache: str, fields: Mapping[str, object]) -> str:
        """Return a key that tells nothing of the fields, another one for any other fields.

        The fields are JSON values; raises TypeError or ValueError for others.
        """
        told = json.dumps([cache, fields], sort_keys=True, allow_nan=False, separators=(",", ":"))
        return hmac.new(self._secret, b"key" + told.encode("ascii"), hashlib.sha256).hexdigest()

    def sealed(self, key: str, held: Held) -> bytes:
        """Return a value with its time, signed for this key alone."""
        head = _HEAD.pack(held.until)
        return self._signature(key, head, held.value) + head + held.value

    def opened(self, key: str, sealed: bytes) -> Held | None:
        """Return what was sealed, None for anything else."""
        sign, head = sealed[:_SIGN], sealed[_SIGN : _SIGN + _HEAD.size]
        value = sealed[_SIGN + _HEAD.size :]
        if len(head) < _HEAD.size or not hmac.compare_digest(
            sign, self._signature(key, head, value)
        ):
            return None
        return Held(value, _HEAD.unpack(head)[0])

    def _signature(self, key: str, head: bytes, value: bytes) -> bytes:
        told = b"|".join((b"value", FORMAT, key.encode("ascii"), head, value))
        return hmac.new(self._secret, told, hashlib.sha256).digest()


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
            secret = os.urandom(SECRET_BYTES)
            fresh = path.with_suffix(".new")
            fresh.unlink(missing_ok=True)
            with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(secret)
            fresh.replace(path)
    except OSError as error:
        raise OperatorError(
            "a cache in Redis needs its key file",
            value=f"{path} ({error.strerror})",
            hint="correct the permissions of the data directory, or unset CARREL_CACHE_REDIS_URL",
        ) from None
    return Secret(secret)
