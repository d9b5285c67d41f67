"""Whatever happens to the files of a segment, a search answers and says what it did without."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import behind
import pytest
from fakes import FakeEmbedder, OpenShelf, Shelf, write
from harbour import ANN, harbour_rows

from core.errors import OperatorError
from stores.segments import build, files, postings
from stores.segments.files import MANIFEST, NAMES
from stores.segments.types import Candidates
from stores.store import Store

LOW = {"segment_min_rows": 10, "segment_rebuild_min_rows": 3}
Opener = Callable[..., Store]
NEWER = "UPDATE meta SET value = value + 1 WHERE key = 'index_version'"


@pytest.fixture
def store(open_store: Opener, embedder: FakeEmbedder) -> Store:
    """Hold 30 chunks in a published segment."""
    store = open_store(**LOW)
    collection = store.intake.open_collection("acme", "main", None)
    rows = harbour_rows(collection, 30)
    write(store, collection, rows, embedder)
    sentences = {
        row.chunks[0].content_hash: embedder.embed_documents(row.chunks[0].text.split())
        for row in rows
    }
    store.intake.store_vectors(embedder.model_id, {}, sentences)
    assert store.search.refresh(collection)
    return store


def search(shelf: Shelf, text: str = "harbour tide7") -> Candidates:
    vector = FakeEmbedder().embed_query(text)
    terms = [{word} for word in text.split()]
    return shelf.search.candidates(ANN, shelf.id, terms=terms, vector=vector, pool=5)


def home(shelf: Shelf) -> Path:
    return shelf.store.folder / "segments" / str(shelf.id)


def folder(shelf: Shelf) -> Path:
    return next(home(shelf).iterdir())


def reopened(shelf: Shelf, open_store: Opener) -> Shelf:
    shelf.store.close()
    return Shelf(open_store(**LOW), shelf.collection, shelf.embedder)


def test_a_sound_segment_answers_without_notes(shelf: Shelf, open_store: Opener) -> None:
    expected = search(shelf)
    assert (expected.source, expected.notes) == ("segment", ())
    shelf = reopened(shelf, open_store)
    again = search(shelf)
    assert again.chunk_ids == expected.chunk_ids
    assert again.bm25.tolist() == expected.bm25.tolist()
    assert again.cosine.tolist() == expected.cosine.tolist()
    assert not shelf.search.refresh(shelf.collection)
    assert shelf.search.problems([shelf.collection]) == []
    assert {path.name for path in folder(shelf).iterdir()} == {*NAMES, MANIFEST}


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flip(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(bytes(255 - byte for byte in data))


@pytest.mark.parametrize("name", [*NAMES, MANIFEST])
@pytest.mark.parametrize("damage", [Path.unlink, truncate, flip])
def test_a_damaged_segment_is_named_and_made_anew(
    shelf: Shelf, open_store: Opener, name: str, damage: Callable
) -> None:
    expected = set(search(shelf).chunk_ids)
    damage(folder(shelf) / name)
    shelf = reopened(shelf, open_store)
    [repair] = shelf.maintenance.repaired
    assert "search segment of 'main'" in repair
    found = search(shelf)
    assert (found.source, found.notes, set(found.chunk_ids)) == ("segment", (), expected)
    assert shelf.search.problems([shelf.collection]) == []


@pytest.mark.parametrize("name", [*NAMES, MANIFEST])
@pytest.mark.parametrize("damage", [Path.unlink, truncate, flip])
def test_a_segment_damaged_while_the_store_is_open_is_left_out_and_named(
    shelf: Shelf, name: str, damage: Callable
) -> None:
    expected = set(search(shelf).chunk_ids)
    damage(folder(shelf) / name)
    shelf.search._views.forget(shelf.id)
    found = search(shelf)
    if damage is not flip or name in (*files.CHECKED, MANIFEST):
        assert found.source == "index"
        assert "the search segment is not used" in found.notes[0]
        assert set(found.chunk_ids) == expected
    [problem] = shelf.search.problems([shelf.collection])
    assert "search segment of 'main'" in problem
    assert "carrel reindex" in problem
    shelf.search.rebuild(shelf.collection)
    assert shelf.search.problems([shelf.collection]) == []


def test_a_segment_that_cannot_be_opened_is_made_anew_by_the_next_refresh(
    shelf: Shelf, open_store: Opener
) -> None:
    (folder(shelf) / MANIFEST).unlink()
    shelf.search._views.forget(shelf.id)
    assert shelf.search.refresh(shelf.collection)
    assert search(shelf).source == "segment"
    assert not shelf.search.refresh(shelf.collection)


def test_the_doctor_names_a_damaged_segment(shelf: Shelf) -> None:
    flip(folder(shelf) / "vectors")
    assert any("damaged: vectors" in problem for problem in shelf.maintenance.examine()["problems"])


@pytest.mark.parametrize("constant", ["BM25_K1", "BM25_B", "TITLE_WEIGHT"])
def test_a_segment_of_other_weights_is_not_used(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, constant: str
) -> None:
    expected = set(search(shelf).chunk_ids)
    monkeypatch.setattr(postings, constant, 1.0 if constant != "BM25_B" else 0.5)
    shelf.search._views.forget(shelf.id)
    found = search(shelf)
    assert (found.source, set(found.chunk_ids)) == ("index", expected)
    assert "settings have changed" in found.notes[0]
    assert shelf.search.refresh(shelf.collection)
    assert search(shelf).notes == ()


def test_a_manifest_of_a_later_format_is_not_used(shelf: Shelf) -> None:
    path = folder(shelf) / MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 2}))
    shelf.search._views.forget(shelf.id)
    assert "another version" in search(shelf).notes[0]


def test_a_segment_that_does_not_fit_the_catalogue_is_not_used(
    shelf: Shelf, open_store: Opener
) -> None:
    """As when the catalogue was restored, or rows went without their trigger."""
    gone = "DELETE FROM documents WHERE document_id = 'd07'"
    behind.change(shelf.store, gone, "DELETE FROM dead_chunks", NEWER)
    found = search(shelf)
    assert "does not match the catalogue" in found.notes[0]
    assert found.visible == 29
    assert "does not match" in shelf.search.problems([shelf.collection])[0]
    assert shelf.search.refresh(shelf.collection)
    assert search(shelf).notes == ()


def test_a_chunk_that_died_alone_is_not_found(shelf: Shelf) -> None:
    """Its document is still visible, so that only the note of its death can tell."""
    key = search(shelf, "tide7").chunk_ids
    of_it = "SELECT id FROM documents WHERE document_id = 'd07'"
    behind.change(shelf.store, f"DELETE FROM chunks WHERE document = ({of_it})", NEWER)
    found = search(shelf, "tide7")
    assert found.visible == 29
    assert len(set(key) - set(found.chunk_ids)) == 1
    assert found.best_bm25 == 0
    assert (found.source, found.notes) == ("segment", ())


def test_words_of_a_segment_serve_another_model(shelf: Shelf, open_store: Opener) -> None:
    shelf.embedder.model_id = "other"
    shelf = reopened(shelf, open_store)
    found = search(shelf)
    assert found.source == "segment"
    assert found.cosine is not None
    assert bool((found.cosine != found.cosine).all())  # NaN: there is no such vector yet
    assert (found.bm25 > 0).all()
    assert not shelf.search.refresh(shelf.collection)  # without any vector of the model
    rows = harbour_rows(shelf.collection, 30)
    texts = {row.chunks[0].content_hash: row.chunks[0] for row in rows}
    vectors = {key: shelf.embedder.embed_query(chunk.text) for key, chunk in texts.items()}
    shelf.intake.store_vectors("other", vectors)
    found = search(shelf)
    assert (found.cosine == found.cosine).all()
    assert shelf.search.refresh(shelf.collection)
    again = search(shelf)
    assert again.chunk_ids == found.chunk_ids
    assert again.cosine.tolist() == pytest.approx(found.cosine.tolist())


def test_only_the_published_folder_stays(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    before = folder(shelf)
    (home(shelf) / "left-behind").mkdir()

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(build.files, "write_manifest", stop)
        patch.setattr(build.Builder, "_clear", lambda *_: None)  # a kill leaves no time for it
        with pytest.raises(KeyboardInterrupt):
            shelf.search.rebuild(shelf.collection)
    assert len(list(home(shelf).iterdir())) == 3
    assert search(shelf).notes == ()
    assert folder(shelf) != before or before.exists()
    shelf.search.rebuild(shelf.collection)
    assert len(list(home(shelf).iterdir())) == 1
    assert not before.exists()
    assert search(shelf).notes == ()


def test_a_small_collection_has_no_files_and_one_that_shrinks_loses_them(shelf: Shelf) -> None:
    shelf.remove([f"d{n:02}" for n in range(5, 30)])
    assert search(shelf).visible == 5
    assert not shelf.search.refresh(shelf.collection)
    assert list(home(shelf).iterdir()) == []
    found = search(shelf)
    assert (found.source, found.visible, found.notes) == ("segment", 5, ())
    assert behind.count(shelf.store, "dead_chunks") == 0


def test_a_refresh_builds_only_when_enough_has_changed(shelf: Shelf) -> None:
    def add(first: int, last: int) -> None:
        shelf.put({f"n{n}": f"new {n}" for n in range(first, last)})

    assert not shelf.search.refresh(shelf.collection)
    add(0, 3)
    assert not shelf.search.refresh(shelf.collection)
    shelf.remove(["d00"])
    assert shelf.search.refresh(shelf.collection)
    assert not shelf.search.refresh(shelf.collection)
    shelf.remove(["d01", "d02", "d03", "d04"])
    assert shelf.search.refresh(shelf.collection)


def test_a_segment_that_cannot_be_written_is_one_line_and_searches_go_on(
    open_shelf: OpenShelf,
) -> None:
    shelf = open_shelf(**LOW)
    (shelf.store.folder / "segments").write_text("not a folder")
    shelf.write(*harbour_rows(shelf.collection, 30))
    with pytest.raises(OperatorError, match="could not be written.*reindex") as caught:
        shelf.search.refresh(shelf.collection)
    assert "\n" not in str(caught.value)
    found = search(Shelf(shelf.store, shelf.collection, shelf.embedder))
    assert found.source == "index"
    assert len(found.chunk_ids) >= 5


def test_a_dropped_collection_takes_its_notes_with_it(shelf: Shelf) -> None:
    shelf.remove([f"d{n:02}" for n in range(30)])
    shelf.intake.drop_collection_if_empty(shelf.collection)
    assert behind.count(shelf.store, "segments") == behind.count(shelf.store, "dead_chunks") == 0
    again = shelf.intake.open_collection("rival", "main", None)
    assert again.id > shelf.id
