"""Row ids are never used again, whatever was deleted."""

from __future__ import annotations

import sqlite3

import pytest
from fakes import FakeEmbedder, document, remove, write

from stores.sqlite.catalogue import Collection
from stores.store import Store, parts


def ids(store: Store, table: str) -> set[int]:
    return {row[0] for row in parts(store).database.read().execute(f"SELECT id FROM {table}")}


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
    store.intake.drop_collection_if_empty(collection)
    assert store.intake.open_collection("acme", "main", None).id > collection.id


def test_opening_a_collection_again_keeps_its_id(store: Store, collection: Collection) -> None:
    assert store.intake.open_collection("acme", "main", None).id == collection.id
    assert store.intake.open_collection("acme", "next", None).id == collection.id + 1


def test_an_id_that_was_used_is_refused(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    write(store, collection, [document(collection, "a", "one")], embedder)
    remove(store, collection, ["a"])
    with (
        pytest.raises(sqlite3.IntegrityError, match="used again"),
        parts(store).database.write() as connection,
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
