"""Contract of Maintenance: what keeps a data directory sound, and what takes things out of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
from fakes import FakeEmbedder, Shelf, document, write

from core.auth import AuthContext
from core.errors import AbsentError, OperatorError
from stores.ports import Maintenance
from stores.sqlite.catalogue import Collection
from stores.sqlite.files import Changes
from stores.sqlite.permissions import OPERATOR
from stores.sqlite.rows import FileRow
from stores.store import Store

ANN = AuthContext(tenant="acme", user="ann")


@pytest.fixture
def keeper(store: Store) -> Maintenance:
    return store.maintenance


@pytest.fixture
def filled(store: Store, collection: Collection, embedder: FakeEmbedder) -> Store:
    """Hold a document `a` with a run, a conversation and an opinion, and documents `b` and `c`."""
    rows = [document(collection, name, f"{name * 3} text") for name in ("a", "b", "docs/c")]
    write(store, collection, rows, embedder)
    store.search.refresh(collection)
    store.runs.create_conversation("acme", "ann", "main")
    store.accounts.keys.create("acme", user="ann")
    return store


def names(store: Store, collection: Collection) -> list[str]:
    listed = store.catalogue.list_documents(ANN, collection)
    return [one["document_id"] for one in listed]


def test_a_sound_directory_has_no_problems(filled: Store, collection: Collection) -> None:
    keeper = filled.maintenance
    keeper.finish_check()
    assert keeper.checking is False
    assert keeper.check_again() == keeper.check_sample() == keeper.repaired == []
    assert keeper.check_rows().any is False
    assert keeper.missing(collection.id, ["a", "b"]) == {}
    assert keeper.repair(list, lambda what, done, total: None) == []
    report = keeper.examine()
    assert (report["ok"], report["problems"]) == (True, [])
    keeper.clear_repairs()
    keeper.check_writable()
    assert not keeper.condition.read_only
    assert filled.warnings() == []


def test_what_is_missing_is_named(filled: Store, collection: Collection) -> None:
    bare = Changes([document(collection, "bare", "no vector")])
    filled.intake.write_batch(collection, bare, OPERATOR)
    missing = filled.maintenance.missing(collection.id, ["a", "bare"])
    assert missing.keys() == {"bare"} and missing["bare"]


def test_words_can_be_written_again(filled: Store, collection: Collection) -> None:
    keeper = filled.maintenance
    keeper.index_words_again(collection.id, ["a"])
    report = keeper.examine()
    assert (report["fts_rows"], report["problems"]) == (3, [])


def test_a_repair_embeds_between_the_catalogue_and_the_index(
    filled: Store, collection: Collection
) -> None:
    shown: list[str] = []

    def embed() -> list[str]:
        shown.append("embedded")
        return ["embedded"]

    done = filled.maintenance.repair(embed, lambda what, done, total: shown.append(what))
    assert done == shown[:1] == ["embedded"]
    assert filled.maintenance.examine()["ok"]


def test_nothing_is_written_where_it_would_make_things_worse(
    filled: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    for reason in ("malformed", "lost"):
        setattr(filled.maintenance.condition, reason, "for the test")
        with pytest.raises(OperatorError):
            filled.maintenance.check_writable()
        with pytest.raises(OperatorError):
            write(filled, collection, [document(collection, "d", "text")], embedder)
        assert any("for the test" in line for line in filled.warnings())
        setattr(filled.maintenance.condition, reason, "")
    assert names(filled, collection) == ["a", "b", "docs/c"]


def test_long_works_take_turns(keeper: Maintenance) -> None:
    waited = threading.Event()
    done: list[str] = []

    def waiting(other: str) -> None:
        assert other == "the first"
        waited.set()

    def second() -> None:
        with keeper.turn("the second", waiting):
            done.append("second")

    with keeper.turn("the first", waiting), keeper.changing():
        thread = threading.Thread(target=second)
        thread.start()
        assert waited.wait(60)
        done.append("first")
    thread.join(60)
    assert done == ["first", "second"]


def test_a_document_is_found_by_each_of_its_names(filled: Store, collection: Collection) -> None:
    found = filled.maintenance.named_document(collection, "a")
    for name in (found.document_id, found.source, found.file, found.key):
        assert filled.maintenance.named_document(collection, name) == found
    with pytest.raises(AbsentError, match="nearest"):
        filled.maintenance.named_document(collection, "docs/d")
    fitting = filled.maintenance.documents_of(collection, ["docs/*", "a"])
    assert {one.document_id for one in fitting} == {"docs/c", "a"}
    with pytest.raises(AbsentError, match="source"):
        filled.maintenance.documents_of(collection, ["a", "none*"])


def test_only_who_sees_a_document_can_erase_it(shelf: Shelf) -> None:
    shelf.write(shelf.row("a", "text", acl=["boss"]))
    version = shelf.catalogue.index_version()
    for auth in (ANN, AuthContext(tenant="zoo", roles=frozenset({"boss"}))):
        assert not shelf.maintenance.erase(auth, shelf.collection, "a")
    assert shelf.catalogue.index_version() == version
    boss = AuthContext(tenant="acme", roles=frozenset({"boss"}))
    assert shelf.maintenance.erase(boss, shelf.collection, "a")
    assert not shelf.maintenance.erase(boss, shelf.collection, "a")


def test_forgetting_does_what_was_said_and_no_more(filled: Store, collection: Collection) -> None:
    keeper, changes = filled.maintenance, []
    keeper.on_change.append(lambda: changes.append(1))
    gone = [keeper.named_document(collection, "a")]
    would = keeper.would_forget(collection, gone)
    assert names(filled, collection) == ["a", "b", "docs/c"] and not changes
    counts = keeper.forget(collection, gone, keep_out=True)
    assert counts == would and (counts["documents"], counts["chunks"]) == (1, 1)
    assert names(filled, collection) == ["b", "docs/c"] and changes
    assert keeper.keeps_out(gone[0].key)
    assert keeper.let_in(gone[0].key) and not keeper.let_in(gone[0].key)
    assert not keeper.keeps_out(gone[0].key)
    assert keeper.forget(collection, gone)["documents"] == 0


def test_tidying_leaves_no_text_and_can_be_ended(filled: Store, collection: Collection) -> None:
    keeper = filled.maintenance
    assert keeper.pending_erasure() is None and not keeper.tidy()
    assert keeper.erase(ANN, collection, "a")

    def stop(stage: str) -> None:
        raise KeyboardInterrupt

    assert keeper.pending_erasure() is not None and filled.unfinished_erasure()
    with pytest.raises(KeyboardInterrupt):
        keeper.tidy(stop)
    assert keeper.tidy()
    assert keeper.pending_erasure() is None and filled.unfinished_erasure() == ""
    files = [path for path in filled.folder.rglob("*") if path.is_file()]
    assert not any(b"aaa text" in path.read_bytes() for path in files)
    assert keeper.examine()["problems"] == []


def test_a_tenant_goes_with_everything(
    filled: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    keeper = filled.maintenance
    other = filled.intake.open_collection("zoo", "main", None)
    write(filled, other, [document(other, "z", "text")], embedder)
    assert set(keeper.tenants()) == {"acme", "zoo"}
    would = keeper.would_forget_tenant("acme")
    assert filled.catalogue.count_documents(ANN, collection) == 3
    counts = keeper.forget_tenant("acme")
    assert counts == would and counts["documents"] == 3
    assert keeper.tenants() == ["zoo"]
    assert filled.catalogue.collections() == [other]
    assert filled.runs.newest_conversations(ANN, 9) == []
    assert filled.accounts.keys.listed() == []
    assert not keeper.forget_tenant("acme")


def test_a_backup_is_whole_and_not_written_over(filled: Store, collection: Collection) -> None:
    target = filled.folder.parent / "backup.carrel"
    manifest = filled.maintenance.back_up(target, lambda *_: None)
    assert (manifest.documents, manifest.chunks) == (3, 3)
    assert manifest.index_version == filled.catalogue.index_version()
    size = target.stat().st_size
    with pytest.raises(OperatorError):
        filled.maintenance.back_up(target, lambda *_: None)
    assert target.stat().st_size == size
    assert filled.maintenance.erase(ANN, collection, "a")
    assert filled.maintenance.back_up(target, lambda *_: None, force=True).documents == 2


def test_the_quality_report_counts_one_moment(filled: Store, collection: Collection) -> None:
    with filled.maintenance.quality_counts(collection, 5) as counts:
        assert counts.totals()["texts"] == 3


def test_a_directory_has_one_owner(filled: Store, open_again: Callable[..., Store]) -> None:
    if filled.address != "sqlite":  # any number of servers have it at once
        assert open_again(lock_wait_s=0).catalogue.collections("acme")
    else:
        with pytest.raises(OperatorError, match="data directory"):
            open_again(lock_wait_s=0)
    filled.close()
    assert open_again().catalogue.collections("acme")


def test_a_text_that_another_document_has_too_keeps_its_vector(shelf: Shelf) -> None:
    rows = [shelf.row("a", "same", "own"), shelf.row("b", "same")]
    shelf.write(*rows)
    assert shelf.maintenance.erase(ANN, shelf.collection, "a")
    hashes = {chunk.content_hash for row in rows for chunk in row.chunks}
    missing = shelf.intake.missing_vectors(shelf.embedder.model_id, hashes)
    assert missing == {rows[0].chunks[1].content_hash}


def test_a_file_without_documents_is_a_new_one(shelf: Shelf) -> None:
    rows = [replace(shelf.row(name, f"text {name}"), file="two") for name in "ab"]
    shelf.write(*rows)
    shelf.finish(FileRow("two", "/two", "print", []), {"a", "b"})
    assert shelf.maintenance.erase(ANN, shelf.collection, "a")
    assert shelf.intake.find_file(shelf.collection, "two") is not None
    assert shelf.maintenance.erase(ANN, shelf.collection, "b")
    assert shelf.intake.find_file(shelf.collection, "two") is None
