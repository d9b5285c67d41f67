"""Let documents leave the journal: read them back, and repair what cannot be read."""

from __future__ import annotations

from collections.abc import Sequence

from ingest.vectors import embed_missing
from models.embeddings import Embedder
from stores.store import Store
from stores.verify import requeue


def settle(store: Store, collection_id: int, documents: Sequence[str]) -> dict[str, str]:
    """Read documents back and take those that are whole out of the journal.

    Those that are not are given to the indexes once more; what they still lack is returned by id.
    """
    lacking = store.verifier.missing(collection_id, documents)
    if lacking:
        with store.database.write() as connection:
            requeue(connection, collection_id, list(lacking))
        store.outbox.drain()
        lacking = store.verifier.missing(collection_id, documents)
    store.journal.verified(collection_id, [name for name in documents if name not in lacking])
    return lacking


def recover(store: Store, embedder: Embedder, batch: int) -> int:
    """Bring in what an interrupted run had written already; return how many documents that were.

    Those that cannot be read back stay in the journal.
    """
    store.outbox.drain()
    recovered = 0
    for collection in store.catalogue.collections():
        last, tried = "", False
        while found := store.journal.indexed(collection.id, batch, last):
            lacking = settle(store, collection.id, found)
            if lacking and not tried:  # their vectors may be of another model
                tried = True
                embed_missing(store, embedder, batch, lambda done, total: None, collection.id)
                lacking = settle(store, collection.id, list(lacking))
            recovered += len(found) - len(lacking)
            last = found[-1]
    return recovered
