"""No write touches what its writer may not see, and none learns that a name was taken.

The property test sends uploads, deletions and ingests of callers with random rights to a server,
and compares what every caller sees before and after. `WRITING_EXAMPLES=120 pytest
tests/attack/test_writing_rights.py -s` sends more, and says how many.
"""

from __future__ import annotations

import io
import itertools
import json
import os
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import behind
import pytest
from builders import run_record
from fakes import Shelf
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from postgres_server import RECORDS
from serving import Served, eventually, running
from tiers import examples

from app.session import Session
from core.auth import AuthContext
from core.errors import AbsentError, InUseError
from core.profile import Profile
from core.settings import load_settings
from ingest.pipeline import Pipeline
from ingest.summary import Summary
from serve.jobs import UNSEEN, Jobs
from serve.services import make_app_state
from stores.accounts.keys import Keys
from stores.backup.archive import make_backup, unpack
from stores.erasure.documents import named_document
from stores.erasure.redaction import ERASED
from stores.runlog.jobs import JobRow, JobRows
from stores.sqlite.catalogue import Collection
from stores.sqlite.database import Database
from stores.sqlite.files import Changes, JournalEntry, LeftOutRow
from stores.sqlite.listing import Listing
from stores.sqlite.permissions import WriteAccess
from stores.store import Store
from stores.store import parts as store_parts

EXAMPLES = int(os.environ.get("WRITING_EXAMPLES", "3"))
STEPS = 9
CALLERS = {
    # user: roles; all may write
    "bob": ("writer", "board"),
    "wri": ("writer",),
    "cat": ("writer", "board", "staff"),
    "sam": ("writer", "staff"),
}
MARKED = re.compile(r" \([0-9a-f]{8}\)")
WORDS = re.compile(r"zq\d+")
done = Counter[str]()
numbers = itertools.count(1)


def auth_of(user: str) -> AuthContext:
    return AuthContext(tenant="acme", user=user, roles=frozenset(CALLERS[user]))


@pytest.fixture(scope="module", params=RECORDS)
def session(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Session]:
    flags = {"data": tmp_path_factory.mktemp("writing") / "data", "reasoner": "rules"}
    flags |= RECORDS[request.param]()
    flags |= {"serve_rate": 0, "serve_ask_rate": 0, "serve_writer_roles": ["writer"]}
    with Session(load_settings(flags)[0], create=True) as opened:
        yield opened


@pytest.fixture(scope="module")
def served(session: Session) -> Iterator[Served]:
    keys = Keys(store_parts(session.store).database)
    headers = {}
    for user, roles in CALLERS.items():
        text, _ = keys.create("acme", user=user, roles=frozenset(roles))
        headers[user] = {"Authorization": f"Bearer {text}"}
    services = make_app_state(session)
    with running(services) as url:
        yield Served(url, services, headers)


@dataclass
class Place:
    """Write to one collection of the server, which is made with the first document."""

    served: Served
    name: str = field(default_factory=lambda: f"place{next(numbers)}")

    @property
    def store(self) -> Store:
        return self.served.services.session.store

    @property
    def collection(self) -> Collection:
        return self.store.catalogue.collection("acme", self.name)

    def upload(self, user: str, name: str, content: bytes, *readers: str) -> dict[str, Any]:
        params: dict[str, Any] = {"name": name, "collection": self.name, "role": list(readers)}
        with self.served.client(user) as client:
            sent = client.post("/api/v1/documents", params=params, content=content)
            assert sent.status_code == 202, sent.text
            job: dict[str, Any] = {}

            def ended() -> bool:
                job.update(client.get(f"/api/v1/jobs/{sent.json()['id']}").json())
                return bool(job["state"] in ("done", "failed"))

            eventually(ended)
        return job

    def delete(self, user: str, document_id: str) -> int:
        params = {"collection": self.name, "document_id": document_id}
        with self.served.client(user) as client:
            return client.delete("/api/v1/documents", params=params).status_code

    def found(self, user: str, word: str) -> dict[str, str]:
        """Return the texts with a word that a search finds, by document id."""
        body = {"query": word, "collection": self.name, "k": 50}
        with self.served.client(user) as client:
            answer = client.post("/api/v1/search", json=body)
        results = answer.json()["results"] if answer.status_code == 200 else []
        return {one["document_id"]: one["text"] for one in results if word in one["text"]}

    def view(self, user: str) -> dict[str, tuple[str, str]]:
        """Return the (source, text) of all that a caller is shown, by document id, page by page."""
        known = {one.name for one in self.store.catalogue.collections("acme")}
        if self.name not in known:
            return {}
        listing, auth, shown, last = self.store.catalogue, auth_of(user), {}, ""
        while page := listing.list_documents(auth, self.collection, after=last, limit=2):
            for one in page:
                last = one["document_id"]
                assert last not in shown, "two documents under one id"
                parts = listing.list_passages(auth, self.collection, last, 0, 99)
                assert listing.describe_document(auth, self.collection, last) == one
                shown[last] = (one["source"], "\n".join(part["text"] for part in parts))
        return shown

    def ingest(self, paths: Sequence[Path], **options: Any) -> Summary:
        session = self.served.services.session
        target = self.store.intake.open_collection("acme", self.name, None)
        assert session.embedder is not None
        prune = options.pop("prune", False)
        pipeline = Pipeline(
            self.store, session.embedder, session.index(target).settings, target, **options
        )
        try:
            return pipeline.run(paths, prune=prune)
        finally:
            self.store.intake.drop_collection_if_empty(target)


