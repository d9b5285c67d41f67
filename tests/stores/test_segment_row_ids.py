"""Row ids are never used again, whatever was deleted, and older catalogues learn it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from fakes import FakeEmbedder, document, remove, write

from stores import migrations
from stores.catalogue import Collection
from stores.migrations import MIGRATIONS, apply_migrations
from stores.store import Store


def ids(store: Store, table: str) -> set[int]:
    return {row[0] for row in store.database.read().execute(f"SELECT id FROM {table}")}


def test_no_row_id_comes_back(store: Store, collection: Collection, embedder: FakeEmbedder) -> None:
    used: dict[str, set[int]] = {"chunks": set(), "documents": set()}
    for turn in range(4):
        write(store, collection, [document(collection, "a", f"one {turn}", "two")], embedder)
        for table, seen in used.items():
            now = ids(store, table)
            assert not now & seen
            seen |= now
        if turn % 2:
            remove(store, collection, ["a"])


def test_a_dropped_collection_leaves_its_id(store: Store, collection: Collection) -> None:
    store.writer.drop_collection_if_empty(collection)
    assert store.writer.open_collection("acme", "main", None).id > collection.id


def test_opening_a_collection_again_keeps_its_id(store: Store, collection: Collection) -> None:
    assert store.writer.open_collection("acme", "main", None).id == collection.id
    assert store.writer.open_collection("acme", "next", None).id == collection.id + 1


def test_an_id_that_was_used_is_refused(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    write(store, collection, [document(collection, "a", "one")], embedder)
    remove(store, collection, ["a"])
    with (
        pytest.raises(sqlite3.IntegrityError, match="used again"),
        store.database.write() as connection,
    ):
        connection.execute(
            "INSERT INTO documents (id, key, collection_id, tenant, document_id, file, source,"
            " title, format, language, is_record, is_open, version, updated_at, content_hash,"
            " metadata, indexed_at) SELECT 1, 'k', id, tenant, 'd', 'f', 's', 't', 'text', 'en',"
            " 0, 1, '', '', 'h', '{}', '' FROM collections"
        )


def test_what_dies_is_noted_also_by_cascade(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    write(store, collection, [document(collection, "a", "one", "two")], embedder)
    before = ids(store, "chunks")
    remove(store, collection, ["a"])
    assert ids(store, "dead_chunks") == before


def test_an_older_catalogue_goes_on_above_its_highest_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = sqlite3.connect(tmp_path / "old.sqlite3", isolation_level=None)
    connection.execute("PRAGMA foreign_keys=ON")
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "MIGRATIONS", MIGRATIONS[:3])
        apply_migrations(connection)
    connection.execute("INSERT INTO collections VALUES (3, 'acme', 'main', '{}', '')")
    connection.execute(
        "INSERT INTO documents VALUES (7, 'k', 3, 'acme', 'd', 'f', 's', 't', 'text', 'en', 0, 1,"
        " '', '', 'h', '{}', '')"
    )
    connection.execute("INSERT INTO chunks VALUES (11, 'c', 7, 3, 0, 'x', 'text', '', 1, 1, 'h')")
    assert "m004_segments" in apply_migrations(connection)
    last = dict(connection.execute("SELECT key, value FROM meta WHERE key LIKE 'last_%'"))
    assert last == {"last_collections": "3", "last_documents": "7", "last_chunks": "11"}
    assert connection.execute("SELECT text FROM chunks").fetchall() == [("x",)]
    connection.execute("DELETE FROM documents")
    assert connection.execute("SELECT * FROM dead_chunks").fetchall() == [(3, 11)]
    connection.close()
