"""Whatever happens to the files of a segment, a search answers and says what it did without."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes import FakeEmbedder, document, remove, write

from core.auth import AuthContext
from core.errors import OperatorError
from stores.segments import build, files, postings
from stores.segments.files import MANIFEST, NAMES
from stores.segments.types import Candidates
from stores.sqlite.catalogue import Collection
from stores.store import Store, parts

ANN = AuthContext(tenant="acme")
LOW = {"segment_min_rows": 10, "segment_rebuild_min_rows": 3}
Opener = Callable[..., Store]


@pytest.fixture
def store(open_store: Opener, embedder: FakeEmbedder) -> Store:
    """Hold 30 chunks in a published segment."""
    store = open_store(**LOW)
    collection = store.intake.open_collection("acme", "main", None)
    rows = [document(collection, f"d{n:02}", f"harbour tide{n} crane{n % 3}") for n in range(30)]
    write(store, collection, rows, embedder)
    sentences = {
        row.chunks[0].content_hash: embedder.embed_documents(row.chunks[0].text.split())
        for row in rows
    }
    store.intake.store_vectors(embedder.model_id, {}, sentences)
    assert store.search.refresh(collection)
    return store


def search(store: Store, collection: Collection, text: str = "harbour tide7") -> Candidates:
    vector = FakeEmbedder().embed_query(text)
    terms = [{word} for word in text.split()]
    return store.search.candidates(ANN, collection.id, terms=terms, vector=vector, pool=5)


def ids(store: Store, collection: Collection) -> set[str]:
    return set(search(store, collection).chunk_ids)


def home(store: Store, collection: Collection) -> Path:
    return store.folder / "segments" / str(collection.id)


def folder(store: Store, collection: Collection) -> Path:
    return next(home(store, collection).iterdir())


def reopened(store: Store, open_store: Opener, **values: object) -> Store:
    store.close()
    return open_store(**{**LOW, **values})


def test_a_sound_segment_answers_without_notes(
    store: Store, collection: Collection, open_store: Opener
) -> None:
    expected = search(store, collection)
    assert (expected.source, expected.notes) == ("segment", ())
    store = reopened(store, open_store)
    again = search(store, collection)
    assert again.chunk_ids == expected.chunk_ids
    assert again.bm25.tolist() == expected.bm25.tolist()
    assert again.cosine.tolist() == expected.cosine.tolist()
    assert not store.search.refresh(collection)
    assert store.search.problems([collection]) == []
    assert {path.name for path in folder(store, collection).iterdir()} == {*NAMES, MANIFEST}


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flip(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(bytes(255 - byte for byte in data))


@pytest.mark.parametrize("name", [*NAMES, MANIFEST])
@pytest.mark.parametrize("damage", [Path.unlink, truncate, flip])
def test_a_damaged_segment_is_named_and_made_anew(
    store: Store, collection: Collection, open_store: Opener, name: str, damage: Callable
) -> None:
    expected = ids(store, collection)
    damage(folder(store, collection) / name)
    store = reopened(store, open_store)
    [repair] = store.maintenance.repaired
    assert "search segment of 'main'" in repair
    found = search(store, collection)
    assert (found.source, found.notes, set(found.chunk_ids)) == ("segment", (), expected)
    assert store.search.problems([collection]) == []


@pytest.mark.parametrize("name", [*NAMES, MANIFEST])
@pytest.mark.parametrize("damage", [Path.unlink, truncate, flip])
def test_a_segment_damaged_while_the_store_is_open_is_left_out_and_named(
    store: Store, collection: Collection, name: str, damage: Callable
) -> None:
    expected = ids(store, collection)
    damage(folder(store, collection) / name)
    store.search._views.forget(collection.id)
    found = search(store, collection)
    if damage is not flip or name in (*files.CHECKED, MANIFEST):
        assert found.source == "index"
        assert "the search segment is not used" in found.notes[0]
        assert set(found.chunk_ids) == expected
    [problem] = store.search.problems([collection])
    assert "search segment of 'main'" in problem
    assert "carrel reindex" in problem
    store.search.rebuild(collection)
    assert store.search.problems([collection]) == []


def test_a_segment_that_cannot_be_opened_is_made_anew_by_the_next_refresh(
    store: Store, collection: Collection, open_store: Opener
) -> None:
    (folder(store, collection) / MANIFEST).unlink()
    store.search._views.forget(collection.id)
    assert store.search.refresh(collection)
    assert search(store, collection).source == "segment"
    assert not store.search.refresh(collection)


def test_the_doctor_names_a_damaged_segment(store: Store, collection: Collection) -> None:
    flip(folder(store, collection) / "vectors")
    assert any("damaged: vectors" in problem for problem in store.maintenance.examine()["problems"])


@pytest.mark.parametrize("constant", ["BM25_K1", "BM25_B", "TITLE_WEIGHT"])
def test_a_segment_of_other_weights_is_not_used(
    store: Store,
    collection: Collection,
    open_store: Opener,
    monkeypatch: pytest.MonkeyPatch,
    constant: str,
) -> None:
    expected = ids(store, collection)
    monkeypatch.setattr(postings, constant, 1.0 if constant != "BM25_B" else 0.5)
    store = reopened(store, open_store)
    found = search(store, collection)
    assert (found.source, set(found.chunk_ids)) == ("index", expected)
    assert "settings have changed" in found.notes[0]
    assert store.search.refresh(collection)
    assert search(store, collection).notes == ()


def test_a_manifest_of_a_later_format_is_not_used(store: Store, collection: Collection) -> None:
    path = folder(store, collection) / MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 2}))
    store.search._views.forget(collection.id)
    assert "another version" in search(store, collection).notes[0]


def test_a_segment_that_does_not_fit_the_catalogue_is_not_used(
    store: Store, collection: Collection, open_store: Opener
) -> None:
    """As when the catalogue was restored, or rows went without their trigger."""
    with parts(store).database.write() as connection:
        connection.execute("DELETE FROM documents WHERE document_id = 'd07'")
        connection.execute("DELETE FROM dead_chunks")
        connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'index_version'")
    found = search(store, collection)
    assert "does not match the catalogue" in found.notes[0]
    assert found.visible == 29
    assert "does not match" in store.search.problems([collection])[0]
    assert store.search.refresh(collection)
    assert search(store, collection).notes == ()


def test_a_chunk_that_died_alone_is_not_found(store: Store, collection: Collection) -> None:
    """Its document is still visible, so that only the note of its death can tell."""
    key = search(store, collection, "tide7").chunk_ids
    with parts(store).database.write() as connection:
        connection.execute(
            "DELETE FROM chunks WHERE document ="
            " (SELECT id FROM documents WHERE document_id = 'd07')"
        )
        connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'index_version'")
    found = search(store, collection, "tide7")
    assert found.visible == 29
    assert len(set(key) - set(found.chunk_ids)) == 1
    assert found.best_bm25 == 0
    assert (found.source, found.notes) == ("segment", ())


def test_words_of_a_segment_serve_another_model(
    store: Store, collection: Collection, open_store: Opener, embedder: FakeEmbedder
) -> None:
    embedder.model_id = "other"
    store = reopened(store, open_store)
    found = search(store, collection)
    assert found.source == "segment"
    assert found.cosine is not None
    assert bool((found.cosine != found.cosine).all())  # NaN: there is no such vector yet
    assert (found.bm25 > 0).all()
    assert not store.search.refresh(collection)  # without any vector of the model
    rows = [document(collection, f"d{n:02}", f"harbour tide{n} crane{n % 3}") for n in range(30)]
    texts = {row.chunks[0].content_hash: row.chunks[0] for row in rows}
    vectors = {key: embedder.embed_query(chunk.text) for key, chunk in texts.items()}
    store.intake.store_vectors("other", vectors)
    found = search(store, collection)
    assert (found.cosine == found.cosine).all()
    assert store.search.refresh(collection)
    again = search(store, collection)
    assert again.chunk_ids == found.chunk_ids
    assert again.cosine.tolist() == pytest.approx(found.cosine.tolist())


def test_only_the_published_folder_stays(
    store: Store, collection: Collection, embedder: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = folder(store, collection)
    (home(store, collection) / "left-behind").mkdir()

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(build.files, "write_manifest", stop)
        patch.setattr(build.Builder, "_clear", lambda *_: None)  # a kill leaves no time for it
        with pytest.raises(KeyboardInterrupt):
            store.search.rebuild(collection)
    assert len(list(home(store, collection).iterdir())) == 3
    assert search(store, collection).notes == ()
    assert folder(store, collection) != before or before.exists()
    store.search.rebuild(collection)
    assert len(list(home(store, collection).iterdir())) == 1
    assert not before.exists()
    assert search(store, collection).notes == ()


def test_a_small_collection_has_no_files_and_one_that_shrinks_loses_them(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    remove(store, collection, [f"d{n:02}" for n in range(5, 30)])
    assert search(store, collection).visible == 5
    assert not store.search.refresh(collection)
    assert list(home(store, collection).iterdir()) == []
    found = search(store, collection)
    assert (found.source, found.visible, found.notes) == ("segment", 5, ())
    rows = parts(store).database.read().execute("SELECT count(*) FROM dead_chunks").fetchone()
    assert rows[0] == 0


def test_a_refresh_builds_only_when_enough_has_changed(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    def add(first: int, last: int) -> None:
        rows = [document(collection, f"n{n}", f"new {n}") for n in range(first, last)]
        write(store, collection, rows, embedder)

    assert not store.search.refresh(collection)
    add(0, 3)
    assert not store.search.refresh(collection)
    remove(store, collection, ["d00"])
    assert store.search.refresh(collection)
    assert not store.search.refresh(collection)
    remove(store, collection, ["d01", "d02", "d03", "d04"])
    assert store.search.refresh(collection)


def test_a_segment_that_cannot_be_written_is_one_line_and_searches_go_on(
    open_store: Opener, embedder: FakeEmbedder
) -> None:
    store = open_store(**LOW)
    collection = store.intake.open_collection("acme", "main", None)
    (store.folder / "segments").write_text("not a folder")
    rows = [document(collection, f"d{n:02}", f"harbour tide{n}") for n in range(30)]
    write(store, collection, rows, embedder)
    with pytest.raises(OperatorError, match="could not be written.*reindex") as caught:
        store.search.refresh(collection)
    assert "\n" not in str(caught.value)
    found = search(store, collection)
    assert found.source == "index"
    assert len(found.chunk_ids) >= 5


def test_a_dropped_collection_takes_its_notes_with_it(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    remove(store, collection, [f"d{n:02}" for n in range(30)])
    store.intake.drop_collection_if_empty(collection)
    connection = parts(store).database.read()
    for table in ("segments", "dead_chunks"):
        assert connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] == 0
    again = store.intake.open_collection("rival", "main", None)
    assert again.id > collection.id
