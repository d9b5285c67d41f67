"""The format of a backup: what it says of itself, and how its bytes are sealed (AES-256-GCM).

A sealed file is a magic line, a salt, a random beginning of all nonces, and blocks of 1 MiB, each
sealed with its number and whether it is the last (the STREAM construction of Hoang, Reyhanitabar,
Rogaway and Vizár, 2015). The key comes from the key file by scrypt, so a long passphrase does too.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import struct
from pathlib import Path
from typing import IO, Literal

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from core.errors import OperatorError
from stores.accounts.audit_chain import HEAD_FILE, KEY_FILE
from stores.runlog.conversations import THREADS
from stores.sqlite.schema import FORMAT, other_format

CATALOGUE = "catalogue.sqlite3"
WORK = "backup.work"  # the folder in a data directory where its copies are made
MANIFEST = "manifest.json"
MANIFEST_BYTES = 1_000_000  # a true one has 1 to 2 kB; so large is read from an unknown file
PARTS = (CATALOGUE, THREADS, KEY_FILE, HEAD_FILE)  # all that a backup may hold
BLOCK = 1 << 20  # bytes read and sealed at once; a part of the format, once chosen, not measured


class BackupFile(BaseModel):
    """Name one file with its size and SHA-256."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: Literal["catalogue.sqlite3", "conversations.sqlite3", "audit.key", "audit.head"]
    bytes: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class BackupManifest(BaseModel):
    """Say what a backup holds, of which moment, and which program wrote it."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    format: int
    carrel: str
    made_at: str
    index_version: int
    documents: int
    chunks: int
    models: list[str]
    parts: list[BackupFile]


class _AnyFormat(BaseModel):
    """Hold what the manifest of every format has."""

    format: int = Field(ge=0)
    carrel: str = ""


def read_manifest(text: bytes) -> BackupManifest:
    """Return the manifest of a backup, or raise OperatorError, also for one of another format."""
    try:
        found = _AnyFormat.model_validate_json(text)
        if found.format != FORMAT:
            raise other_format("backup", found.format, f"of Carrel {found.carrel or 'unknown'}")
        return BackupManifest.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise OperatorError(
            "the manifest of the backup is damaged",
            value=f"{where}: {first['msg']}",
            hint="take another backup",
        ) from None


def part_of(path: Path) -> BackupFile:
    """Describe a file."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    return BackupFile.model_validate(
        {"name": path.name, "bytes": path.stat().st_size, "sha256": digest.hexdigest()}
    )


def facts_of(connection: sqlite3.Connection) -> dict[str, object]:
    """Return what a manifest says of a catalogue."""

    def one(query: str) -> int:
        return int(connection.execute(query).fetchone()[0])

    def column(query: str) -> list[str]:
        return [row[0] for row in connection.execute(query)]

    return {
        "format": one("PRAGMA user_version"),
        "index_version": one("SELECT value FROM meta WHERE key = 'index_version'"),
        "documents": one("SELECT count(*) FROM documents"),
        "chunks": one("SELECT count(*) FROM chunks"),
        "models": column("SELECT DISTINCT model FROM embeddings ORDER BY model"),
    }


MAGIC = b"CARREL-SEALED-1\n"
SALT, PREFIX, TAG = 16, 7, 16  # bytes; GCM's tag, and its nonce of 12 less number and last
LEAST_KEY = 16  # bytes of a key file: 128 bits where they are random
COST, MEMORY = 1 << 15, 1 << 26  # of scrypt: 32 MiB and about 0.1 s; a part of the format


def read_key(path: Path) -> bytes:
    """Return what stands in a key file, or raise OperatorError."""
    try:
        key = path.read_bytes().strip()
    except OSError as error:
        raise OperatorError(
            "the key file must be readable",
            value=f"{path} ({error.strerror})",
            hint="make one with `openssl rand -hex 32 > FILE` and keep it apart from the backups",
        ) from None
    if len(key) < LEAST_KEY:
        raise OperatorError(f"a key file has at least {LEAST_KEY} bytes", value=str(path))
    return key


def is_sealed(file: IO[bytes]) -> bool:
    """Return whether a file begins as an encrypted one, and go back to its beginning."""
    sealed = file.read(len(MAGIC)) == MAGIC
    file.seek(0)
    return sealed


class _Blocks:
    def __init__(self, key: bytes, salt: bytes, prefix: bytes) -> None:
        derived = hashlib.scrypt(key, salt=salt, n=COST, r=8, p=1, maxmem=MEMORY, dklen=32)
        self.aead = AESGCM(derived)
        self._prefix = prefix
        self._number = 0

    def nonce(self, last: bool) -> bytes:
        number = struct.pack(">I", self._number)
        self._number += 1
        return self._prefix + number + bytes([last])


class SealingWriter:
    """Take bytes and write them encrypted; `close` writes the last block, not the file's end."""

    def __init__(self, file: IO[bytes], key: bytes) -> None:
        salt, prefix = os.urandom(SALT), os.urandom(PREFIX)
        file.write(MAGIC + salt + prefix)
        self._file = file
        self._blocks = _Blocks(key, salt, prefix)
        self._held = bytearray()

    def write(self, data: bytes) -> int:
        """Take bytes; a block is written when it is known not to be the last."""
        self._held += data
        while len(self._held) > BLOCK:
            self._seal(bytes(self._held[:BLOCK]), last=False)
            del self._held[:BLOCK]
        return len(data)

    def close(self) -> None:
        """Write what is left as the last block."""
        self._seal(bytes(self._held), last=True)

    def _seal(self, block: bytes, *, last: bool) -> None:
        nonce = self._blocks.nonce(last)
        self._file.write(self._blocks.aead.encrypt(nonce, block, MAGIC))


class SealedReader:
    """Return the bytes of an encrypted file, each block only when it is genuine."""

    def __init__(self, file: IO[bytes], key: bytes) -> None:
        """Read the beginning; raises OperatorError for a file that is cut already there."""
        head = file.read(len(MAGIC) + SALT + PREFIX)
        if len(head) < len(MAGIC) + SALT + PREFIX:
            raise _not_genuine()
        salt = head[len(MAGIC) : len(MAGIC) + SALT]
        self._file = file
        self._blocks = _Blocks(key, salt, head[-PREFIX:])
        self._next = file.read(BLOCK + TAG)
        self._open = bytearray()
        self._ended = False

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes, none at the end; raises OperatorError for a false block."""
        while len(self._open) < size and not self._ended:
            self._open += self._block()
        found = bytes(self._open[:size])
        del self._open[:size]
        return found

    def _block(self) -> bytes:
        sealed, self._next = self._next, self._file.read(BLOCK + TAG)
        self._ended = not self._next
        try:
            nonce = self._blocks.nonce(self._ended)
            return self._blocks.aead.decrypt(nonce, sealed, MAGIC)
        except (InvalidTag, ValueError):
            raise _not_genuine() from None


def _not_genuine() -> OperatorError:
    return OperatorError(
        "the backup was sealed with another key, or was changed or cut since",
        hint="give the key file it was made with, or take another backup",
    )