@pytest.fixture
def place(served: Served) -> Place:
    return Place(served)


def file_of(name: str, texts: Mapping[str, str]) -> bytes:
    """Write a file of documents; only files of records say their ids."""
    kind = name.rpartition(".")[2]
    if kind == "jsonl":
        rows = [{"_id": key, "text": text} for key, text in texts.items()]
        return "".join(json.dumps(row) + "\n" for row in rows).encode()
    if kind == "csv":
        return ("id,text\n" + "".join(f"{key},{text}\n" for key, text in texts.items())).encode()
    if kind == "zip":
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for key, text in texts.items():
                archive.writestr(f"{key}.txt", text)
        return packed.getvalue()
    (text,) = texts.values()
    if kind == "html":
        return f"<html><body><p>{text}</p></body></html>".encode()
    return f"{text}\n".encode()


def ids_of(name: str, texts: Mapping[str, str]) -> dict[str, str]:
    """Return the ids that a file gives its documents, with their texts."""
    if name.endswith(".zip"):
        return {f"{name}/{key}.txt": text for key, text in texts.items()}
    return dict(texts) if name.endswith((".jsonl", ".csv")) else {name: next(iter(texts.values()))}


FORMATS = ["minutes.txt", "plan.md", "p.html", "q.jsonl", "table.csv", "pack.zip"]
SAID = ("state", "error", "documents", "chunks", "notes", "name", "roles", "kind")


def said(job: Mapping[str, Any]) -> dict[str, Any]:
    return {name: job[name] for name in SAID}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("other_ids", [False, True])
def test_an_upload_leaves_the_hidden_document_of_its_name(
    place: Place, served: Served, name: str, other_ids: bool
) -> None:
    place.upload("bob", name, file_of(name, {"a1": "The hidden minutes zq1."}), "board")
    ids = {"b7" if other_ids else "a1": "The public minutes zq2."}
    job = place.upload("wri", name, file_of(name, ids))
    free = Place(served)
    assert said(job) == said(free.upload("wri", name, file_of(name, ids)))
    assert (job["state"], job["documents"], job["notes"]) == ("done", 1, [])
    assert list(place.found("bob", "zq1")) == list(ids_of(name, {"a1": ""}))
    (own,) = ids_of(name, ids)
    assert list(place.found("wri", "zq2")) == [own]
    assert place.view("wri") == free.view("wri")
    again = place.upload("wri", name, file_of(name, {next(iter(ids)): "A new version zq3."}))
    assert said(again) == said(job)
    assert list(place.found("wri", "zq3")) == [own] and not place.found("wri", "zq2")
    assert len(place.view("bob")) == 2 and place.found("bob", "zq1")
    assert place.delete("wri", own) == 204 and place.delete("wri", own) == 404
    assert len(place.view("bob")) == 1 and place.found("bob", "zq1")


