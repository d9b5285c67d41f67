"""Contract of Intake: what ingest writes is there, once, and nothing of what it replaced."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fakes import FakeEmbedder, Shelf, document, write
from record_books import ANN, BOSS

from core.auth import AuthContext
from core.errors import InUseError
from core.profile import Profile
from stores.sqlite.files import Changes, FinishedFile, JournalEntry, LeftOutRow
from stores.sqlite.permissions import OPERATOR, WriteAccess
from stores.sqlite.rows import DocumentRow, FileRow
from stores.store import Store


def texts(shelf: Shelf, name: str, auth: AuthContext = BOSS) -> list[str]:
    passages = shelf.catalogue.list_passages(auth, shelf.collection, name, 0, 99)
    return [one["text"] for one in passages]


def found(shelf: Shelf, word: str) -> int:
    """Count the passages that a word finds."""
    hits = shelf.search.candidates(BOSS, shelf.id, terms=[{word}], vector=None, pool=9)
    return len(hits.chunk_ids)


def test_writing_twice_is_writing_once(shelf: Shelf) -> None:
    row = shelf.row("a", "one", "two", acl=["boss"], fields={"x": 1})
    for _ in range(2):
        shelf.write(row)
        assert texts(shelf, "a") == ["one", "two"]
        assert texts(shelf, "a", ANN) == []
        assert shelf.catalogue.count_documents(BOSS, shelf.collection) == 1
        assert shelf.catalogue.field_names(shelf.id) == {"x"}
        assert found(shelf, "two") == 1


def test_a_replaced_document_leaves_nothing_of_the_old(shelf: Shelf) -> None:
    old = shelf.row("a", "one", "two", acl=["boss"], fields={"x": 1, "y": 2})
    shelf.write(old)
    shelf.write(shelf.row("a", "three"))
    assert texts(shelf, "a", ANN) == ["three"]
    assert shelf.catalogue.field_names(shelf.id) == set()
    assert [found(shelf, word) for word in ("one", "two", "three")] == [0, 0, 1]


def test_a_batch_that_fails_changes_nothing(shelf: Shelf) -> None:
    shelf.write(shelf.row("a", "one", acl=["boss"]))
    version = shelf.catalogue.index_version()
    mine = WriteAccess(ANN)
    rows = [shelf.row("b", "new"), shelf.row("a", "mine")]
    with pytest.raises(InUseError):
        shelf.intake.write_batch(shelf.collection, Changes(rows), mine)
    assert shelf.catalogue.index_version() == version
    assert shelf.catalogue.count_documents(BOSS, shelf.collection) == 1
    assert texts(shelf, "a") == ["one"]


def test_files_are_known_by_name_and_by_their_bytes(shelf: Shelf) -> None:
    shelf.put({name: name for name in "ab"})
    for name in "ba":
        shelf.finish(FileRow(name, f"/x/{name}", "same", []), {name})
    same = shelf.intake.files_with_fingerprint(shelf.collection, "same")
    assert [file.relative for file in same] == ["a", "b"]
    assert shelf.intake.files_with_fingerprint(shelf.collection, "other") == []
    assert shelf.intake.find_file(shelf.collection, "a") == FileRow("a", "/x/a", "same", [])
    assert shelf.intake.find_file(shelf.collection, "c") is None
    assert set(shelf.intake.file_names(shelf.collection)) == {"a", "b"}
    moved = Changes(moved={"a": "/y/a"})
    shelf.intake.write_batch(shelf.collection, moved, OPERATOR)
    known = shelf.intake.find_file(shelf.collection, "a")
    assert known is not None and known.path == "/y/a"


def test_a_file_that_was_begun_is_read_again(shelf: Shelf) -> None:
    shelf.finish(FileRow("a", "/a", "print", []), set())
    begun = Changes([shelf.row("a", "text")], {"a": "/a"})
    shelf.intake.write_batch(shelf.collection, begun, OPERATOR)
    assert shelf.intake.files_with_fingerprint(shelf.collection, "print") == []
    assert set(shelf.intake.file_names(shelf.collection)) == {"a"}


def test_a_renamed_file_takes_the_place_of_the_one_before(shelf: Shelf) -> None:
    shelf.write(shelf.row("old", "text"))
    shelf.finish(FileRow("old", "/old", "print", []), {"old"})
    renamed = FinishedFile(FileRow("new", "/new", "print", []), lambda name: True, previous="old")
    rows = [replace(shelf.row("old", "text"), document_id="new", file="new", key="k")]
    changes = Changes(rows, finished=[renamed], replaced=["old"])
    shelf.intake.write_batch(shelf.collection, changes, OPERATOR)
    assert shelf.intake.document_hash(shelf.collection, "old") is None
    assert list(shelf.intake.file_names(shelf.collection)) == ["new"]
    assert shelf.intake.document_hash(shelf.collection, "new") == ("new", rows[0].content_hash)


def test_forgetting_a_file_removes_all_that_was_in_it(shelf: Shelf) -> None:
    rows = [shelf.row(n, n, acl=["boss"], fields={"x": 1}) for n in ("aa", "bb")]
    shelf.write(*rows, shelf.row("cc", "cc"))
    assert shelf.intake.count_in_files(shelf.collection, {"aa", "bb", "?"}.__contains__) == (2, 2)
    assert shelf.intake.forget_files(shelf.collection, ["aa", "bb"], WriteAccess(ANN)) == 0
    assert shelf.intake.forget_files(shelf.collection, ["aa", "bb", "?"]) == 2
    assert set(shelf.intake.document_hashes(shelf.collection)) == {"cc"}
    assert shelf.catalogue.field_names(shelf.id) == set()
    assert [found(shelf, word) for word in ("aa", "bb", "cc")] == [0, 0, 1]


def test_documents_are_given_back_as_they_were_written(shelf: Shelf) -> None:
    rows = [
        replace(shelf.row(name, "one", "two", acl=["boss"], title=name), file="f")
        for name in ("a", "b")
    ]
    shelf.write(*rows, shelf.row("g", "else"))
    given: list[DocumentRow] = []
    for row in shelf.intake.stored_documents(shelf.id, "f"):
        given.append(row)
        shelf.remove(["g"])  # they may be removed meanwhile
    assert given == rows
    assert shelf.intake.document_hashes(shelf.collection) == {
        row.document_id: ("f", row.content_hash) for row in rows
    }


def test_who_writes_gets_names_that_are_free_or_theirs(shelf: Shelf) -> None:
    shelf.write(shelf.row("a", "text", acl=["boss"]))
    intake, mine = shelf.intake, WriteAccess(ANN)
    assert intake.name_for(shelf.collection, "b", mine) == "b"
    name = intake.name_for(shelf.collection, "a", mine)
    assert name != "a"
    assert intake.name_for(shelf.collection, "a", WriteAccess(BOSS)) == "a"
    assert intake.name_for(shelf.collection, "a", OPERATOR) == "a"
    hidden = intake.id_for(shelf.collection, name, "a", mine)
    assert hidden != "a" and intake.id_for(shelf.collection, "a", "a", OPERATOR) == "a"
    row = replace(shelf.row("mine", "own"), document_id=hidden, file=name, alias="a")
    changes = Changes([row], {name: "/up/a"}, aliases={name: "a"})
    intake.write_batch(shelf.collection, changes, mine)
    assert intake.original_name(shelf.collection, name) == "a"
    assert intake.name_for(shelf.collection, "a", mine) == name
    assert texts(shelf, "a", ANN) == ["own"]


def test_a_document_is_pending_until_it_was_read_back(shelf: Shelf) -> None:
    intake = shelf.intake
    entries = [JournalEntry("a", "f"), JournalEntry("b", "f")]
    intake.reach_stage(shelf.id, "parsed", entries)
    pending = {"tenant": "acme", "collection": "main", "file": "f"}
    assert intake.pending_documents() == [{**pending, "stage": "parsed", "documents": 2}]
    intake.mark_verified(shelf.id, ["a", "b"])  # nothing to read back yet
    assert intake.unverified_documents(shelf.id, 9) == []
    rows = [replace(shelf.row(name, name), file="f") for name in "ab"]
    intake.write_batch(shelf.collection, Changes(rows), OPERATOR)
    assert intake.pending_documents() == [{**pending, "stage": "indexed", "documents": 2}]
    assert intake.unverified_documents(shelf.id, 1) == ["a"]
    assert intake.unverified_documents(shelf.id, 9, after="a") == ["b"]
    intake.mark_verified(shelf.id, ["a"])
    assert intake.unverified_documents(shelf.id, 9) == ["b"]


def test_vectors_are_kept_by_the_text_and_the_model(shelf: Shelf) -> None:
    intake = shelf.intake
    rows = [shelf.row("a", "same", "own"), shelf.row("b", "same")]
    hashes = {chunk.text: chunk.content_hash for row in rows for chunk in row.chunks}
    shelf.write_rows(rows, {hashes["same"]: shelf.embedder.embed_query("same")})
    assert intake.missing_vectors("fake", hashes.values()) == {hashes["own"]}
    assert intake.missing_vectors("other", hashes.values()) == set(hashes.values())
    assert (intake.count_vectors("fake"), intake.count_vectors("other")) == (2, 0)
    counts = [
        intake.count_unembedded("fake", one, sentences=more)
        for one, more in ((None, False), (shelf.id, True), (shelf.id + 1, True))
    ]
    assert counts == [1, 2, 0]
    [[left]] = intake.unembedded("fake", None, 5, sentences=False)
    assert (left.text, left.document_id, left.ordinal) == ("own", "a", 1)
    version = shelf.catalogue.index_version()
    intake.store_vectors("fake", {hashes["own"]: shelf.embedder.embed_query("own")})
    assert shelf.catalogue.index_version() > version
    assert intake.count_unembedded("fake", None, sentences=False) == 0
    for batch in intake.unembedded("fake", shelf.id, 1, sentences=True):
        intake.store_vectors("fake", {}, {one.content_hash: np.empty((0, 32)) for one in batch})
    assert intake.count_unembedded("fake", None, sentences=True) == 0


def test_vectors_without_a_text_are_swept(shelf: Shelf) -> None:
    row = shelf.row("a", "kept")
    lost = {"lost": shelf.embedder.embed_query("lost")}
    shelf.write(row)
    shelf.intake.write_vectors(shelf.id, "fake", lost, {}, [JournalEntry("x", "x")])
    assert shelf.intake.missing_vectors("fake", ["lost"]) == set()
    assert shelf.intake.sweep_vectors() == 1
    assert shelf.intake.sweep_vectors() == 0
    kept = row.chunks[0].content_hash
    assert shelf.intake.missing_vectors("fake", ["lost", kept]) == {"lost"}


def test_what_was_left_out_of_a_file_is_listed(shelf: Shelf) -> None:
    first = [LeftOutRow("f", source, source, "short") for source in ("f#2", "f#1")]
    other = LeftOutRow("a", "a", "a", "empty")
    changes = Changes(left_out={"f": first, "a": [other]})
    shelf.intake.write_batch(shelf.collection, changes, OPERATOR)
    assert list(shelf.intake.list_left_out(shelf.collection)) == [other, first[1], first[0]]
    assert list(shelf.intake.list_left_out(shelf.collection, "f", 1)) == [first[1]]
    shelf.intake.write_batch(shelf.collection, Changes(left_out={"f": []}), OPERATOR)
    assert list(shelf.intake.list_left_out(shelf.collection)) == [other]


def test_repeats_are_numbered_and_counted_for_each_caller(shelf: Shelf) -> None:
    rows = [shelf.row(name, "same", acl=["boss"] * (name == "c")) for name in "abc"]
    shelf.write(*rows, shelf.row("d", "other"))

    def print_of(kind: str, text: str) -> bytes:
        return text.encode()

    intake = shelf.intake
    assert intake.number_duplicates(shelf.collection, print_of) == 3
    assert intake.number_duplicates(shelf.collection, print_of) == 0
    assert intake.count_duplicates(shelf.collection) == (0, 2)
    assert intake.count_duplicates(shelf.collection, ANN) == (0, 1)
    assert intake.clear_duplicates(shelf.collection) == 4
    assert intake.count_duplicates(shelf.collection) == (0, 0)


def test_how_a_collection_is_arranged_is_noted(shelf: Shelf) -> None:
    intake, version = shelf.intake, shelf.catalogue.index_version()
    assert intake.arrangement(shelf.collection) == ""
    intake.note_arrangement(shelf.collection, "rules", version - 1, changed=False)
    assert intake.arrangement(shelf.collection) == ""  # another process has brought more
    intake.note_arrangement(shelf.collection, "rules", version, changed=False)
    noted = intake.arrangement(shelf.collection), shelf.catalogue.index_version()
    assert noted == (f"{version}:rules", version)
    intake.note_arrangement(shelf.collection, "rules", version, changed=True)
    assert intake.arrangement(shelf.collection) == f"{shelf.catalogue.index_version()}:rules"
    assert shelf.catalogue.index_version() > version


def test_words_are_rebuilt_from_the_documents(shelf: Shelf) -> None:
    shelf.write(shelf.row("a", "one", "two"))
    seen: list[str] = []
    assert shelf.intake.rebuild_words(lambda what, done, total: seen.append(what)) == 2
    assert found(shelf, "two") == 1
    assert shelf.maintenance.examine()["problems"] == []


def test_a_finished_file_drops_the_documents_it_no_longer_has(shelf: Shelf) -> None:
    rows = [replace(shelf.row(name, name), file="both.md") for name in ("a", "b")]
    shelf.write(*rows)
    file = FileRow("both.md", "/x/both.md", "f1", [{"record": "c", "reason": "broken"}])
    shelf.finish(file, {"b"})
    assert set(shelf.intake.document_hashes(shelf.collection)) == {"b"}
    assert shelf.intake.find_file(shelf.collection, "both.md") == file
    assert shelf.intake.count_in_files(shelf.collection, {"both.md", "other.md"}.__contains__) == (
        1,
        1,
    )


def test_a_collection_keeps_its_profile_until_another_is_given(store: Store) -> None:
    first = store.intake.open_collection("acme", "main", Profile(name="first"))
    assert store.intake.open_collection("acme", "main", None) == first
    changed = store.intake.open_collection("acme", "main", Profile(name="second"))
    assert (changed.id, changed.profile.name) == (first.id, "second")
    assert store.catalogue.collection("acme", "main") == changed


def test_only_an_empty_collection_is_dropped(store: Store, embedder: FakeEmbedder) -> None:
    full = store.intake.open_collection("acme", "full", None)
    write(store, full, [document(full, "a", "one")], embedder)
    for collection in (full, store.intake.open_collection("acme", "empty", None)):
        store.intake.drop_collection_if_empty(collection)
    assert [c.name for c in store.catalogue.collections("acme")] == ["full"]
