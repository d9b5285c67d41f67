"""Ids cannot be computed elsewhere, so that they do not tell whether a name is taken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from commands import change, query
from fakes import FakeEmbedder

from core.settings import Settings
from ingest.pipeline import Pipeline
from stores.sqlite import schema
from stores.store import Store

NEW_SECRET = schema.new_secret  # of the product, before a fixture sets another
Ids = Callable[[Path], list[tuple[object, ...]]]


@pytest.fixture
def ids(
    open_store: Callable[..., Store],
    embedder: FakeEmbedder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Ids:
    """Ingest one and the same file into a data directory and return its key and chunk id."""
    monkeypatch.setattr(schema, "new_secret", NEW_SECRET)
    (tmp_path / "note.txt").write_text("A harmless note about the garden.", encoding="utf-8")

    def ingested(data: Path) -> list[tuple[object, ...]]:
        with open_store(data=data) as store:
            target = store.intake.open_collection("acme", "main", None)
            assert target == store.catalogue.collection("acme", "main")
            assert target in store.catalogue.collections() and repr(target).count("secret") == 0
            Pipeline(store, embedder, Settings(data=data), target).run([tmp_path / "note.txt"])
        return query(
            data, "SELECT d.key, c.chunk_id FROM documents d JOIN chunks c ON c.document = d.id"
        )

    return ingested


def forget_documents(data: Path) -> None:
    change(data, "UPDATE documents SET content_hash = ''", "UPDATE files SET fingerprint = ''")


def test_two_directories_give_other_ids_and_one_the_same(ids: Ids, tmp_path: Path) -> None:
    first, other = ids(tmp_path / "one"), ids(tmp_path / "two")
    assert len({*first[0], *other[0]}) == 4
    forget_documents(tmp_path / "one")
    assert ids(tmp_path / "one") == first
