"""The examination notices what is missing, and says what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fakes import FakeEmbedder, document, write

from core.profile import Profile
from stores.catalogue import Collection
from stores.fulltext import table
from stores.health import examine
from stores.store import Store


@pytest.fixture
def filled(store: Store, collection: Collection, embedder: FakeEmbedder) -> Store:
    rows = [document(collection, f"d{n}", f"text {n}") for n in range(5)]
    write(store, collection, rows, embedder)
    store.outbox.drain()
    store.chroma.close()
    return store


def test_a_sound_store_is_ok(filled: Store) -> None:
    report = examine(filled)
    numbers = {"documents": 5, "chunks": 5, "fts_rows": 5, "vectors": 5}
    assert numbers.items() <= report.items()
    assert (report["ok"], report["problems"]) == (True, [])


def test_a_folder_named_from_here_is_the_same_for_a_child_process(
    open_store: Callable[..., Store],
    embedder: FakeEmbedder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    near = open_store(data=Path("near"))
    collection = near.writer.open_collection("acme", "main", Profile(name="default"))
    write(near, collection, [document(collection, "d", "text")], embedder)
    near.outbox.drain()
    near.chroma.close()
    report = examine(near)
    assert (report["vectors"], report["problems"]) == (1, [])


def test_an_empty_store_is_ok(store: Store) -> None:
    assert examine(store)["ok"]


def test_everything_missing_is_named(filled: Store, collection: Collection) -> None:
    with filled.database.write() as connection:
        connection.execute(f"DELETE FROM {table(collection.id)} WHERE rowid = 1")
        connection.execute(
            "DELETE FROM embeddings WHERE content_hash ="
            " (SELECT content_hash FROM chunks WHERE id = 2)"
        )
        connection.execute("INSERT INTO outbox VALUES ('x', 1, 'delete')")
    filled.chroma.delete(collection.id, [_chunk(filled, 3)])
    filled.chroma.close()
    report = examine(filled)
    assert not report["ok"]
    said = " | ".join(report["problems"])
    for part in (
        "full text of 'main' has 4 rows for 5 chunks",
        "1 chunks have no vector",
        "1 changes have not reached",
        "has 4 vectors for 5 chunks",
        "does not find 1 of",
    ):
        assert part in said


def test_a_damaged_vector_index_is_a_problem_and_no_crash(filled: Store) -> None:
    (filled.folder / "chroma" / "chroma.sqlite3").write_bytes(b"garbage" * 1000)
    report = examine(filled)
    assert not report["ok"]
    assert "carrel reindex" in report["problems"][0]


def _chunk(store: Store, row: int) -> str:
    found = store.database.read().execute("SELECT chunk_id FROM chunks WHERE id = ?", (row,))
    return found.fetchone()[0]
