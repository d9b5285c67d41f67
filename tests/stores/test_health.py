"""The examination notices what is missing, and says what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from behind import change
from fakes import FakeEmbedder, Shelf, document, write

from core.profile import Profile
from stores.sqlite.fulltext import table
from stores.store import Store


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


def test_everything_missing_is_named(shelf: Shelf) -> None:
    assert shelf.maintenance.examine()["ok"]
    shelf.put({f"d{n}": f"text {n}" for n in range(5)})
    report = shelf.maintenance.examine()
    numbers = {"documents": 5, "chunks": 5, "fts_rows": 5, "vectors": 5, "ok": True}
    assert numbers.items() <= report.items()
    change(
        shelf.store,
        f"DELETE FROM {table(shelf.id)} WHERE rowid = 1",
        "DELETE FROM embeddings WHERE content_hash ="
        " (SELECT content_hash FROM chunks WHERE id = 2)",
    )
    report = shelf.maintenance.examine()
    assert not report["ok"]
    said = " | ".join(report["problems"])
    assert "full text of 'main' has 4 rows for 5 chunks" in said
    assert "1 chunks have no vector" in said