def test_who_sees_both_can_tell_them_apart(place: Place) -> None:
    for user, readers in (("bob", ["board"]), ("wri", []), ("sam", ["staff"])):
        place.upload(user, "m.txt", f"Words of {user} zq1.".encode(), *readers)
    # What `sam` sent replaced what `wri` had sent: they see it.
    assert place.view("wri") == {}
    assert set(place.view("bob")) == {"m.txt"} and set(place.view("sam")) == {"m.txt"}
    first, second = place.view("cat")
    assert first == "m.txt" and MARKED.sub("", second) == "m.txt" and MARKED.search(second)
    assert set(place.found("cat", "zq1")) == {first, second}
    place.upload("cat", "m.txt", b"Of cat zq2.", "board")  # the first of those of this name
    assert list(place.found("cat", "zq2")) == ["m.txt"] and "zq2" in str(place.view("bob"))
    assert place.delete("cat", second) == 204
    assert list(place.view("cat")) == ["m.txt"] and place.view("sam") == {}
    assert place.delete("cat", second) == 404


def test_an_id_of_a_hidden_record_is_like_a_free_one(place: Place, served: Served) -> None:
    place.upload("bob", "boardA.jsonl", file_of(".jsonl", {"board1": "Secret zq1."}), "board")
    job = place.upload("wri", "zz.jsonl", file_of(".jsonl", {"board1": "Mine zq2."}))
    free = Place(served).upload("wri", "zz.jsonl", file_of(".jsonl", {"board1": "Mine zq2."}))
    assert said(job) == said(free)
    assert place.found("bob", "zq1") and list(place.found("wri", "zq2")) == ["board1"]


def test_only_a_file_that_its_writer_sees_is_named_in_a_conflict(
    place: Place, tmp_path: Path
) -> None:
    (tmp_path / "kept.jsonl").write_bytes(file_of(".jsonl", {"x": "Open zq1."}))
    place.ingest([tmp_path / "kept.jsonl"])
    (tmp_path / "board.jsonl").write_bytes(file_of(".jsonl", {"y": "Closed zq2."}))
    place.ingest([tmp_path / "board.jsonl"], acl=frozenset({"board"}))
    clash = place.upload("wri", "new.jsonl", file_of(".jsonl", {"x": "zq3"}))
    assert "document id 'x' already comes from kept.jsonl" in clash["error"]
    hidden = place.upload("wri", "new.jsonl", file_of(".jsonl", {"y": "Mine zq3."}))
    assert (hidden["state"], hidden["notes"]) == ("done", [])
    assert place.found("bob", "zq2") and list(place.found("wri", "zq3")) == ["y"]


def test_a_job_says_nothing_of_what_others_left(place: Place) -> None:
    profile = Profile(name="once", settings={"drop_repeats": True})
    place.store.intake.open_collection("acme", place.name, profile)
    place.upload("wri", "first.txt", b"Something zq1.")
    entries = [JournalEntry("upmark.txt", "upmark.txt")]
    place.store.intake.reach_stage(place.collection.id, "parsed", entries)
    place.upload("bob", "same.txt", b"The very same words zq5.", "board")
    job = place.upload("wri", "other.txt", b"The very same words zq5.")
    assert job["notes"] == []  # nor that a hidden passage says the same
    both = place.upload("cat", "third.txt", b"The very same words zq5.")
    assert both["notes"] == ["2 passages repeat others and are found only once"]
    summary = place.ingest([])
    assert any("upmark.txt" in note for note in summary.notes)


def test_an_upload_that_is_begun_again_finds_what_it_has_made(
    place: Place, served: Served, tmp_path: Path
) -> None:
    """Its sender is none of its readers: only the file says that the documents are theirs."""
    place.upload("bob", "r.jsonl", file_of(".jsonl", {"a": "Hidden zq1."}), "board")
    path = tmp_path / "r.jsonl"
    path.write_bytes(file_of(".jsonl", {"a": "Sent zq2.", "b": "Sent zq3."}))
    for _ in range(2):  # as by two servers
        access = WriteAccess(auth_of("wri"), str(path.resolve()))
        place.ingest([path], access=access, acl=frozenset({"board"}), renames=False)
        assert len(place.view("bob")) == 3
    assert place.view("wri") == {}


def test_a_file_whose_documents_another_took_is_read_when_it_comes_again(place: Place) -> None:
    content = file_of(".jsonl", {"x": "By wri zq1."})
    place.upload("wri", "one.jsonl", content)
    place.upload("sam", "two.jsonl", file_of(".jsonl", {"x": "By sam zq2."}), "staff")
    assert place.view("wri") == {}
    assert place.upload("wri", "one.jsonl", content)["documents"] == 1
    assert list(place.found("wri", "zq1")) == ["x"] and list(place.found("sam", "zq2")) == ["x"]


