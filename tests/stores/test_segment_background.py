"""Building while others search and write: nothing is torn, missed, or kept waiting for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from fakes import FakeEmbedder, document, remove, write

from core.auth import AuthContext
from stores.segments import build
from stores.segments.build import Background
from stores.sqlite.catalogue import Collection
from stores.store import Store, parts

ANN = AuthContext(tenant="acme")
WRITES = 25


@pytest.fixture
def store(open_store: Callable[..., Store], monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(build, "REBUILD_SHARE", 0.0)
    return open_store(segment_min_rows=5, segment_rebuild_min_rows=0)


def built(store: Store) -> int:
    return parts(store).database.read().execute("SELECT count(*) FROM segments").fetchone()[0]


def found(store: Store, collection: Collection, word: str) -> list[str]:
    """Return the texts that are found; each must be there when its search began or ended."""
    candidates = store.search.candidates(
        ANN,
        collection.id,
        terms=[{word}],
        vector=FakeEmbedder().embed_query(word),
        pool=50,
    )
    assert candidates.visible == len(set(candidates.chunk_ids))
    return candidates.chunk_ids


def test_a_segment_is_built_in_the_background(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    write(store, collection, [document(collection, f"d{n}", "rope") for n in range(6)], embedder)
    store.search.refresh_in_background(collection)
    store.search._background.wait()
    assert built(store) == 1
    assert len(found(store, collection, "rope")) == 6


def test_writers_searchers_and_builders_do_not_disturb_each_other(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    """Generation n of a document replaces generation n − 1: a search sees exactly one of them."""
    steady = [document(collection, f"s{n}", "rope") for n in range(10)]
    write(store, collection, [*steady, document(collection, "x", "tide 0")], embedder)
    generations = [document(collection, "x", f"tide {n}", version=str(n)) for n in range(WRITES)]
    order = {row.chunks[0].chunk_id: n for n, row in enumerate(generations)}
    write(store, collection, generations[:1], embedder)
    done = threading.Event()
    wrong: list[object] = []

    def search() -> None:
        last = -1
        while not done.is_set():
            try:
                seen = [order[key] for key in found(store, collection, "tide") if key in order]
            except Exception as error:  # a failed assertion, or anything else
                wrong.append(error)
                return
            if len(seen) != 1 or seen[0] < last:
                wrong.append((last, seen))
                return
            last = seen[0]

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for row in generations[1:]:
        write(store, collection, [row], embedder)
        store.search.refresh_in_background(collection)
    store.search._background.wait()
    done.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert built(store) == 1
    assert store.search.problems([collection]) == []


def test_closing_cancels_a_build(
    store: Store, collection: Collection, embedder: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(store, collection, [document(collection, f"d{n}", "rope") for n in range(6)], embedder)
    begun = threading.Event()
    real = build.Rows.extend

    def endless(self, connection):
        for done in real(self, connection):
            begun.set()
            while True:
                yield done

    monkeypatch.setattr(build.Rows, "extend", endless)
    store.search.refresh_in_background(collection)
    assert begun.wait(60)
    store.close()
    left = store.folder / "segments" / str(collection.id)
    assert list(left.iterdir()) == []


def test_asking_twice_builds_once_and_after_closing_never() -> None:
    asked: list[int] = []
    gate = threading.Event()

    def refresh(collection_id, progress, pause) -> bool:
        gate.wait(60)
        asked.append(collection_id)
        return True

    background = Background(refresh)
    for number in (1, 2, 2, 2):
        background.ask(number)
    gate.set()
    background.wait()
    background.close()
    background.ask(3)
    assert asked == [1, 2]


def test_closing_without_a_thread_is_nothing() -> None:
    Background(lambda *_: True).close()


def test_rows_removed_while_a_segment_is_built_do_not_come_back(
    store: Store, collection: Collection, embedder: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [document(collection, f"d{n}", "rope") for n in range(8)]
    write(store, collection, rows, embedder)
    real = build.files.write_manifest

    def remove_first(folder, manifest) -> None:
        thread = threading.Thread(target=remove, args=(store, collection, ["d1", "d2"]))
        thread.start()
        thread.join()
        real(folder, manifest)

    monkeypatch.setattr(build.files, "write_manifest", remove_first)
    assert store.search.refresh(collection)
    gone = {rows[n].chunks[0].chunk_id for n in (1, 2)}
    assert not gone & set(found(store, collection, "rope"))
    assert len(found(store, collection, "rope")) == 6
    assert store.search.problems([collection]) == []
