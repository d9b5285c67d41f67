"""After an erasure no file of the data directory holds a byte of the text, name or vector."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import behind
import pytest
from builders import run_record
from fakes import FakeEmbedder, Shelf, document, finish, short_hash, write
from scanning import encoded, holding

from core.auth import AuthContext
from core.errors import AbsentError, OperatorError
from core.notes import ClaimSource, NoteDraft
from core.profile import Profile
from core.trace import ModelCall, RunRecord, Step
from core.types import Clarification
from stores.accounts.keys import Keys
from stores.erasure.documents import documents_of, named_document
from stores.erasure.redaction import ERASED
from stores.folder import FOLDERS
from stores.runlog.conversations import THREADS, KeptTurn
from stores.runlog.jobs import JobRow, JobRows
from stores.sqlite.catalogue import Collection
from stores.sqlite.rows import FileRow
from stores.store import Store, parts

ANN = AuthContext(tenant="acme", user="ann")
STAYS = "The harbour opened in the north of the town."
SECRETS = {
    "en": "Zyxomarvel Quandry signed the grey contract.",
    "ru": "Зюксомарвел Квандри подписал серый договор.",
    "uk": "Зюксомарвіл Квандрі підписав сірий договір.",
    "zh": "赑淼焱垚签署了灰色合同。",
}
NAME, TITLE = "qvornik.txt", "Vexilonta"
TYPED = "Who signed the grey contract of the harbour?"  # by a person, in words of the documents


@pytest.fixture(params=FOLDERS)
def full(open_store: Callable[..., Store], request: pytest.FixtureRequest) -> Store:
    """Open a store whose collections have segments on disk, and vectors in each index."""
    return open_store(index=request.param, segment_min_rows=2, erase_wait_s=5)


def run_of(text: str, run_id: str, tenant: str = "acme") -> RunRecord:
    """Make a run that cites the document, says it in its trail, and reads another one."""
    own, others = (short_hash(tenant, "main", name, "", 0) for name in (NAME, "d0"))
    cited = {"evidence_id": own, "document_id": NAME, "source": NAME, "chunk_id": own,
             "start": 0, "end": 4, "quote": text}  # fmt: skip
    item = {"evidence_id": own, "document_id": NAME, "source": NAME, "text": text, "title": TITLE,
            "section": "", "metadata": {"author": text}, "language": "en",
            "query": text}  # fmt: skip
    other = item | {"evidence_id": others, "document_id": "d0", "source": "d0",
                    "text": STAYS, "title": "", "metadata": {}}  # fmt: skip
    result: dict[str, Any] = {
        "answer": text,
        "evidence": [item, other],
        "claims": [{"text": text, "citations": [cited]}],
        "missing": [text],
        "warnings": [f"about {TITLE}"],
        "plan": {"questions": [{"text": text, "query": text}], "slots": []},
        "clarification": None,
    }
    call = ModelCall(verb="answer", prompt_hash="h", reply=text, error=text)
    step = Step(node="plan", decision=text, reason=text, arguments={"query": [text]}, calls=[call])
    return run_record(run_id, tenant=tenant, question=TYPED, result=result, trail=[step])


def states(folder: Path, threads: Iterable[str], text: str) -> None:
    """Write what LangGraph keeps of conversations, in tables as it makes them."""
    with closing(sqlite3.connect(folder / THREADS)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        for table in ("checkpoints", "writes"):
            connection.execute(f"CREATE TABLE IF NOT EXISTS {table} (thread_id, value BLOB)")
            connection.executemany(
                f"INSERT INTO {table} VALUES (?, ?)", [(one, text.encode()) for one in threads]
            )
        connection.commit()


def fill(
    store: Store, embedder: FakeEmbedder, text: str, language: str, tenant: str = "acme"
) -> Collection:
    """Put a document and traces of it into every store."""
    main = store.intake.open_collection(tenant, "main", Profile(name="default"))
    others = [document(main, f"d{n}", f"{STAYS} Number {n}.") for n in range(40)]
    said: dict[str, Any] = {"metadata": {"authors": [text]}, "fields": {"who": text}}
    secret = document(main, NAME, text, "Nothing here.", title=TITLE, language=language, **said)
    for rows in (others[:20], [secret], others[20:]):  # in pages between others
        write(store, main, rows, embedder)
    finish(store, main, FileRow(NAME, f"/in/{NAME}", "p", []), {NAME})
    store.search.rebuild(main)
    store.runs.save(run_of(text, f"r-{tenant}", tenant))
    store.runs.save_feedback(tenant, "ann", f"r-{tenant}", "up", TYPED)
    kept = store.runs.create_conversation(tenant, "ann", "main")
    asks = Clarification(question=f"Which {TITLE}?", options=[TITLE, "harbour"])
    turn = KeptTurn(f"r-{tenant}", TYPED, asks, reply=TYPED)
    store.runs.save_turn(kept, turn, "c1", title=TYPED, waiting=True)
    reader = AuthContext(tenant=tenant, user="ann")
    [cited] = store.runs.load(reader, f"r-{tenant}").result["claims"][0]["citations"]
    source = ClaimSource(run_id=f"r-{tenant}", conversation=kept.id, citations=[cited])
    [note] = store.notes.write_notes(reader, [NoteDraft(content=text, provenance=source)])
    vectors = {note.note_id: embedder.embed_query(text)}
    store.notes.store_note_vectors(reader, embedder.model_id, vectors, embedder.similarity)
    states(store.folder, [kept.id], text)
    jobs = JobRows(parts(store).database, kept=10)
    jobs.save(JobRow("j1" + tenant, "upload", tenant, "ann", "main", NAME, state="done"))
    return main


def needles(store: Store, text: str) -> set[bytes]:
    joined = "embeddings e JOIN chunks c USING (content_hash)"
    vectors = behind.rows(store, f"SELECT e.vector FROM {joined} WHERE c.text = ?", text)
    assert vectors
    return {row[0][:24] for row in vectors} | {b for s in (text, NAME, TITLE) for b in encoded(s)}


def forget(store: Store, collection: Collection) -> dict[str, int]:
    """Forget the secret document and return what went."""
    gone = named_document(parts(store).database.read(), collection, NAME)
    return store.maintenance.forget(collection, [gone])


@pytest.mark.parametrize("language", SECRETS)
def test_no_file_holds_a_forgotten_document(
    full: Store, embedder: FakeEmbedder, language: str
) -> None:
    text = SECRETS[language]
    main = fill(full, embedder, text, language)
    wanted = needles(full, text)
    found = {file.split("/")[0] for file, _ in holding(full.folder, wanted)}
    [of_vectors] = [names[-1] for names in FOLDERS.values() if (full.folder / names[-1]).exists()]
    assert found >= {"catalogue.sqlite3-wal", THREADS, of_vectors}
    assert forget(full, main) == {
        "documents": 1, "chunks": 2, "vectors": 2, "files": 1, "runs": 1, "notes": 1,
        "conversations": 1, "jobs": 1,
    }  # fmt: skip
    assert full.maintenance.tidy()
    assert holding(full.folder, wanted) == []
    assert full.maintenance.examine()["problems"] == []
    with closing(sqlite3.connect(full.folder / THREADS)) as connection:
        assert connection.execute("SELECT count(*) FROM checkpoints").fetchone() == (0,)
    kept = full.runs.load(ANN, "r-acme")
    assert [one["source"] for one in kept.result["evidence"]] == [ERASED, "d0"]
    assert STAYS in str(kept.result)
    (conversation,) = full.runs.newest_conversations(ANN, 5)
    assert (conversation.waiting, conversation.checkpoint_id, conversation.turns) == (None, "", 1)
    (turn,) = full.runs.turns(ANN, conversation)
    typed = (kept.question, conversation.title, turn["question"], turn["reply"])
    assert set(typed) == {TYPED}
    assert behind.rows(full, "SELECT comment FROM feedback") == [(TYPED,)]


def test_an_erasure_ended_anywhere_is_finished_later(
    open_store: Callable[..., Store], embedder: FakeEmbedder
) -> None:
    text = SECRETS["en"]
    store = open_store(segment_min_rows=2)
    wanted: set[bytes] = set()
    stages, ended = [], 0
    while True:
        main = fill(store, embedder, text, "en")
        wanted |= needles(store, text)
        forget(store, main)
        left = ended

        def step(stage: str) -> None:
            nonlocal left
            stages.append(stage)
            left -= 1
            if left < 0:
                raise KeyboardInterrupt

        try:
            store.maintenance.tidy(step)
            break
        except KeyboardInterrupt:
            assert any(
                "erasure is not finished" in one for one in store.maintenance.examine()["problems"]
            )
        store.close()
        store = open_store(segment_min_rows=2)
        assert store.maintenance.tidy()
        assert not store.maintenance.pending_erasure()
        assert holding(store.folder, wanted) == []
        ended += 1
    assert ended >= 4
    assert {"conversations", "words", "segments", "catalogue"} <= set(stages)


def test_all_of_a_tenant_goes_and_nothing_of_another(full: Store, embedder: FakeEmbedder) -> None:
    text = SECRETS["en"]
    fill(full, embedder, text, "en", tenant="zoo")
    fill(full, embedder, "Another text of no secret.", "en")
    Keys(parts(full).database).create("zoo", user="zoe")
    upload = full.folder / "uploads" / "j1zoo" / NAME
    upload.parent.mkdir(parents=True)
    upload.write_text(text, encoding="utf-8")
    wanted = needles(full, text) - encoded(NAME) - encoded(TITLE)
    assert full.maintenance.tenants() == ["acme", "zoo"]
    counts = full.maintenance.forget_tenant("zoo")
    assert (counts["documents"], counts["collections"], counts["api_keys"]) == (41, 1, 1)
    full.maintenance.tidy()
    assert holding(full.folder, wanted) == []
    assert full.maintenance.tenants() == ["acme"]
    assert full.maintenance.examine()["problems"] == []
    assert not upload.exists()
    assert full.runs.load(ANN, "r-acme").result["answer"] == "Another text of no secret."
    assert not full.maintenance.forget_tenant("zoo")


def test_a_run_that_ends_after_the_erasure_brings_nothing_back(
    full: Store, embedder: FakeEmbedder
) -> None:
    text = SECRETS["en"]
    main = fill(full, embedder, text, "en")
    wanted = needles(full, text)
    forget(full, main)
    assert full.runs.save(run_of(text, "late"))
    full.maintenance.tidy()
    assert holding(full.folder, wanted) == []


def test_what_other_documents_say_too_stays_in_runs(full: Store, embedder: FakeEmbedder) -> None:
    text = "Zyx swims."
    main = fill(full, embedder, text, "en")
    said = run_of(text, "asked")
    said.result["warnings"] = ["Does Zyx swim near the harbour in the north?"]
    full.runs.save(said)
    forget(full, main)
    kept = full.runs.load(ANN, "asked")
    assert kept.result["warnings"] == ["Does … near the harbour in the north?"]


def test_what_a_person_typed_stays_wherever_it_is_repeated(
    full: Store, embedder: FakeEmbedder
) -> None:
    text = "Zyx swims. Quandry drowned."
    main = fill(full, embedder, text, "en")
    question = f"Does Zyx swim, {TITLE}?"
    said = run_of(text, "asked").model_copy(update={"question": question})
    said.result["warnings"] = [question, f"Zyx swims, Quandry drowned, {TITLE}, {NAME}"]
    full.runs.save(said)
    forget(full, main)
    kept = full.runs.load(ANN, "asked")
    assert kept.question == question
    typed, found = kept.result["warnings"]
    assert typed == question
    assert not [word for word in ("Quandry", "drowned", NAME) if word in found], found


def test_a_document_is_found_by_the_names_people_see(shelf: Shelf) -> None:
    rows = [shelf.row(f"b{n}", f"Book {n}.", source=f"books.csv#b{n}") for n in range(3)]
    rows += [shelf.row("[1] a.md", "x"), shelf.row("mail/ann.eml", "y")]
    shelf.write(*rows)
    connection = parts(shelf.store).database.read()
    assert named_document(connection, shelf.collection, "books.csv#b1").document_id == "b1"
    assert named_document(connection, shelf.collection, "[1] a.md").source == "[1] a.md"
    with pytest.raises(AbsentError, match=r"nearest are 'b2'"):
        named_document(connection, shelf.collection, "b22")
    found = documents_of(connection, shelf.collection, ["books.csv#*", "mail/*", "b1"])
    assert sorted(one.document_id for one in found) == ["b0", "b1", "b2", "mail/ann.eml"]
    assert len(documents_of(connection, shelf.collection, ["[1] a.md"])) == 1
    with pytest.raises(AbsentError, match="source must be in the collection"):
        documents_of(connection, shelf.collection, ["mail/*", "letters/*"])


def test_a_reader_that_holds_the_log_leaves_the_erasure_pending(
    open_store: Callable[..., Store], embedder: FakeEmbedder
) -> None:
    store = open_store(erase_wait_s=0)
    main = fill(store, embedder, SECRETS["en"], "en")
    with closing(sqlite3.connect(parts(store).database.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM chunks").fetchone()
        forget(store, main)
        with pytest.raises(OperatorError, match="a reader holds the log"):
            store.maintenance.tidy()
        assert store.maintenance.pending_erasure()
    store.maintenance.tidy()
    assert holding(store.folder, encoded(SECRETS["en"])) == []
