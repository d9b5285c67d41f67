"""A changed byte in what runs and people leave is noticed, and the row is withheld."""

from __future__ import annotations

from collections.abc import Callable

import commands
import pytest
from behind import change, count, value
from builders import run_record
from fakes import FakeEmbedder, document, finish, write

from core.auth import AuthContext
from core.errors import AbsentError, OperatorError
from core.notes import NoteDraft, TurnSource
from core.settings import Settings
from core.trace import Step
from retrievers.tree.building import build_tree
from retrievers.types import Index
from stores.erasure.documents import Gone
from stores.erasure.traces import redact_traces
from stores.integrity.checks import ThreadsCheck
from stores.integrity.rows import damage_problems, read_again
from stores.runlog.conversations import KeptTurn
from stores.runlog.jobs import JobRow, JobRows
from stores.runlog.sources import SourceRow
from stores.sqlite.catalogue import Collection
from stores.sqlite.permissions import add_alias
from stores.sqlite.rows import FileRow
from stores.sqlite.sums import DERIVED, TRACES, find_damaged_records
from stores.store import Store, parts

ANN = AuthContext(tenant="acme", user="ann")
BOB = AuthContext(tenant="acme", user="bob")
Opener = Callable[..., Store]


@pytest.fixture
def filled(store: Store, collection: Collection, embedder: FakeEmbedder) -> Store:
    book = document(collection, "book", "of the sea", metadata={"isbn": "1"}, fields={"isbn": "1"})
    write(store, collection, [book, document(collection, "text", "a long text")], embedder)
    change(store, "UPDATE documents SET is_record = 1 WHERE document_id = 'book'")
    link(store, collection)
    for one in ("r1", "r2"):
        store.runs.save(run_record(one, trail=[Step(node="retrieve", tool="search")]))
        store.runs.save_feedback("acme", "ann", one, "up", "well said")
    talk = store.runs.create_conversation("acme", "ann", "main")
    for one in ("r1", "r2"):
        store.runs.save_turn(talk, KeptTurn(one, "Why?"), "state", title="Why?")
    source = TurnSource(conversation=talk.id, run_id="r1", quote="Why?")
    store.notes.write_notes(ANN, [NoteDraft(content="Why?", provenance=source)])
    jobs = JobRows(parts(store).database, kept=10)
    for one in ("j1", "j2"):
        jobs.save(JobRow(one, "upload", "acme", "ann", "main", "a.txt", frozenset({"staff"})))
    readers = frozenset({"staff"})
    store.accounts.sources().add(SourceRow("acme", "", "s", "main", "/papers", acl=readers))
    finish(store, collection, FileRow("a.txt", "/a.txt", "print", []), set())
    with parts(store).database.write() as connection:
        add_alias(connection, collection.id, "document", "text (0f)", "text")
    build_tree(Index(store, collection, embedder, Settings(data=store.folder)))
    return store


def link(store: Store, collection: Collection) -> None:
    store.intake.link_books(
        collection,
        lambda document_id, title, metadata: [(3, "1")] if document_id == "text" else [],
        lambda document_id, title, metadata, fields: [(3, "1")],
    )


def damaged(store: Store) -> dict[str, int]:
    return find_damaged_records(parts(store).database.read())


def test_what_is_written_is_signed(filled: Store, collection: Collection) -> None:
    assert damaged(filled) == {}
    for name in (*TRACES, *DERIVED):
        assert count(filled, f"{name} WHERE sum IS NOT NULL"), name
    kept = filled.runs
    kept.rename_conversation(kept.newest_conversations(ANN, 1)[0], "another title")
    filled.runs.save_feedback("acme", "ann", "r1", "down", "")
    job = JobRows(parts(filled).database, kept=10).find("j1")
    assert job is not None
    job.state = "done"
    JobRows(parts(filled).database, kept=10).save(job)
    with parts(filled).database.write() as connection:
        gone = Gone(1, "k", "book", "a.txt", "a.txt", "Why")
        assert redact_traces(connection, collection, [gone])["jobs"]
    assert damaged(filled) == {}


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("UPDATE runs SET user = 'bob' WHERE run_id = 'r1'", "runs"),
        ("UPDATE runs SET result = CAST(x'ff41' AS TEXT) WHERE run_id = 'r1'", "runs"),
        ("UPDATE feedback SET rating = 'down' WHERE run_id = 'r1'", "feedback"),
        ("UPDATE conversations SET user = 'bob'", "conversations"),
        ("UPDATE conversation_turns SET question = '?' WHERE run_id = 'r1'", "conversation_turns"),
        ("UPDATE notes SET owner = 'bob'", "notes"),
        ("UPDATE jobs SET roles = '[]' WHERE id = 'j1'", "jobs"),
        ("UPDATE sources SET acl = '[]'", "sources"),
        ("UPDATE files SET fingerprint = 'prinu'", "files"),
        ("UPDATE book_texts SET rule = '1'", "book_texts"),
        ("UPDATE aliases SET alias = 'tex'", "aliases"),
    ],
)
def test_a_change_behind_its_back_is_found_and_said(
    filled: Store, open_store: Opener, statement: str, name: str
) -> None:
    filled.close()
    commands.change(filled.folder, statement)
    store = open_store()
    assert damaged(store) == {name: 1}
    said = [general for general, _ in damage_problems(store.maintenance.rows.damage)]
    assert len(said) == 1 and said[0] in store.warnings()
    assert said[0] in store.maintenance.examine()["problems"]
    store.close()
    assert said[0] in open_store().warnings()  # it is not sealed


