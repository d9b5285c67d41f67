"""Writing documents: replaced whole, removed whole, counted by the index version."""

from __future__ import annotations

import pytest
from fakes import FakeEmbedder, document, remove, write

from core.auth import AuthContext
from stores.sqlite.catalogue import Collection
from stores.sqlite.fulltext import keyword_text
from stores.store import Store, parts

ANN = AuthContext(tenant="acme")
OWNED = ("documents", "document_acl", "chunks", "record_fields")


def count(store: Store, table: str) -> int:
    return parts(store).database.read().execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def test_writing_twice_is_writing_once(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    row = document(collection, "a", "one", "two", acl=["boss"], fields={"x": 1})
    write(store, collection, [row], embedder)
    before = {table: count(store, table) for table in OWNED}
    write(store, collection, [row], embedder)
    assert {table: count(store, table) for table in OWNED} == before
    assert before == {"documents": 1, "document_acl": 1, "chunks": 2, "record_fields": 1}


def test_a_replaced_document_leaves_nothing_of_the_old(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    old = document(collection, "a", "one", "two", acl=["ceo"], fields={"x": 1, "y": 2})
    write(store, collection, [old], embedder)
    write(store, collection, [document(collection, "a", "three")], embedder)
    assert [count(store, table) for table in OWNED] == [1, 0, 1, 0]
    assert parts(store).fulltext.rows(collection.id) == 1


def test_forgetting_a_file_removes_all_that_was_in_it(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    rows = [document(collection, n, "one", acl=["ceo"], fields={"x": 1}) for n in ("a", "b")]
    write(store, collection, rows, embedder)
    remove(store, collection, ["a", "b"])
    assert [count(store, table) for table in OWNED] == [0, 0, 0, 0]
    assert parts(store).fulltext.rows(collection.id) == 0


def test_a_failed_write_changes_nothing(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    write(store, collection, [document(collection, "a", "one")], embedder)
    version = store.catalogue.index_version()
    twice = document(collection, "b", "new", "new")
    broken = document(collection, "c", "x")
    object.__setattr__(broken.chunks[0], "chunk_id", twice.chunks[0].chunk_id)
    with pytest.raises(Exception, match="UNIQUE"):
        write(store, collection, [document(collection, "a", "changed"), twice, broken], embedder)
    assert store.catalogue.index_version() == version
    assert [count(store, table) for table in OWNED] == [1, 0, 1, 0]
    found = parts(store).fulltext.search(ANN, collection.id, [{"one"}], 5)
    assert len(found) == 1


@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        ("{}", ""),
        ('{"keywords": ["a", "b"], "authors": "c"}', "a b c"),
        ('{"keywords": null, "authors": [1]}', "1"),
        ('{"keywords": {"a": 1}}', ""),
    ],
)
def test_keywords_and_authors_are_indexed(metadata: str, text: str) -> None:
    assert keyword_text(metadata) == text
