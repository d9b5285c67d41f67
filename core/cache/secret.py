"""The secret of a data directory: nobody without it reads keys or makes values."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from core.cache.types import Held
from core.errors import OperatorError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

SECRET_BYTES = 32
KEY_FILE = "cache.key"
FORMAT = b"carrel-1"
_HEAD = struct.Struct("<d")  # until when
NONCE_BYTES = 12


class Secret:
    """Make keys of what decides a value, and encrypt values that leave this process."""

    def __init__(self, secret: bytes) -> None:
        """Take 32 random bytes."""
        self._take(secret)

    def _take(self, secret: bytes) -> None:
        self._secret = secret
        self._cipher: AESGCM | None = None

    def renew(self) -> None:
        """Replace the secret by another: nothing made with it before is found or read again."""
        self._take(os.urandom(SECRET_BYTES))

    @property
    def namespace(self) -> str:
        """Return a name that separates the keys of this secret from others; it reveals nothing."""
        return hmac.new(self._secret, b"namespace", hashlib.sha256).hexdigest()[:12]

    def key(self, cache: str, fields: Mapping[str, object]) -> str:
        """Return a key that tells nothing of the fields, another one for any other fields.

        The fields are JSON values; raises TypeError or ValueError for others.
        """
        told = json.dumps([cache, fields], sort_keys=True, allow_nan=False, separators=(",", ":"))
        return hmac.new(self._secret, b"key" + told.encode("ascii"), hashlib.sha256).hexdigest()

    def sealed(self, key: str, held: Held) -> bytes:
        """Return a value with its time, readable and genuine under this key alone (AES-GCM)."""
        head, nonce = _HEAD.pack(held.until), os.urandom(NONCE_BYTES)
        return head + nonce + self._aead().encrypt(nonce, held.value, _bound(key, head))

    def opened(self, key: str, sealed: bytes) -> Held | None:
        """Return the decrypted value, None for anything else."""
        from cryptography.exceptions import InvalidTag

        head, rest = sealed[: _HEAD.size], sealed[_HEAD.size :]
        nonce, text = rest[:NONCE_BYTES], rest[NONCE_BYTES:]
        try:
            value = self._aead().decrypt(nonce, text, _bound(key, head))
        except (InvalidTag, ValueError):  # forged; too short
            return None
        return Held(value, _HEAD.unpack(head)[0])

    def _aead(self) -> AESGCM:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        if self._cipher is None:  # another key than that of `key`
            self._cipher = AESGCM(hmac.new(self._secret, b"values", hashlib.sha256).digest())
        return self._cipher


class FileSecret(Secret):
    """Keep the secret in a file; once it is renewed, older encrypted values cannot be read."""

    def __init__(self, path: Path, secret: bytes) -> None:
        """Take the file and what stands in it."""
        super().__init__(secret)
        self._path = path

    def renew(self) -> None:
        """Replace the secret by another, in the file first."""
        self._take(_written(self._path))


def _bound(key: str, head: bytes) -> bytes:
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
            secret = _written(path)
    except OSError as error:
        raise OperatorError(
            "a cache in Redis needs its key file",
            value=f"{path} ({error.strerror})",
            hint="correct the permissions of the data directory, or unset"
            " CARREL_CACHING__REDIS_URL",
        ) from None
    return FileSecret(path, secret)


def _written(path: Path) -> bytes:
    """Write a new secret into a file and return it."""
    secret = os.urandom(SECRET_BYTES)
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secret)
    fresh.replace(path)
    return secret
