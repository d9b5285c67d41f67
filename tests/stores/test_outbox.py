"""Whatever interrupts the way from the catalogue to Chroma, draining ends in equal sets."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest
from fakes import FakeEmbedder, document, remove, write

from core.errors import OperatorError
from stores.catalogue import Collection
from stores.store import Store


def in_chroma(store: Store, collection: Collection) -> dict[str, int]:
    """Return the document row id of each chunk id that Chroma holds."""
    found = store.chroma._collection(collection.id).get(include=["metadatas"])
    return {
        key: meta["document"] for key, meta in zip(found["ids"], found["metadatas"], strict=True)
    }


def in_truth(store: Store, collection: Collection) -> dict[str, int]:
    rows = store.database.read().execute(
        "SELECT chunk_id, document FROM chunks WHERE collection_id = ?", (collection.id,)
    )
    return {row[0]: row[1] for row in rows}


def some(collection: Collection, count: int, word: str = "text"):
    return [document(collection, f"d{n}", f"{word} {n}", f"more {n}") for n in range(count)]


def test_changes_wait_in_the_outbox_until_drained(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    write(store, collection, some(collection, 3), embedder)
    assert store.outbox.pending() == 6
    assert in_chroma(store, collection) == {}
    seen: list[int] = []
    store.outbox.drain(seen.append)
    assert sum(seen) == 6
    assert store.outbox.pending() == 0
    assert in_chroma(store, collection) == in_truth(store, collection)


def test_a_process_that_ends_between_truth_and_chroma_is_made_good(
    open_store: Callable[..., Store], embedder: FakeEmbedder
) -> None:
    first = open_store()
    collection = first.writer.open_collection("acme", "main", None)
    write(first, collection, some(collection, 4), embedder)
    first.close()
    second = open_store()
    assert second.outbox.pending() == 8
    second.outbox.drain()
    assert in_chroma(second, collection) == in_truth(second, collection) != {}


@pytest.mark.parametrize("batches", [1, 2])
def test_an_interrupted_drain_goes_on_where_it_stopped(
    open_store: Callable[..., Store], embedder: FakeEmbedder, batches: int
) -> None:
    store = open_store(vector_batch=3)
    collection = store.writer.open_collection("acme", "main", None)
    write(store, collection, some(collection, 5), embedder)
    left = iter(range(batches))

    def stop(count: int) -> None:
        if next(left, None) == batches - 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.outbox.drain(stop)
    assert store.outbox.pending() == 10 - 3 * batches
    store.close()
    again = open_store(vector_batch=3)
    again.outbox.drain()
    assert in_chroma(again, collection) == in_truth(again, collection)


def test_changes_and_removals_reach_chroma(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    write(store, collection, some(collection, 4), embedder)
    store.outbox.drain()
    remove(store, collection, ["d0", "d1"])
    write(store, collection, [document(collection, "d2", "rewritten")], embedder)
    store.outbox.drain()
    assert in_chroma(store, collection) == in_truth(store, collection)
    assert len(in_truth(store, collection)) == 3


def test_removing_before_the_first_drain_leaves_nothing(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    write(store, collection, some(collection, 2), embedder)
    remove(store, collection, ["d0", "d1"])
    store.outbox.drain()
    assert in_chroma(store, collection) == {} == in_truth(store, collection)


@pytest.mark.parametrize("lost", [True, False])
def test_the_index_is_rebuilt_from_the_catalogue_alone(
    open_store: Callable[..., Store], embedder: FakeEmbedder, lost: bool
) -> None:
    store = open_store()
    collection = store.writer.open_collection("acme", "main", None)
    write(store, collection, some(collection, 3), embedder)
    store.outbox.drain()
    if lost:
        store.close()
        shutil.rmtree(store.folder / "chroma")
        store = open_store()
        with pytest.raises(OperatorError, match="was changed by something else"):
            in_chroma(store, collection)
    assert store.rebuild_vectors() == 6
    assert store.outbox.pending() == 0
    assert in_chroma(store, collection) == in_truth(store, collection)


def test_each_collection_keeps_its_own_vectors(store: Store, embedder: FakeEmbedder) -> None:
    made = [store.writer.open_collection(tenant, "main", None) for tenant in ("acme", "other")]
    for number, collection in enumerate(made, start=1):
        write(store, collection, some(collection, number), embedder)
    store.outbox.drain()
    for number, collection in enumerate(made, start=1):
        assert store.chroma.count(collection.id) == 2 * number
        assert in_chroma(store, collection) == in_truth(store, collection)


def test_a_failing_chroma_keeps_the_changes_pending(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    write(store, collection, some(collection, 1), embedder)
    (store.folder / "chroma").write_text("in the way")
    with pytest.raises(OperatorError, match="reindex"):
        store.outbox.drain()
    assert store.outbox.pending() == 2