def test_a_hidden_file_without_documents_is_not_taken(place: Place, tmp_path: Path) -> None:
    """It is the operator's: what is known of it would be lost, and brought back later."""
    path = tmp_path / "few.jsonl"
    path.write_bytes(b"not json\n")
    place.upload("wri", "other.txt", b"Something zq1.")
    place.ingest([path])
    with store_parts(place.store).database.write() as connection:
        connection.execute(
            "INSERT OR REPLACE INTO files VALUES (?, 'few.jsonl', ?, 'print', '[]', NULL)",
            (place.collection.id, str(path)),
        )
    job = place.upload("wri", "few.jsonl", file_of(".jsonl", {"a": "Mine zq2."}))
    assert (job["documents"], list(place.found("wri", "zq2"))) == (1, ["a"])
    kept = "SELECT path FROM files WHERE collection_id = ? AND relative = 'few.jsonl'"
    assert behind.value(place.store, kept, place.collection.id) == str(path)


def test_the_run_that_is_redacted_is_of_the_erased_document(place: Place) -> None:
    place.upload("bob", "m.txt", b"The board meets on Monday zq1.", "board")
    place.upload("wri", "m.txt", b"The club meets on Friday zq2.")
    runs = {}
    for user in ("bob", "wri"):
        body = {"question": "On which day do they meet?", "collection": place.name}
        with place.served.client(user) as client:
            runs[user] = client.post("/api/v1/chat", json=body).json()["run_id"]
    assert place.delete("wri", "m.txt") == 204
    kept = {}
    for user, run_id in runs.items():
        with place.served.client(user) as client:
            kept[user] = client.get(f"/api/v1/runs/{run_id}").json()
    assert "Monday" in str(kept["bob"]) and "Friday" not in str(kept)
    assert ERASED in str(kept["wri"])
    with place.served.client("wri") as client:
        names = [one["name"] for one in client.get("/api/v1/jobs").json()["jobs"]]
    assert "" in names or "m.txt" in names


GUESSES = ["Hargreaves", "88417", "Lindqvist", "77313"]  # hidden documents say the first two


def names_of_jobs(place: Place, user: str) -> list[str]:
    with place.served.client(user) as client:
        jobs = client.get("/api/v1/jobs").json()["jobs"]
    return [
        one["name"] for one in jobs if (one["collection"], one["kind"]) == (place.name, "upload")
    ]


def test_a_deletion_tells_no_words_of_hidden_documents(place: Place) -> None:
    place.upload("bob", "open.txt", b"The garden opens at nine in June.")
    place.upload("bob", "pay.txt", b"Hargreaves earns 88417 euros.", "board")
    guesses = " ".join(f"Perhaps {one} is it." for one in GUESSES)
    place.upload("wri", "guess.txt", f"{guesses} It is in the garden.".encode())
    question = f"Is it in the garden, or is it {' or '.join(GUESSES)}?"
    with place.served.client("wri") as client:
        talk = client.post("/api/v1/conversations", json={"collection": place.name}).json()
        body = {"question": question, "collection": place.name, **talk}
        body = {key: body[key] for key in ("question", "collection", "conversation_id")}
        run_id = client.post("/api/v1/chat", json=body).json()["run_id"]
        comment = {"run_id": run_id, "rating": "up", "comment": question}
        assert client.post("/api/v1/feedback", json=comment).is_success
        kept = place.store.runs.load(auth_of("wri"), run_id)
        assert place.delete("wri", "guess.txt") == 204
        late = kept.model_copy(update={"run_id": f"late{place.name}"})
        assert place.store.runs.save(late, auth_of("wri"))  # under way while it was deleted
        paths = [f"runs/{run_id}", f"runs/{late.run_id}", "feedback", "runs"]
        paths.append(f"conversations/{talk['conversation_id']}")
        shown = {path: client.get(f"/api/v1/{path}").text for path in paths}
    for path, text in shown.items():
        # What people typed stays as it is: all guesses or none, whatever hidden documents say.
        assert [one for one in GUESSES if one.lower() in text.lower()] in ([], GUESSES), path
    assert "garden" in shown[paths[0]] and "garden" in shown[paths[1]]  # an open document says it


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("taken", [False, True])
def test_jobs_of_a_deleted_document_lose_its_name_and_no_others(
    place: Place, name: str, taken: bool
) -> None:
    if taken:
        place.upload("bob", name, file_of(name, {"a1": "Of the board zq1."}), "board")
    for text in ("Mine zq2.", "A new version zq3."):
        place.upload("wri", name, file_of(name, {"a1": text}))
    place.upload("wri", "other.txt", b"Stays zq4.")
    (own,) = ids_of(name, {"a1": ""})
    assert place.delete("wri", own) == 204
    assert names_of_jobs(place, "wri") == ["other.txt", "", ""]
    assert names_of_jobs(place, "bob") == [name] * taken


