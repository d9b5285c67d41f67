"""A data directory whose chunks lie in a published segment, to be damaged: `harbour`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fakes import FakeEmbedder, document, write

from core.auth import AuthContext
from stores.sqlite.catalogue import Collection
from stores.sqlite.rows import DocumentRow
from stores.store import Store

LOW = {"segment_min_rows": 10}
ANN = AuthContext(tenant="acme")


def harbour_rows(collection: Collection, count: int) -> list[DocumentRow]:
    """Build documents of one chunk each: "harbour tide7 crane1" is that of d07."""
    return [document(collection, f"d{n:02}", f"harbour tide{n} crane{n % 3}") for n in range(count)]


@pytest.fixture
def harbour(open_store: Callable[..., Store], embedder: FakeEmbedder) -> Path:
    """Hold 40 chunks in a published segment, closed."""
    store = open_store(**LOW)
    collection = store.intake.open_collection("acme", "main", None)
    write(store, collection, harbour_rows(collection, 40), embedder)
    store.search.refresh(collection)
    store.close()
    return store.folder


def found(store: Store, text: str = "harbour tide7") -> list[str]:
    """Return the chunks of the first collection that words and vector find."""
    terms = [{word} for word in text.split()]
    vector = FakeEmbedder().embed_query(text)
    ids = store.search.candidates(ANN, 1, terms=terms, vector=vector, pool=5).chunk_ids
    return sorted(store.catalogue.evidence(ANN, 1, ids))
