"""Contract of Intake: what ingest writes is there, once, and nothing of what it replaced."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fakes import FakeEmbedder, document, finish, remove, write, write_rows

from core.auth import AuthContext
from core.errors import InUseError
from core.profile import Profile
from stores.sqlite.catalogue import Collection
from stores.sqlite.files import Changes, FinishedFile, JournalEntry, LeftOutRow
from stores.sqlite.permissions import OPERATOR, WriteAccess
from stores.sqlite.rows import DocumentRow, FileRow
from stores.store import Store

ANN = AuthContext(tenant="acme", user="ann")
BOSS = AuthContext(tenant="acme", user="bo", roles=frozenset({"boss"}))


def texts(store: Store, collection: Collection, name: str, auth: AuthContext = BOSS) -> list[str]:
    passages = store.catalogue.list_passages(auth, collection, name, 0, 99)
    return [one["text"] for one in passages]


def found(store: Store, collection: Collection, word: str) -> int:
    """Count the passages that a word finds."""
    hits = store.search.candidates(BOSS, collection.id, terms=[{word}], vector=None, pool=9)
    return len(hits.chunk_ids)


def test_writing_twice_is_writing_once(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    row = document(collection, "a", "one", "two", acl=["boss"], fields={"x": 1})
    for _ in range(2):
        write(store, collection, [row], embedder)
        assert texts(store, collection, "a") == ["one", "two"]
        assert texts(store, collection, "a", ANN) == []
        assert store.catalogue.count_documents(BOSS, collection) == 1
        assert store.catalogue.field_names(collection.id) == {"x"}
        assert found(store, collection, "two") == 1


def test_a_replaced_document_leaves_nothing_of_the_old(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    old = document(collection, "a", "one", "two", acl=["boss"], fields={"x": 1, "y": 2})
    write(store, collection, [old], embedder)
    write(store, collection, [document(collection, "a", "three")], embedder)
    assert texts(store, collection, "a", ANN) == ["three"]
    assert store.catalogue.field_names(collection.id) == set()
    assert [found(store, collection, word) for word in ("one", "two", "three")] == [0, 0, 1]


def test_a_batch_that_fails_changes_nothing(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    write(store, collection, [document(collection, "a", "one", acl=["boss"])], embedder)
    version = store.catalogue.index_version()
    mine = WriteAccess(ANN)
    rows = [document(collection, "b", "new"), document(collection, "a", "mine")]
    with pytest.raises(InUseError):
        store.intake.write_batch(collection, Changes(rows), mine)
    assert store.catalogue.index_version() == version
    assert store.catalogue.count_documents(BOSS, collection) == 1
    assert texts(store, collection, "a") == ["one"]


def test_files_are_known_by_name_and_by_their_bytes(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    rows = [document(collection, name, name) for name in "ab"]
    write(store, collection, rows, embedder)
    for name in "ba":
        finish(store, collection, FileRow(name, f"/x/{name}", "same", []), {name})
    same = store.intake.files_with_fingerprint(collection, "same")
    assert [file.relative for file in same] == ["a", "b"]
    assert store.intake.files_with_fingerprint(collection, "other") == []
    assert store.intake.find_file(collection, "a") == FileRow("a", "/x/a", "same", [])
    assert store.intake.find_file(collection, "c") is None
    assert set(store.intake.file_names(collection)) == {"a", "b"}
    moved = Changes(moved={"a": "/y/a"})
    store.intake.write_batch(collection, moved, OPERATOR)
    known = store.intake.find_file(collection, "a")
    assert known is not None and known.path == "/y/a"


def test_a_file_that_was_begun_is_read_again(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    finish(store, collection, FileRow("a", "/a", "print", []), set())
    begun = Changes([document(collection, "a", "text")], {"a": "/a"})
    store.intake.write_batch(collection, begun, OPERATOR)
    assert store.intake.files_with_fingerprint(collection, "print") == []
    assert set(store.intake.file_names(collection)) == {"a"}


def test_a_renamed_file_takes_the_place_of_the_one_before(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    write(store, collection, [document(collection, "old", "text")], embedder)
    finish(store, collection, FileRow("old", "/old", "print", []), {"old"})
    renamed = FinishedFile(FileRow("new", "/new", "print", []), lambda name: True, previous="old")
    rows = [replace(document(collection, "old", "text"), document_id="new", file="new", key="k")]
    changes = Changes(rows, finished=[renamed], replaced=["old"])
    store.intake.write_batch(collection, changes, OPERATOR)
    assert store.intake.document_hash(collection, "old") is None
    assert list(store.intake.file_names(collection)) == ["new"]
    assert store.intake.document_hash(collection, "new") == ("new", rows[0].content_hash)


def test_forgetting_a_file_removes_all_that_was_in_it(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    rows = [document(collection, n, n, acl=["boss"], fields={"x": 1}) for n in ("aa", "bb")]
    write(store, collection, [*rows, document(collection, "cc", "cc")], embedder)
    assert store.intake.count_in_files(collection, {"aa", "bb", "?"}.__contains__) == (2, 2)
    assert store.intake.forget_files(collection, ["aa", "bb"], WriteAccess(ANN)) == 0
    assert store.intake.forget_files(collection, ["aa", "bb", "?"]) == 2
    assert set(store.intake.document_hashes(collection)) == {"cc"}
    assert store.catalogue.field_names(collection.id) == set()
    assert [found(store, collection, word) for word in ("aa", "bb", "cc")] == [0, 0, 1]


def test_documents_are_given_back_as_they_were_written(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    rows = [
        replace(document(collection, name, "one", "two", acl=["boss"], title=name), file="f")
        for name in ("a", "b")
    ]
    write(store, collection, [*rows, document(collection, "g", "else")], embedder)
    given: list[DocumentRow] = []
    for row in store.intake.stored_documents(collection.id, "f"):
        given.append(row)
        remove(store, collection, ["g"])  # they may be removed meanwhile
    assert given == rows
    assert store.intake.document_hashes(collection) == {
        row.document_id: ("f", row.content_hash) for row in rows
    }


def test_who_writes_gets_names_that_are_free_or_theirs(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    write(store, collection, [document(collection, "a", "text", acl=["boss"])], embedder)
    intake, mine = store.intake, WriteAccess(ANN)
    assert intake.name_for(collection, "b", mine) == "b"
    name = intake.name_for(collection, "a", mine)
    assert name != "a"
    assert intake.name_for(collection, "a", WriteAccess(BOSS)) == "a"
    assert intake.name_for(collection, "a", OPERATOR) == "a"
    hidden = intake.id_for(collection, name, "a", mine)
    assert hidden != "a" and intake.id_for(collection, "a", "a", OPERATOR) == "a"
    row = replace(document(collection, "mine", "own"), document_id=hidden, file=name, alias="a")
    changes = Changes([row], {name: "/up/a"}, aliases={name: "a"})
    intake.write_batch(collection, changes, mine)
    assert intake.original_name(collection, name) == "a"
    assert intake.name_for(collection, "a", mine) == name
    assert texts(store, collection, "a", ANN) == ["own"]


def test_a_document_is_pending_until_it_was_read_back(store: Store, collection: Collection) -> None:
    intake = store.intake
    entries = [JournalEntry("a", "f"), JournalEntry("b", "f")]
    intake.reach_stage(collection.id, "parsed", entries)
    pending = {"tenant": "acme", "collection": "main", "file": "f"}
    assert intake.pending_documents() == [{**pending, "stage": "parsed", "documents": 2}]
    intake.mark_verified(collection.id, ["a", "b"])  # nothing to read back yet
    assert intake.unverified_documents(collection.id, 9) == []
    rows = [replace(document(collection, name, name), file="f") for name in "ab"]
    intake.write_batch(collection, Changes(rows), OPERATOR)
    assert intake.pending_documents() == [{**pending, "stage": "indexed", "documents": 2}]
    assert intake.unverified_documents(collection.id, 1) == ["a"]
    assert intake.unverified_documents(collection.id, 9, after="a") == ["b"]
    intake.mark_verified(collection.id, ["a"])
    assert intake.unverified_documents(collection.id, 9) == ["b"]


def test_vectors_are_kept_by_the_text_and_the_model(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    intake = store.intake
    rows = [document(collection, "a", "same", "own"), document(collection, "b", "same")]
    hashes = {chunk.text: chunk.content_hash for row in rows for chunk in row.chunks}
    write_rows(store, collection, rows, "fake", {hashes["same"]: embedder.embed_query("same")})
    assert intake.missing_vectors("fake", hashes.values()) == {hashes["own"]}
    assert intake.missing_vectors("other", hashes.values()) == set(hashes.values())
    assert (intake.count_vectors("fake"), intake.count_vectors("other")) == (2, 0)
    counts = [
        intake.count_unembedded("fake", one, sentences=more)
        for one, more in ((None, False), (collection.id, True), (collection.id + 1, True))
    ]
    assert counts == [1, 2, 0]
    [[left]] = intake.unembedded("fake", None, 5, sentences=False)
    assert (left.text, left.document_id, left.ordinal) == ("own", "a", 1)
    version = store.catalogue.index_version()
    intake.store_vectors("fake", {hashes["own"]: embedder.embed_query("own")})
    assert store.catalogue.index_version() > version
    assert intake.count_unembedded("fake", None, sentences=False) == 0
    for batch in intake.unembedded("fake", collection.id, 1, sentences=True):
        intake.store_vectors("fake", {}, {one.content_hash: np.empty((0, 32)) for one in batch})
    assert intake.count_unembedded("fake", None, sentences=True) == 0


def test_vectors_without_a_text_are_swept(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    row = document(collection, "a", "kept")
    lost = {"lost": embedder.embed_query("lost")}
    write(store, collection, [row], embedder)
    store.intake.write_vectors(collection.id, "fake", lost, {}, [JournalEntry("x", "x")])
    assert store.intake.missing_vectors("fake", ["lost"]) == set()
    assert store.intake.sweep_vectors() == 1
    assert store.intake.sweep_vectors() == 0
    kept = row.chunks[0].content_hash
    assert store.intake.missing_vectors("fake", ["lost", kept]) == {"lost"}


def test_what_was_left_out_of_a_file_is_listed(store: Store, collection: Collection) -> None:
    first = [LeftOutRow("f", source, source, "short") for source in ("f#2", "f#1")]
    other = LeftOutRow("a", "a", "a", "empty")
    changes = Changes(left_out={"f": first, "a": [other]})
    store.intake.write_batch(collection, changes, OPERATOR)
    assert list(store.intake.list_left_out(collection)) == [other, first[1], first[0]]
    assert list(store.intake.list_left_out(collection, "f", 1)) == [first[1]]
    store.intake.write_batch(collection, Changes(left_out={"f": []}), OPERATOR)
    assert list(store.intake.list_left_out(collection)) == [other]


def test_repeats_are_numbered_and_counted_for_each_caller(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    rows = [document(collection, name, "same", acl=["boss"] * (name == "c")) for name in "abc"]
    write(store, collection, [*rows, document(collection, "d", "other")], embedder)

    def print_of(kind: str, text: str) -> bytes:
        return text.encode()

    intake = store.intake
    assert intake.number_duplicates(collection, print_of) == 3
    assert intake.number_duplicates(collection, print_of) == 0
    assert intake.count_duplicates(collection) == (0, 2)
    assert intake.count_duplicates(collection, ANN) == (0, 1)
    assert intake.clear_duplicates(collection) == 4
    assert intake.count_duplicates(collection) == (0, 0)


def test_how_a_collection_is_arranged_is_noted(store: Store, collection: Collection) -> None:
    intake, version = store.intake, store.catalogue.index_version()
    assert intake.arrangement(collection) == ""
    intake.note_arrangement(collection, "rules", changed=False)
    assert (intake.arrangement(collection), store.catalogue.index_version()) == (
        f"{version}:rules",
        version,
    )
    intake.note_arrangement(collection, "rules", changed=True)
    assert intake.arrangement(collection) == f"{store.catalogue.index_version()}:rules"
    assert store.catalogue.index_version() > version


def test_words_are_rebuilt_from_the_documents(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    write(store, collection, [document(collection, "a", "one", "two")], embedder)
    seen: list[str] = []
    assert store.intake.rebuild_words(lambda what, done, total: seen.append(what)) == 2
    assert found(store, collection, "two") == 1
    assert store.maintenance.examine()["problems"] == []


def test_collections_of_tenants_are_apart(store: Store) -> None:
    mine = store.intake.open_collection("acme", "main", None)
    other = store.intake.open_collection("zoo", "main", None)
    assert mine.id != other.id
    assert (mine.tenant, other.tenant) == ("acme", "zoo")


def test_a_finished_file_drops_the_documents_it_no_longer_has(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    rows = [document(collection, name, name) for name in ("a", "b")]
    for row in rows:
        object.__setattr__(row, "file", "both.md")
    write(store, collection, rows, embedder)
    file = FileRow("both.md", "/x/both.md", "f1", [{"record": "c", "reason": "broken"}])
    finish(store, collection, file, {"b"})
    assert set(store.intake.document_hashes(collection)) == {"b"}
    assert store.intake.find_file(collection, "both.md") == file
    assert store.intake.count_in_files(collection, {"both.md", "other.md"}.__contains__) == (1, 1)


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
