"""After damage nothing is answered silently: derived parts are rebuilt, the rest is said."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fakes import FakeEmbedder, document, write

from core.auth import AuthContext
from core.errors import OperatorError
from ingest.vectors import embed_missing
from stores.sqlite.fulltext import table
from stores.store import Store, parts

ANN = AuthContext(tenant="acme")
LOW = {"segment_min_rows": 10}
Opener = Callable[..., Store]


@pytest.fixture
def folder(open_store: Opener, embedder: FakeEmbedder) -> Path:
    """Hold 40 chunks in a published segment, closed."""
    store = open_store(**LOW)
    collection = store.intake.open_collection("acme", "main", None)
    rows = [document(collection, f"d{n:02}", f"harbour tide{n} crane{n % 3}") for n in range(40)]
    write(store, collection, rows, embedder)
    store.search.refresh(collection)
    store.close()
    return store.folder


def found(store: Store, text: str = "harbour tide7") -> list[str]:
    vector = FakeEmbedder().embed_query(text)
    terms = [{word} for word in text.split()]
    ids = store.search.candidates(ANN, 1, terms=terms, vector=vector, pool=5).chunk_ids
    return sorted(store.catalogue.evidence(ANN, 1, ids))


@contextmanager
def direct(folder: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(folder / "catalogue.sqlite3")
    yield connection
    connection.commit()
    connection.close()


def test_a_sound_directory_says_nothing(folder: Path, open_store: Opener) -> None:
    store = open_store(**LOW)
    assert parts(store).sealed.state == "equal"
    assert parts(store).database.condition.warnings() == store.maintenance.repaired == []


def test_a_crash_is_followed_by_a_check_and_a_proof(folder: Path, open_store: Opener) -> None:
    (folder / "seal.json").rename(folder / "seal.open.json")
    for path in folder.glob("catalogue.sqlite3"):
        path.touch()
    store = open_store(**LOW)
    assert parts(store).sealed.state == "open"
    assert parts(store).database.condition.warnings() == []


@pytest.mark.parametrize(
    "damage",
    [
        f"DELETE FROM {table(1)} WHERE rowid = 8",
        f"UPDATE {table(1)}_content SET c3 = 'harbour' WHERE id = 8",
        f"DROP TABLE {table(1)}",
        "INSERT INTO dead_chunks VALUES (1, 8)",
    ],
)
def test_what_is_derived_is_made_anew_before_the_first_answer(
    folder: Path, open_store: Opener, damage: str
) -> None:
    store = open_store(**LOW)
    expected = found(store)
    store.close()
    with direct(folder) as connection:
        connection.execute(damage)
    store = open_store(**LOW)
    assert found(store) == expected
    assert store.maintenance.repaired
    assert any(
        "changed by something else" in one for one in parts(store).database.condition.warnings()
    )
    assert store.maintenance.examine()["problems"]
    store.close()
    assert open_store(**LOW).warnings() == []


def test_an_index_that_differs_from_its_table_is_made_anew(
    folder: Path, open_store: Opener
) -> None:
    with direct(folder) as connection:
        connection.execute("PRAGMA writable_schema=ON")
        sql = "CREATE INDEX chunks_document ON chunks (document, tokens)"
        connection.execute(
            "UPDATE sqlite_schema SET sql = ? WHERE name = 'chunks_document'", (sql,)
        )
    store = open_store(**LOW)
    assert any("indexes in the catalogue were rebuilt" in one for one in store.maintenance.repaired)
    assert parts(store).database.condition.malformed == ""


def test_rows_without_their_document_stop_all_writing(folder: Path, open_store: Opener) -> None:
    with direct(folder) as connection:
        connection.execute("PRAGMA foreign_keys=OFF")
        connection.execute("DELETE FROM documents WHERE id = 3")
    store = open_store(**LOW)
    assert (
        "rows of chunks belong to a row that is gone" in parts(store).database.condition.malformed
    )
    assert found(store)  # reads go on
    assert "restore it from a backup" in parts(store).database.condition.warnings()[0]
    with pytest.raises(OperatorError, match="not written any more"):
        store.intake.open_collection("acme", "new", None)


def test_a_segment_that_lies_is_noticed_and_made_anew(folder: Path, open_store: Opener) -> None:
    store = open_store(**LOW)
    expected = found(store)
    [segment] = (folder / "segments" / "1").iterdir()
    for name in ("vectors", "postings_scores"):
        path = segment / name
        with path.open("r+b") as file:  # in place, as a disk does it
            file.write(bytes(path.stat().st_size))
    assert found(store) != expected or store.maintenance.check_sample() == []
    assert store.maintenance.check_again() == []
    assert found(store) == expected
    assert store.maintenance.repaired
    assert parts(store).database.condition.distrusted == ""


def test_what_cannot_be_made_anew_leaves_keywords(
    folder: Path, open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(**LOW)
    monkeypatch.setattr(store.search, "rebuild", lambda *_: False)
    with parts(store).database.write() as connection:
        connection.execute("UPDATE dead_chunks SET id = id")
    monkeypatch.setattr("stores.integrity.selfcheck.self_check", _nothing_found)
    assert store.maintenance.check_again()
    assert "not found by their vector" in parts(store).database.condition.distrusted
    assert any("keyword search only" in one for one in parts(store).database.condition.warnings())


def _nothing_found(*_: object) -> str:
    return "8 of 8 of its passages are not found by their vector"


def test_files_of_no_use_are_named(folder: Path, open_store: Opener) -> None:
    (folder / "segments" / "1" / "000-old").mkdir()
    (folder / "chroma").mkdir()
    (folder / "seal.json.part").write_bytes(b"")
    store = open_store(**LOW)
    found = [one.why for one in parts(store).maintenance.orphans.check()]
    assert found == ["chroma", "seal.json.part", "segments/1/000-old"]
    assert store.maintenance.examine()["orphans"] == found


def test_a_repair_by_command_says_what_it_did(
    folder: Path, open_store: Opener, embedder: FakeEmbedder
) -> None:
    store = open_store(**LOW)
    (folder / "seal.json.part").write_bytes(b"")
    [segment] = (folder / "segments" / "1").iterdir()
    (segment / "vectors").write_bytes(b"")
    with direct(folder) as connection:
        connection.execute(f"DELETE FROM {table(1)} WHERE rowid = 8")
        connection.execute("UPDATE documents SET title = 'x' WHERE id = 3")
        of_two = "content_hash IN (SELECT content_hash FROM chunks WHERE id IN (5, 6))"
        connection.execute(f"UPDATE embeddings SET vector = x'00' WHERE {of_two}")

    def embed() -> list[str]:
        return [f"{embed_missing(store.intake, embedder, 8, lambda *_: None)} embedded"]

    done = store.maintenance.repair(embed, lambda *_: None)
    assert done[:4] == [
        "2 damaged vectors were dropped",
        "1 damaged documents are read anew when their files are ingested again",
        "full text of 'main' was rebuilt (1 chunks are missing, 0 rows have no chunk)",
        "2 embedded",
    ]
    assert done[4].startswith("the search index of 'main' was rebuilt (")
    assert done[5:] == ["seal.json.part was removed"]
    [problem] = store.maintenance.examine()["problems"]
    assert problem.startswith("1 documents are damaged in the catalogue and withheld (d02);")
