"""The classic pipeline: a book's record and its full texts vote, and are searched, as one."""

from __future__ import annotations

from collections.abc import Callable

from fakes import FakeEmbedder, document, write

from core.auth import AuthContext
from retrievers.pipelines import classic_search
from retrievers.types import Index, Query
from stores.sqlite.catalogue import Collection
from stores.sqlite.sums import sign
from stores.store import Store, parts

ACME = AuthContext(tenant="acme")


def filled(store: Store, collection: Collection, embedder: FakeEmbedder, acl: str = "") -> None:
    rows = [
        document(collection, "b1", "harbour lights", fields={}, title="The Harbour"),
        document(collection, "one.txt", "harbour lights one", acl=[acl] if acl else []),
        document(collection, "two.txt", "harbour lights two"),
        document(collection, "b2", "harbour lights", "harbour lights owl", fields={}),
    ]
    write(store, collection, rows, embedder)
    with parts(store).database.write() as connection:
        connection.execute(
            """INSERT INTO book_texts SELECT t.id, b.id, b.collection_id, '1', NULL
               FROM documents t, documents b
               WHERE t.document_id LIKE '%.txt' AND b.document_id = 'b1'"""
        )
        sign(connection, "book_texts", "1")
        connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'index_version'")


def elected(index: Index, auth: AuthContext = ACME) -> set[str]:
    found = classic_search(index, Query("harbour lights", auth), 10, 10)
    return {item.document_id for item in found.evidence}


def test_the_parts_of_a_book_vote_together(
    store: Store, collection: Collection, embedder: FakeEmbedder, index: Callable[..., Index]
) -> None:
    filled(store, collection, embedder)
    values = {"stage_near_duplicates": False}
    assert elected(index(**values)) == {"b1", "one.txt", "two.txt"}
    assert elected(index(**values, classic_books=False)) == {"b2"}


def test_parts_that_a_caller_may_not_see_have_no_vote(
    store: Store, collection: Collection, embedder: FakeEmbedder, index: Callable[..., Index]
) -> None:
    filled(store, collection, embedder, acl="staff")
    staff = AuthContext(tenant="acme", roles=frozenset({"staff"}))
    values = {"stage_near_duplicates": False}
    assert elected(index(**values), staff) == {"b1", "one.txt", "two.txt"}
    assert "one.txt" not in elected(index(**values))
