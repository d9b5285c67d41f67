"""What a backup says of itself: where it comes from and what every part must be."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from core.errors import OperatorError
from stores.accounts.audit_chain import HEAD_FILE, KEY_FILE
from stores.runlog.conversations import THREADS
from stores.sqlite.schema import FORMAT, other_format

CATALOGUE = "catalogue.sqlite3"
WORK = "backup.work"  # the folder in a data directory where its copies are made
MANIFEST = "manifest.json"
MANIFEST_BYTES = 1_000_000
PARTS = (CATALOGUE, THREADS, KEY_FILE, HEAD_FILE)  # all that a backup may hold
BLOCK = 1 << 20


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
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
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