@pytest.mark.parametrize("damage", ["'{'", "CAST(x'ff41' AS TEXT)"])
def test_a_damaged_run_is_withheld(filled: Store, damage: str) -> None:
    change(filled, f"UPDATE runs SET result = {damage} WHERE run_id = 'r1'")
    with pytest.raises(OperatorError, match="record of this run is damaged.*r1.*backup"):
        filled.runs.load(ANN, "r1")
    assert [one.run_id for one in filled.runs.newest(ANN, 9)] == ["r2"]
    assert any("runs are damaged" in line for line in filled.warnings())
    parts(filled).database.condition.clear("records")
    talk = filled.runs.newest_conversations(ANN, 1)[0]
    answers = [turn["answer"] for turn in filled.runs.turns(ANN, talk)]
    assert answers == ["", "Because"]
    assert any("runs are damaged" in line for line in filled.warnings())
    notes = list(filled.runs.export_feedback(ANN))
    assert [note["answer"] for note in notes] == [None, "Because"]


def test_a_damaged_conversation_is_withheld(filled: Store) -> None:
    kept = filled.runs
    talk = kept.newest_conversations(ANN, 1)[0]
    change(filled, "UPDATE conversation_turns SET reply = 'x' WHERE run_id = 'r1'")
    assert [turn["run_id"] for turn in kept.turns(ANN, talk)] == ["r2"]
    assert any("turns are damaged" in line for line in filled.warnings())
    change(filled, "UPDATE conversations SET title = CAST(x'ff41' AS TEXT)")
    assert kept.newest_conversations(ANN, 9) == []
    with pytest.raises(OperatorError, match="conversation is damaged"):
        kept.load_conversation(ANN, talk.id)
    change(filled, "UPDATE conversations SET user = 'bob'")
    with pytest.raises(OperatorError, match="conversation is damaged"):  # not handed to another
        kept.load_conversation(BOB, talk.id)
    with pytest.raises(AbsentError):
        kept.load_conversation(ANN, talk.id)


def test_a_damaged_job_is_not_taken_up(filled: Store) -> None:
    change(filled, "UPDATE jobs SET roles = '[]' WHERE id = 'j1'")
    jobs = JobRows(parts(filled).database, kept=10)
    assert jobs.find("j1") is None
    assert [row.id for row in jobs.open()] == [row.id for row in jobs.newest("acme", None, 9)]
    assert [row.id for row in jobs.open()] == ["j2"]


def test_of_a_damaged_file_nothing_is_known(filled: Store, collection: Collection) -> None:
    change(filled, "UPDATE files SET failures = 'no JSON'")
    assert filled.intake.find_file(collection, "a.txt") is None
    assert filled.intake.files_with_fingerprint(collection, "print") == []
    read_again(parts(filled).database)
    assert damaged(filled) == {}
    finish(filled, collection, FileRow("a.txt", "/a.txt", "print", []), set())
    assert filled.intake.find_file(collection, "a.txt") is not None


def test_a_damaged_link_is_not_followed_and_made_anew(
    filled: Store, collection: Collection
) -> None:
    def texts() -> list[str]:
        key = value(filled, "SELECT key FROM documents WHERE document_id = 'book'")
        found = filled.catalogue.texts_of_book(ANN, collection.id, key)
        return [one["document_id"] for one in found]

    change(filled, "UPDATE documents SET is_open = 1")
    before = texts()
    change(filled, "UPDATE book_texts SET rule = '9'")
    assert before == ["text"] and texts() == []
    link(filled, collection)
    assert texts() == ["text"] and damaged(filled) == {}


def test_an_erasure_drops_what_nobody_can_read(filled: Store, collection: Collection) -> None:
    change(filled, "UPDATE runs SET result = '{' WHERE run_id = 'r1'")
    change(filled, "UPDATE conversations SET title = 'x'")
    with parts(filled).database.write() as connection:
        redact_traces(connection, collection, [Gone(1, "k", "book", "a.txt", "a.txt", "Why")])
        left = connection.execute("SELECT kind FROM erasure_leftovers").fetchall()
    assert [row[0] for row in left] == ["thread"]
    assert damaged(filled) == {}
    assert [one.run_id for one in filled.runs.newest(ANN, 9)] == ["r2"]


def test_a_damaged_file_of_states_is_said_until_it_is_gone(
    store: Store, open_store: Opener
) -> None:
    path = store.folder / "conversations.sqlite3"
    assert ThreadsCheck(parts(store)).check() == []
    store.close()
    path.write_bytes(b"no database at all" * 99)
    for _ in range(2):
        opened = open_store()
        warnings = opened.warnings()
        assert any("file of conversations is damaged" in line for line in warnings)
        assert any(
            "file of conversations" in line for line in opened.maintenance.examine()["problems"]
        )
        opened.close()
    path.unlink()
    assert open_store().warnings() == []


def test_the_doctor_looks_at_a_catalogue_that_is_not_written_any_more(filled: Store) -> None:
    parts(filled).database.condition.malformed = "a page is damaged"
    commands.change(filled.folder, "UPDATE documents SET title = 'x' WHERE document_id = 'text'")
    problems = filled.maintenance.examine()["problems"]
    assert any("a page is damaged" in line for line in problems)
    assert any("1 documents are damaged" in line for line in problems)
