"""The catalogue's schema is exactly what its migrations say, and each is applied once."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.errors import OperatorError
from stores import migrations
from stores.database import Database
from stores.migrations import MIGRATIONS, apply_migrations
from stores.store import Store

TABLES = {
    "migrations": ["name", "applied_at"],
    "meta": ["key", "value"],
    "collections": ["id", "tenant", "name", "profile", "created_at", "sum"],
    "files": ["collection_id", "relative", "path", "fingerprint", "failures", "sum"],
    "documents": [
        "id",
        "key",
        "collection_id",
        "tenant",
        "document_id",
        "file",
        "source",
        "title",
        "format",
        "language",
        "is_record",
        "is_open",
        "version",
        "updated_at",
        "content_hash",
        "metadata",
        "indexed_at",
        "sum",
        "body_hash",
    ],
    "document_acl": ["document", "principal"],
    "chunks": [
        "id",
        "chunk_id",
        "document",
        "collection_id",
        "ordinal",
        "text",
        "kind",
        "section",
        "page",
        "tokens",
        "content_hash",
        "context",
        "sum",
    ],
    "record_fields": ["document", "collection_id", "name", "value", "folded", "number"],
    "embeddings": ["content_hash", "model", "vector", "sum"],
    "journal": ["collection_id", "document_id", "file", "stage", "chunks"],
    "outbox": ["chunk_id", "collection_id", "operation"],
    "sentence_vectors": ["content_hash", "model", "vectors", "sum"],
    "segments": ["collection_id", "name"],
    "dead_chunks": ["collection_id", "id"],
    "runs": [
        "run_id",
        "tenant",
        "user",
        "collection",
        "question",
        "pipeline",
        "created_at",
        "index_version",
        "result",
        "trail",
        "sum",
    ],
    "api_keys": [
        "id",
        "digest",
        "tenant",
        "user",
        "roles",
        "created_at",
        "expires_at",
        "revoked_at",
        "rate",
        "tokens_per_day",
        "sum",
        "scope",
    ],
    "audit": ["seq", "at", "kind", "tenant", "user", "facts", "previous", "hash"],
    "spending": ["tenant", "user", "hour", "tokens"],
    "feedback": ["id", "run_id", "tenant", "user", "rating", "comment", "created_at", "sum"],
    "jobs": [
        *("number", "id", "kind", "tenant", "user", "collection", "name", "roles", "bytes"),
        *("state", "error", "attempts", "documents", "chunks", "notes"),
        *("created_at", "updated_at", "sum", "caller"),
    ],
    "conversations": [
        *("id", "tenant", "user", "collection", "title", "created_at", "updated_at"),
        *("checkpoint_id", "waiting", "sum"),
    ],
    "conversation_turns": [
        *("id", "conversation", "run_id", "question", "created_at", "clarification", "reply"),
        "sum",
    ],
    "erasures": ["id", "collection_id", "documents", "at"],
    "erasure_leftovers": ["kind", "name"],
    "kept_out": ["key", "at"],
    "left_out": ["collection_id", "file", "source", "document_id", "reason"],
    "chunk_prints": ["chunk", "collection_id", "print", "place"],
    "book_texts": ["text", "book", "collection_id", "rule", "sum"],
    "quarantine": ["document", "reason"],
    "aliases": ["collection_id", "kind", "stored", "alias", "sum"],
    "embedders": ["model", "dimension"],
}
NAMES = [
    "m001_catalogue",
    "m002_embeddings",
    "m003_runs",
    "m004_segments",
    "m005_context",
    "m006_serving",
    "m007_conversations",
    "m008_limits",
    "m009_jobs",
    "m010_audit",
    "m011_sums",
    "m012_journal",
    "m013_quality",
    "m014_erasure",
    "m015_audit_names",
    "m016_record_sums",
    "m017_aliases",
    "m018_id_secret",
    "m019_key_scope",
]


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    opened = sqlite3.connect(tmp_path / "catalogue.sqlite3", isolation_level=None)
    yield opened
    opened.close()


def schema(connection: sqlite3.Connection) -> dict[str, list[str]]:
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return {
        name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
        for (name,) in tables
    }


def applied(connection: sqlite3.Connection) -> list[str]:
    return [row[0] for row in connection.execute("SELECT name FROM migrations ORDER BY name")]


def test_a_fresh_catalogue_has_exactly_these_tables(connection: sqlite3.Connection) -> None:
    assert apply_migrations(connection) == NAMES
    assert schema(connection) == TABLES
    assert applied(connection) == NAMES


def test_opening_again_applies_nothing(connection: sqlite3.Connection) -> None:
    apply_migrations(connection)
    before = connection.execute("SELECT * FROM migrations").fetchall()
    assert apply_migrations(connection) == []
    assert connection.execute("SELECT * FROM migrations").fetchall() == before


def test_an_older_catalogue_gets_what_is_missing(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "MIGRATIONS", MIGRATIONS[:1])
        assert apply_migrations(connection) == NAMES[:1]
    assert apply_migrations(connection) == NAMES[1:]
    assert schema(connection) == TABLES


def test_a_newer_catalogue_is_refused(store: Store, open_store: Callable[..., Store]) -> None:
    with store.database.write() as connection:
        connection.execute("INSERT INTO migrations VALUES ('m999_future', '')")
    store.close()
    with pytest.raises(OperatorError, match="m999_future.*Upgrade"):
        open_store()
    with sqlite3.connect(store.folder / "catalogue.sqlite3") as direct:  # it kept no lock
        direct.execute("DELETE FROM migrations WHERE name = 'm999_future'")
    direct.close()
    open_store()


def test_a_failing_migration_leaves_nothing_behind(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def m998_breaks(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE half (a)")
        connection.execute("CREATE TABLE chunks (a)")

    monkeypatch.setattr(migrations, "MIGRATIONS", [*MIGRATIONS, m998_breaks])
    with pytest.raises(sqlite3.OperationalError, match="already exists"):
        apply_migrations(connection)
    assert not connection.in_transaction
    assert schema(connection) == TABLES
    assert applied(connection) == NAMES


@pytest.mark.parametrize("content", [b"not a database at all, but long enough to be read" * 30])
def test_a_file_that_is_no_catalogue_is_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "catalogue.sqlite3"
    path.write_bytes(content)
    with pytest.raises(OperatorError, match="damaged.*backup") as caught:
        Database(path)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == content