def test_jobs_of_others_tell_nothing_of_a_hidden_document(place: Place) -> None:
    place.upload("wri", "stays.txt", b"Open zq3.")
    place.upload("bob", "stays.txt", b"Of the board zq4.", "board")  # replaces it: bob sees it
    place.upload("sam", "m.txt", b"Of sam zq1.", "staff")
    place.upload("wri", "m.txt", b"Of wri zq2.")
    before = names_of_jobs(place, "wri")
    assert place.delete("sam", "m.txt") == 204
    assert place.delete("bob", "stays.txt") == 204
    assert names_of_jobs(place, "wri") == before and "m.txt" in place.view("wri")
    assert names_of_jobs(place, "sam") == [""]


def test_a_run_of_a_document_that_is_erased_meanwhile_is_kept_without_it(place: Place) -> None:
    place.upload("bob", "m.txt", b"The board meets on Monday zq1.", "board")
    place.upload("wri", "m.txt", b"The club meets on Friday zq2.")
    auth = auth_of("wri")
    chunks = place.store.catalogue.visible_documents(auth, place.collection.id)
    (item,) = place.store.catalogue.first_chunks(auth, place.collection.id, chunks).values()
    assert item.document_id == "m.txt"
    shown = item.model_dump(exclude={"document_key"})
    result = {"answer": "", "evidence": [shown]}
    run = run_record(f"late{place.name}", user="wri", collection=place.name, result=result)
    assert not place.store.runs.save(run, auth)
    place.upload("wri", "m.txt", b"Another text zq3.")  # replaced is not erased
    assert not place.store.runs.save(run, auth)
    assert place.delete("wri", "m.txt") == 204
    assert place.store.runs.save(run, auth)
    assert "Friday" not in str(place.store.runs.load(auth, run.run_id))


def test_forget_asks_which_document_of_a_name_is_meant(place: Place, tmp_path: Path) -> None:
    place.upload("bob", "m.txt", b"Of the board zq1.", "board")
    place.upload("wri", "m.txt", b"Of everybody zq2.")
    collection, reader = place.collection, store_parts(place.store).database.read()
    with pytest.raises(AbsentError, match="2 have this id.*key of one") as caught:
        named_document(reader, collection, "m.txt")
    keys = dict(re.findall(r"([0-9a-f]{32}) \('([^']*)'\)", str(caught.value)))
    (second,) = (key for key, name in keys.items() if name != "m.txt")
    gone = named_document(reader, collection, second)
    assert place.store.maintenance.forget(collection, [gone], keep_out=True)["documents"] == 1
    assert place.found("bob", "zq1") and not place.view("wri")
    job = place.upload("wri", "m.txt", b"Of everybody zq2.")
    assert (job["state"], "left out" in job["error"]) == ("failed", True)
    assert named_document(reader, collection, "m.txt").key in keys


def test_a_backup_keeps_what_is_beside_what(place: Place, tmp_path: Path) -> None:
    place.upload("bob", "m.txt", b"Of the board zq1.", "board")
    place.upload("wri", "m.txt", b"Of everybody zq2.")
    make_backup(store_parts(place.store).database, tmp_path / "b", lambda *_: None, key=None)
    (tmp_path / "data").mkdir()
    unpack(tmp_path / "b", tmp_path / "data", key=None, max_gb=1)
    database = Database(tmp_path / "data" / "catalogue.sqlite3")
    shown = Listing(database).list_documents(auth_of("wri"), place.collection, after="", limit=9)
    assert [one["document_id"] for one in shown] == ["m.txt"]
    database.close()


