"""A collection of records, and values that look like SQL: `books`, `find`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from fakes import FakeEmbedder, document, write

from core.auth import AuthContext
from stores.sqlite.catalogue import Collection
from stores.sqlite.record_conditions import Condition, RecordScope
from stores.store import Store

ANN = AuthContext(tenant="acme", user="ann")
BOSS = AuthContext(tenant="acme", user="bo", roles=frozenset({"boss"}))
BOOKS = {
    "dune": {"title": "Dune", "year": 1965, "author": "Herbert", "tags": ["sand", "Space"]},
    "emma": {"title": "Emma", "year": 1815, "author": "Austen", "tags": ["love"]},
    "ulysses": {"title": "Ulysses", "year": 1922, "author": "Joyce"},
    "hidden": {"title": "Hidden", "year": 1999, "author": "Nobody", "secret": "classified"},
}
INJECTIONS = [
    *("' OR '1'='1", "'; DROP TABLE chunks; --", '"; DELETE FROM documents; --'),
    *("year) OR 1=1 --", "title' UNION SELECT vector FROM embeddings --", ":p_tenant"),
    *("?", "%", "*", "\x00", "ä😀"),
]


def called(store: Store, auth: AuthContext, collection: Collection, rows: Iterable[int]) -> list:
    """Return the names of documents, by their row ids."""
    first = store.catalogue.first_chunks(auth, collection.id, rows)
    return [first[row].document_id for row in rows]


@pytest.fixture
def books(store: Store, collection: Collection, embedder: FakeEmbedder) -> Collection:
    """Hold BOOKS, one of them for the boss alone, and a text that is no record."""
    rows = [
        document(
            collection, name, f"About {name}.", fields=fields, acl=["boss"] * (name == "hidden")
        )
        for name, fields in BOOKS.items()
    ]
    write(store, collection, [*rows, document(collection, "prose", "No record.")], embedder)
    return collection


@pytest.fixture
def find(store: Store, books: Collection) -> Callable[..., list[str]]:
    """Return the names of the books that meet conditions."""

    def run(*where: tuple[str, str, object], **options: object) -> list[str]:
        conditions = [Condition(field=f, op=op, value=value) for f, op, value in where]
        given = {"order_by": None, "descending": True, "limit": 10, **options}
        rows, total = store.catalogue.find_records(RecordScope(ANN, books.id), conditions, **given)
        assert total >= len(rows)
        return called(store, ANN, books, rows)

    return run
