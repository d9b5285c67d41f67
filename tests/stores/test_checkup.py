"""After damage nothing is answered silently: derived parts are rebuilt, the rest is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import behind
import pytest
from commands import change
from fakes import FakeEmbedder
from harbour import LOW, found

from core.errors import OperatorError
from ingest.vectors import embed_missing
from stores.sqlite.fulltext import table
from stores.store import Store, parts

Opener = Callable[..., Store]


def test_a_sound_directory_says_nothing(harbour: Path, open_store: Opener) -> None:
    store = open_store(**LOW)
    assert parts(store).sealed.state == "equal"
    assert store.warnings() == store.maintenance.repaired == []


def test_a_crash_is_followed_by_a_check_and_a_proof(harbour: Path, open_store: Opener) -> None:
    (harbour / "seal.json").rename(harbour / "seal.open.json")
    for path in harbour.glob("catalogue.sqlite3"):
        path.touch()
    store = open_store(**LOW)
    assert parts(store).sealed.state == "open"
    assert store.warnings() == []


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
    harbour: Path, open_store: Opener, damage: str
) -> None:
    store = open_store(**LOW)
    expected = found(store)
    store.close()
    change(harbour, damage)
    store = open_store(**LOW)
    assert found(store) == expected
    assert store.maintenance.repaired
    assert any("changed by something else" in one for one in store.warnings())
    assert store.maintenance.examine()["problems"]
    store.close()
    assert open_store(**LOW).warnings() == []


def test_an_index_that_differs_from_its_table_is_made_anew(
    harbour: Path, open_store: Opener
) -> None:
    sql = "CREATE INDEX chunks_document ON chunks (document, tokens)"
    change(harbour, f"UPDATE sqlite_schema SET sql = '{sql}' WHERE name = 'chunks_document'")
    store = open_store(**LOW)
    assert any("indexes in the catalogue were rebuilt" in one for one in store.maintenance.repaired)
    assert parts(store).database.condition.malformed == ""


def test_rows_without_their_document_stop_all_writing(harbour: Path, open_store: Opener) -> None:
    change(harbour, "PRAGMA foreign_keys=OFF", "DELETE FROM documents WHERE id = 3")
    store = open_store(**LOW)
    assert (
        "rows of chunks belong to a row that is gone" in parts(store).database.condition.malformed
    )
    assert found(store)  # reads go on
    assert "restore it from a backup" in store.warnings()[0]
    with pytest.raises(OperatorError, match="not written any more"):
        store.intake.open_collection("acme", "new", None)


def test_a_segment_that_lies_is_noticed_and_made_anew(harbour: Path, open_store: Opener) -> None:
    store = open_store(**LOW)
    expected = found(store)
    [segment] = (harbour / "segments" / "1").iterdir()
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
    harbour: Path, open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(**LOW)
    monkeypatch.setattr(store.search, "rebuild", lambda *_: False)
    behind.change(store, "UPDATE dead_chunks SET id = id")
    lost = "8 of 8 of its passages are not found by their vector"
    monkeypatch.setattr("stores.integrity.selfcheck.self_check", lambda *_: lost)
    assert store.maintenance.check_again()
    assert "not found by their vector" in parts(store).database.condition.distrusted
    assert any("keyword search only" in one for one in store.warnings())


def test_files_of_no_use_are_named(harbour: Path, open_store: Opener) -> None:
    (harbour / "segments" / "1" / "000-old").mkdir()
    (harbour / "chroma").mkdir()
    (harbour / "seal.json.part").write_bytes(b"")
    store = open_store(**LOW)
    named = [one.why for one in parts(store).maintenance.orphans.check()]
    assert named == ["chroma", "seal.json.part", "segments/1/000-old"]
    assert store.maintenance.examine()["orphans"] == named


def test_a_repair_by_command_says_what_it_did(
    harbour: Path, open_store: Opener, embedder: FakeEmbedder
) -> None:
    store = open_store(**LOW)
    (harbour / "seal.json.part").write_bytes(b"")
    [segment] = (harbour / "segments" / "1").iterdir()
    (segment / "vectors").write_bytes(b"")
    of_two = "content_hash IN (SELECT content_hash FROM chunks WHERE id IN (5, 6))"
    change(
        harbour,
        f"DELETE FROM {table(1)} WHERE rowid = 8",
        "UPDATE documents SET title = 'x' WHERE id = 3",
        f"UPDATE embeddings SET vector = x'00' WHERE {of_two}",
    )

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