def test_a_job_has_the_rights_of_its_key_by_now(session: Session, served: Served) -> None:
    place = Place(served)
    place.upload("bob", "m.txt", b"Of the board zq1.", "board")
    keys, jobs = Keys(store_parts(session.store).database), Jobs(session, session.settings)
    jobs.close()  # works on nothing: the next one does
    _, key = keys.create("acme", user="wri", roles=frozenset({"board", "writer"}))
    waiting = []
    for key_id, roles in ((key.id, key.auth.roles), ("", frozenset({"board"}))):
        sent = replace_roles(auth_of("wri"), roles)
        job, path = jobs.prepare(sent, place.name, "m.txt", [], key_id)
        path.write_bytes(b"Sent by wri zq2.")
        jobs.start(job)
        waiting.append(job.id)
    keys.revoke(key.id)
    later = Jobs(session, session.settings)
    later.resume()
    sender = replace_roles(auth_of("wri"), key.auth.roles)
    eventually(lambda: all(later.find(sender, one).row.ended for one in waiting))
    later.close()
    revoked, token = (later.find(sender, one).row for one in waiting)
    assert (revoked.state, "expired or revoked" in revoked.error) == ("failed", True)
    assert (token.state, place.found("bob", "zq1")) == ("done", {})  # it had the role: it may


def replace_roles(auth: AuthContext, roles: frozenset[str]) -> AuthContext:
    return auth.model_copy(update={"roles": roles})


def test_who_sent_a_job_is_believed_only_as_it_was_written(store: Store) -> None:
    rows = JobRows(store_parts(store).database, kept=9)
    row = JobRow("j1", "upload", "acme", "wri", "main", "a.txt")
    row.sent_by(auth_of("cat"), "key1")
    rows.save(row)
    (found,) = rows.open()
    assert found.sender() == (auth_of("cat"), "key1")
    with store_parts(store).database.write() as connection:
        connection.execute("UPDATE jobs SET caller = replace(caller, 'cat', 'bob')")
    assert rows.open() == [] and rows.find("j1") is None


def test_the_writer_itself_refuses(shelf: Shelf) -> None:
    """Every way of writing, without the choice of names that goes before it."""
    shelf.write(shelf.row("a", "hidden", acl=["board"]))
    shelf.write(shelf.row("b", "open"))
    before = "\n".join(store_parts(shelf.store).database._writer.iterdump())
    wri, mine = WriteAccess(auth_of("wri")), shelf.row("a", "mine")
    stolen = replace(mine, document_id="c", key="k", file="a")
    attempts = [
        lambda: shelf.intake.write_batch(shelf.collection, Changes([mine]), wri),
        lambda: shelf.intake.write_batch(shelf.collection, Changes([stolen], {"a": "/a"}), wri),
        lambda: shelf.intake.write_batch(shelf.collection, Changes(replaced=["a"]), wri),
        lambda: shelf.intake.write_batch(shelf.collection, Changes(moved={"a": "/x"}), wri),
        lambda: shelf.intake.write_batch(
            shelf.collection, Changes(left_out={"a": [LeftOutRow("a", "a", "a", "why")]}), wri
        ),
        lambda: shelf.maintenance.forget(
            shelf.collection,
            [named_document(store_parts(shelf.store).database.read(), shelf.collection, "a")],
            access=wri,
        ),
    ]
    for attempt in attempts:
        with pytest.raises(InUseError, match="changed meanwhile"):
            attempt()
        assert "\n".join(store_parts(shelf.store).database._writer.iterdump()) == before
    assert shelf.intake.forget_files(shelf.collection, ["a", "b"], wri) == 1
    assert set(shelf.intake.document_hashes(shelf.collection)) == {"a"}
    bob = WriteAccess(auth_of("bob"))
    shelf.intake.write_batch(shelf.collection, Changes([mine]), bob)
    with store_parts(
        shelf.store
    ).database.write() as connection:  # a damaged one may be replaced by who saw it
        connection.execute("INSERT INTO quarantine SELECT id, 'bits' FROM documents")
    shelf.intake.write_batch(shelf.collection, Changes([mine]), bob)


def test_every_ingest_of_the_server_says_who_writes() -> None:
    serve = Path(__file__).parents[2] / "serve"
    for path in serve.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for call in re.findall(r"Pipeline\((.*?)\)\.run", text, re.DOTALL):
            assert "access=WriteAccess(auth" in call, path.name
        assert text.count("Pipeline(") == len(re.findall(r"Pipeline\(.*?\)\.run", text, re.DOTALL))


