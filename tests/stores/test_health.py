"""The examination notices what is missing, and says what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fakes import FakeEmbedder, document, write

from core.profile import Profile
from stores.sqlite.catalogue import Collection
from stores.sqlite.fulltext import table
from stores.store import Store, parts


@pytest.fixture
def filled(store: Store, collection: Collection, embedder: FakeEmbedder) -> Store:
    rows = [document(collection, f"d{n}", f"text {n}") for n in range(5)]
    write(store, collection, rows, embedder)
    return store


def test_a_sound_store_is_ok(filled: Store) -> None:
    report = filled.maintenance.examine()
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
    collection = near.intake.open_collection("acme", "main", Profile(name="default"))
    write(near, collection, [document(collection, "d", "text")], embedder)
    report = near.maintenance.examine()
    assert (report["vectors"], report["problems"]) == (1, [])


def test_an_empty_store_is_ok(store: Store) -> None:
    assert store.maintenance.examine()["ok"]


def test_everything_missing_is_named(filled: Store, collection: Collection) -> None:
    with parts(filled).database.write() as connection:
        connection.execute(f"DELETE FROM {table(collection.id)} WHERE rowid = 1")
        connection.execute(
            "DELETE FROM embeddings WHERE content_hash ="
            " (SELECT content_hash FROM chunks WHERE id = 2)"
        )
    report = filled.maintenance.examine()
    assert not report["ok"]
    said = " | ".join(report["problems"])
    for part in (
        "full text of 'main' has 4 rows for 5 chunks",
        "1 chunks have no vector",
    ):
        assert part in said
