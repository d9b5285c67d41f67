"""Building while others search and write: nothing is torn, missed, or kept waiting for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from behind import count
from fakes import FakeEmbedder, Shelf, remove

from core.auth import AuthContext
from stores.segments import build
from stores.segments.build import Background
from stores.store import Store

ANN = AuthContext(tenant="acme")
WRITES = 25


@pytest.fixture
def store(open_store: Callable[..., Store], monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(build, "REBUILD_SHARE", 0.0)
    return open_store(segment_min_rows=5, segment_rebuild_min_rows=0)


def found(shelf: Shelf, word: str) -> list[str]:
    """Return the texts that are found; each must be there when its search began or ended."""
    vector = FakeEmbedder().embed_query(word)
    candidates = shelf.search.candidates(ANN, shelf.id, terms=[{word}], vector=vector, pool=50)
    assert candidates.visible == len(set(candidates.chunk_ids))
    return candidates.chunk_ids


def test_a_segment_is_built_in_the_background(
    shelf: Shelf,
) -> None:
    shelf.put({f"d{n}": "rope" for n in range(6)})
    shelf.search.refresh_in_background(shelf.collection)
    shelf.search._background.wait()
    assert count(shelf.store, "segments") == 1
    assert len(found(shelf, "rope")) == 6


def test_writers_searchers_and_builders_do_not_disturb_each_other(shelf: Shelf) -> None:
    """Generation n of a document replaces generation n − 1: a search sees exactly one of them."""
    steady = [shelf.row(f"s{n}", "rope") for n in range(10)]
    shelf.write(*steady, shelf.row("x", "tide 0"))
    generations = [shelf.row("x", f"tide {n}", version=str(n)) for n in range(WRITES)]
    order = {row.chunks[0].chunk_id: n for n, row in enumerate(generations)}
    shelf.write(*generations[:1])
    done = threading.Event()
    wrong: list[object] = []

    def search() -> None:
        last = -1
        while not done.is_set():
            try:
                seen = [order[key] for key in found(shelf, "tide") if key in order]
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
        shelf.write(row)
        shelf.search.refresh_in_background(shelf.collection)
    shelf.search._background.wait()
    done.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert count(shelf.store, "segments") == 1
    assert shelf.search.problems([shelf.collection]) == []


def test_closing_cancels_a_build(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf.put({f"d{n}": "rope" for n in range(6)})
    begun = threading.Event()
    real = build.Rows.extend

    def endless(self, connection):
        for done in real(self, connection):
            begun.set()
            while True:
                yield done

    monkeypatch.setattr(build.Rows, "extend", endless)
    shelf.search.refresh_in_background(shelf.collection)
    assert begun.wait(60)
    shelf.store.close()
    left = shelf.store.folder / "segments" / str(shelf.id)
    assert list(left.iterdir()) == []


def test_asking_twice_builds_once_and_after_closing_never() -> None:
    Background(lambda *_: True).close()  # without a thread
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


def test_rows_removed_while_a_segment_is_built_do_not_come_back(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = shelf.put({f"d{n}": "rope" for n in range(8)})
    real = build.files.write_manifest

    def remove_first(folder, manifest) -> None:
        thread = threading.Thread(target=remove, args=(shelf.store, shelf.collection, ["d1", "d2"]))
        thread.start()
        thread.join()
        real(folder, manifest)

    monkeypatch.setattr(build.files, "write_manifest", remove_first)
    assert shelf.search.refresh(shelf.collection)
    gone = {rows[n].chunks[0].chunk_id for n in (1, 2)}
    assert not gone & set(found(shelf, "rope"))
    assert len(found(shelf, "rope")) == 6
    assert shelf.search.problems([shelf.collection]) == []