NAMES = ["a.txt", "b.md", "q.jsonl", "r.jsonl", "t.csv", "z.zip"]
IDS = ["x", "y", "z"]
users = st.sampled_from(list(CALLERS))
reader_sets = st.sampled_from([(), ("board",), ("staff",), ("board", "staff")])
one_id = st.lists(st.sampled_from(IDS), min_size=1, max_size=3, unique=True)
sending = st.tuples(st.just("upload"), users, st.sampled_from(NAMES), one_id, reader_sets)
steps = st.one_of(
    sending,
    sending,
    sending,
    st.tuples(st.just("again"), users, st.sampled_from(NAMES), one_id, reader_sets),
    st.tuples(st.just("same bytes"), users, st.sampled_from(NAMES), one_id, reader_sets),
    st.tuples(st.just("delete"), users, st.sampled_from([*NAMES, *IDS]), one_id, reader_sets),
    st.tuples(st.just("prune"), users, st.sampled_from(NAMES), one_id, reader_sets),
    st.tuples(st.just("operator"), users, st.sampled_from(NAMES), one_id, reader_sets),
    st.tuples(st.just("forget"), users, st.sampled_from([*NAMES, *IDS]), one_id, reader_sets),
)


@dataclass
class World:
    """Write as the steps say, and check after each what everybody sees."""

    place: Place
    folder: Path
    sent: dict[str, tuple[str, bytes, dict[str, str]]] = field(default_factory=dict)

    def rows(self) -> dict[int, tuple[Any, ...]]:
        """Return all documents as they are stored, with their readers and texts, by row id."""
        if self.place.name not in {one.name for one in self.place.store.catalogue.collections()}:
            return {}
        rows = behind.rows(
            self.place.store,
            """SELECT d.*, (SELECT json_group_array(principal) FROM document_acl a
                   WHERE a.document = d.id) AS readers,
               (SELECT group_concat(c.chunk_id || c.text) FROM chunks c WHERE c.document = d.id),
               (SELECT json_array(f.path, f.fingerprint, f.failures) FROM files f
                   WHERE f.collection_id = d.collection_id AND f.relative = d.file)
               FROM documents d WHERE d.collection_id = ?""",
            self.place.collection.id,
        )
        return {row[0]: row for row in rows}

    def hidden(self, user: str) -> dict[int, tuple[Any, ...]]:
        """Return the rows that a caller may not see, worked out from the access lists alone."""
        return {
            key: row
            for key, row in self.rows().items()
            if json.loads(row[-3]) and not set(CALLERS[user]) & set(json.loads(row[-3]))
        }

    def step(self, kind: str, user: str, name: str, ids: list[str], readers: Sequence[str]) -> None:
        done["writes"] += 1
        done[kind] += 1
        before = {one: self.place.view(one) for one in CALLERS}
        hidden = self.hidden(user)
        hidden_names = {MARKED.sub("", row[5]) for row in hidden.values()}
        done["of a hidden name"] += name in hidden_names
        if kind == "delete":
            self.deleted(user, name, before[user])
        elif kind == "forget":
            self.forgotten(name)
        elif kind == "operator":
            self.ingested(name, ids, readers)
        else:
            self.written(kind, user, name, ids, readers, before[user])
        if kind not in ("forget", "operator"):
            now = self.rows()
            for key, row in hidden.items():
                assert now.get(key) == row, f"{kind} by {user} changed {row}"
        for one in CALLERS:
            view = self.place.view(one)
            for word in {found for _, text in view.values() for found in WORDS.findall(text)}:
                own = {shown for shown, (_, text) in view.items() if word in text}
                found = set(self.place.found(one, word))
                assert found and found <= own  # of equal texts a search gives one

    def written(
        self,
        kind: str,
        user: str,
        name: str,
        ids: list[str],
        readers: Sequence[str],
        before: dict[str, tuple[str, str]],
    ) -> None:
        texts = {key: f"Text of {user} zq{next(numbers)}." for key in ids}
        if not name.endswith((".jsonl", ".csv", ".zip")):
            texts = dict([next(iter(texts.items()))])
        content = file_of(name, texts)
        if kind == "again" and user in self.sent:
            name, content, texts = self.sent[user]
        elif kind == "same bytes" and self.sent:
            of = self.sent.get(user) or next(iter(self.sent.values()))
            name, content, texts = f"copy of {of[0]}", of[1], of[2]
        if kind == "prune":
            path = self.folder / f"{next(numbers)}" / name
            path.parent.mkdir()
            path.write_bytes(content)
            access = WriteAccess(auth_of(user))
            acl = frozenset(readers)
            summary = self.place.ingest([path], access=access, acl=acl, prune=True)
            path.unlink()
            assert (summary.failed, summary.documents) == ([], len(texts)), summary
            before = {}
        else:
            job = self.place.upload(user, name, content, *readers)
            self.sent[user] = name, content, texts
            notes = [UNSEEN] if readers and not set(readers) & set(CALLERS[user]) else []
            result = (job["state"], job["error"], job["documents"], job["notes"], job["name"])
            assert result == ("done", "", len(texts), notes, name), job
        self.after(user, name, texts, readers, before)

    def after(
        self,
        user: str,
        name: str,
        texts: Mapping[str, str],
        readers: Sequence[str],
        before: dict[str, tuple[str, str]],
    ) -> None:
        """Compare what the writer sees with what they would see without all that is hidden."""
        sees = not readers or set(readers) & set(CALLERS[user])
        now = self.place.view(user)
        if any(MARKED.search(one) for one in (*before, *now)):
            done["several of a name"] += 1
            told = {WORDS.findall(text)[0] for _, text in now.values()}
            assert not sees or told >= {WORDS.findall(text)[0] for text in texts.values()}
            return
        own = ids_of(name, texts)
        kept = {
            shown: value
            for shown, value in before.items()
            if not (value[0] == name or value[0].startswith((f"{name}#", f"{name}/")))
            and shown not in own
        }
        assert {one: now.get(one) for one in kept} == kept
        assert set(now) == set(kept) | (set(own) if sees else set())
        for one in own if sees else ():
            assert own[one] in now[one][1]

    def deleted(self, user: str, name: str, before: dict[str, tuple[str, str]]) -> None:
        assert self.place.delete(user, name) == (204 if name in before else 404)
        now = self.place.view(user)
        gone = before.pop(name, None)
        assert gone is None or gone not in now.values()
        assert sorted(now.values()) == sorted(before.values())

    def forgotten(self, name: str) -> None:
        try:
            found = named_document(
                store_parts(self.place.store).database.read(), self.place.collection, name
            )
        except Exception as error:
            assert isinstance(error, AbsentError) or "collection" in str(error)
            return
        before = self.rows()
        self.place.store.maintenance.forget(self.place.collection, [found])
        assert self.rows() == {key: row for key, row in before.items() if key != found.row_id}

    def ingested(self, name: str, ids: list[str], readers: Sequence[str]) -> None:
        texts = {key: f"Text of the operator zq{next(numbers)}." for key in ids}
        if not name.endswith((".jsonl", ".csv", ".zip")):
            texts = dict([next(iter(texts.items()))])
        path = self.folder / f"{next(numbers)}" / name
        path.parent.mkdir()
        path.write_bytes(file_of(name, texts))
        summary = self.place.ingest([path], acl=frozenset(readers))
        path.unlink()
        assert (summary.failed, summary.documents) == ([], len(texts)), summary


