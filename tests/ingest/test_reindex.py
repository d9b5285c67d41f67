"""Everything that is derived can be rebuilt from the catalogue."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import index_of, write_files
from fakes import FakeEmbedder

from core.settings import Settings
from ingest.pipeline import Pipeline
from ingest.vectors import rebuild
from stores.sqlite import fulltext
from stores.sqlite.catalogue import Collection
from stores.store import Store, parts


@pytest.fixture
def settings(store: Store) -> Settings:
    return Settings(data=store.folder, ingest_batch=3)


@pytest.fixture
def filled(
    store: Store, collection: Collection, embedder: FakeEmbedder, settings: Settings, tmp_path: Path
) -> Store:
    other = store.intake.open_collection("zoo", "main", None)
    for target in (collection, other):
        Pipeline(store, embedder, settings, target).run([write_files(tmp_path / "corpus")])
    return store


def silent(stage: str, done: int, total: int) -> None:
    assert 0 <= done <= total


def test_everything_is_made_anew(filled: Store, embedder: FakeEmbedder, settings: Settings) -> None:
    whole = index_of(filled.folder)
    with parts(filled).database.write() as connection:
        for collection in filled.catalogue.collections():
            fulltext.drop_table(connection, collection.id)
    shutil.rmtree(filled.folder / "segments", ignore_errors=True)
    report = rebuild(filled, embedder, settings, silent)
    assert (report["fts_rows"], report["vectors"]) == (len(whole.chunks), len(whole.chunks))
    assert report["embedded"] == 0
    assert index_of(filled.folder) == whole


def test_a_table_too_damaged_to_be_dropped(
    filled: Store, embedder: FakeEmbedder, settings: Settings, open_store: Callable[..., Store]
) -> None:
    whole = index_of(filled.folder)
    with parts(filled).database.write() as connection:
        connection.execute("DELETE FROM fts_1_data")
    filled.close()
    again = open_store()
    rebuild(again, embedder, settings, silent)
    assert index_of(filled.folder) == whole
    with parts(again).database.write() as connection:
        connection.execute("INSERT INTO fts_1 (fts_1) VALUES ('integrity-check')")
        leftovers = connection.execute("SELECT name FROM sqlite_schema WHERE name LIKE 'fts_1%'")
        assert len(leftovers.fetchall()) == 7


def test_another_model_embeds_the_texts_anew(
    filled: Store, settings: Settings, open_store: Callable[..., Store]
) -> None:
    whole = index_of(filled.folder)
    filled.close()
    other = FakeEmbedder(model_id="other")
    store = Store(settings, other.model_id)
    try:
        report = rebuild(store, other, settings, silent)
        assert report["embedded"] > 0
        assert report["vectors"] == len(whole.chunks)
        assert rebuild(store, other, settings, silent)["embedded"] == 0
    finally:
        store.close()
    assert index_of(filled.folder) == whole
