"""Rows of documents: none is left of what is replaced, and no id is ever used again."""

from __future__ import annotations

import sqlite3

import pytest
from behind import change, count, full_text_hits, indexed, rows
from fakes import Shelf

from core.auth import AuthContext
from stores.sqlite.fulltext import keyword_text
from stores.store import Store


def ids(store: Store, table: str) -> set[int]:
    return {row for (row,) in rows(store, f"SELECT id FROM {table}")}


def test_no_row_id_comes_back(shelf: Shelf) -> None:
    used: dict[str, set[int]] = {"chunks": set(), "documents": set()}
    for turn in range(4):
        shelf.write(shelf.row("a", f"one {turn}", "two"))
        for table, seen in used.items():
            now = ids(shelf.store, table)
            assert not now & seen
            seen |= now
        if turn % 2:
            shelf.remove(["a"])


def test_a_dropped_collection_leaves_its_id(shelf: Shelf) -> None:
    shelf.intake.drop_collection_if_empty(shelf.collection)
    assert shelf.intake.open_collection("acme", "main", None).id > shelf.id


def test_opening_a_collection_again_keeps_its_id(shelf: Shelf) -> None:
    assert shelf.intake.open_collection("acme", "main", None).id == shelf.id
    assert shelf.intake.open_collection("acme", "next", None).id == shelf.id + 1


def test_an_id_that_was_used_is_refused(shelf: Shelf) -> None:
    shelf.write(shelf.row("a", "one"))
    shelf.remove(["a"])
    with pytest.raises(sqlite3.IntegrityError, match="used again"):
        change(
            shelf.store,
            "INSERT INTO documents (id, key, collection_id, tenant, document_id, file, source,"
            " title, format, language, is_record, is_open, version, updated_at, content_hash,"
            " metadata, indexed_at) SELECT 1, 'k', id, tenant, 'd', 'f', 's', 't', 'text', 'en',"
            " 0, 1, '', '', 'h', '{}', '' FROM collections",
        )


def test_what_dies_is_noted_also_by_cascade(shelf: Shelf) -> None:
    shelf.write(shelf.row("a", "one", "two"))
    before = ids(shelf.store, "chunks")
    shelf.remove(["a"])
    assert ids(shelf.store, "dead_chunks") == before


ANN = AuthContext(tenant="acme")
OWNED = ("documents", "document_acl", "chunks", "record_fields")


def counts(store: Store) -> list[int]:
    return [count(store, table) for table in OWNED]


def test_no_row_is_left_of_what_was_written_again_replaced_or_removed(shelf: Shelf) -> None:
    row = shelf.row("a", "one", "two", acl=["boss"], fields={"x": 1, "y": 2})
    for _ in range(2):
        shelf.write(row)
        assert counts(shelf.store) == [1, 1, 2, 2]
    shelf.write(shelf.row("a", "three"))
    assert (counts(shelf.store), indexed(shelf.store, shelf.id)) == ([1, 0, 1, 0], 1)
    shelf.remove(["a"])
    assert (counts(shelf.store), indexed(shelf.store, shelf.id)) == ([0, 0, 0, 0], 0)


def test_a_failed_write_changes_nothing(shelf: Shelf) -> None:
    shelf.write(shelf.row("a", "one"))
    version = shelf.catalogue.index_version()
    twice = shelf.row("b", "new", "new")
    broken = shelf.row("c", "x")
    object.__setattr__(broken.chunks[0], "chunk_id", twice.chunks[0].chunk_id)
    with pytest.raises(Exception, match="UNIQUE"):
        shelf.write(shelf.row("a", "changed"), twice, broken)
    assert shelf.catalogue.index_version() == version
    assert counts(shelf.store) == [1, 0, 1, 0]
    found = full_text_hits(shelf.store, shelf.id, [{"one"}], 5)
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