@pytest.fixture(scope="module", autouse=True)
def told() -> Iterator[None]:
    yield
    if EXAMPLES > 3:
        print(dict(done))  # noqa: T201


@settings(
    max_examples=examples(EXAMPLES, quick=1),
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(script=st.lists(steps, min_size=STEPS, max_size=STEPS))
def test_no_write_touches_what_its_writer_does_not_see(
    served: Served, tmp_path_factory: pytest.TempPathFactory, script: list[Any]
) -> None:
    world = World(Place(served), tmp_path_factory.mktemp("script"))
    for step in script:
        world.step(*step)


def test_ids_stay_when_a_document_is_deleted_and_sent_again(served: Served) -> None:
    place = Place(served)
    place.upload("bob", "taken.txt", b"Of the board zq1.", "board")

    def ids() -> list[str]:
        body = {"query": "zq2", "collection": place.name, "k": 50}
        with served.client("wri") as client:
            found = client.post("/api/v1/search", json=body).json()["results"]
        return [one["chunk_id"] for one in found]

    for name in ("taken.txt", "free.txt"):
        place.upload("wri", name, b"Sent by wri zq2.")
        before = ids()
        assert len(before) == 1 and place.delete("wri", name) == 204
        place.upload("wri", name, b"Sent by wri zq2.")
        assert ids() == before
        assert place.delete("wri", name) == 204
