"""What a server records: everything that was given and changed, nothing that was said."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import SECONDS, error_of, eventually, running

from app.session import Session
from core.auth import AuthContext
from core.errors import OperatorError
from core.settings import load_settings
from serve.access.audit import Audit, AuditWriter
from serve.access.auth import AuthenticatedCaller as Entered
from serve.runs.runner import SessionRunner
from serve.services import AppState, make_app_state
from stores.accounts.audit import AuditEntry, AuditLog
from stores.accounts.keys import Keys
from stores.sqlite.database import Database
from stores.store import parts

TEXT = "How high is the flame of a candle?"
QUESTION = {"question": TEXT, "collection": "guide"}
ANN = AuthContext(tenant="acme", user="ann")
OVER = {
    "chat": ("/api/v1/chat", QUESTION),
    "stream": ("/api/v1/chat", {**QUESTION, "stream": True}),
    "agent": ("/agent/invoke", {"input": QUESTION}),
    "openai": (
        "/v1/chat/completions",
        {"model": "carrel:guide", "messages": [{"role": "user", "content": TEXT}]},
    ),
}


def audited(session: Session, **changes: Any) -> AppState:
    """Return services whose record is written with other settings."""
    settings = session.settings.model_copy(update=changes)
    audit = Audit(AuditLog(parts(session.store).database, settings), settings)
    services = make_app_state(session)
    return replace(services, audit=audit, runner=SessionRunner(session, settings, [audit]))


class Caller:
    """A user of their own, with a key, on a server."""

    def __init__(self, services: AppState, url: str, user: str, *roles: str) -> None:
        keys = Keys(parts(services.session.store).database)
        self.services, self.user = services, user
        self.secret, self.key = keys.create("acme", user=user, roles=frozenset(roles))
        headers = {"Authorization": f"Bearer {self.secret}"}
        self.http = httpx.Client(base_url=url, headers=headers, timeout=SECONDS, verify=False)

    def rows(self) -> list[dict[str, Any]]:
        self.services.audit.flush()
        found = self.services.audit.log.newest("acme", limit=200)
        return [row for row in reversed(found) if row["user"] == self.user]


@pytest.fixture(scope="module")
def services(session: Session) -> AppState:
    return audited(session)


@pytest.fixture(scope="module")
def url(services: AppState) -> Iterator[str]:
    with running(services) as url:
        yield url


@pytest.mark.parametrize("over", OVER)
def test_an_answer_is_recorded_with_all_its_retrievals(
    services: AppState, url: str, over: str
) -> None:
    caller = Caller(services, url, f"asks.{over}")
    path, body = OVER[over]
    with caller.http as client:
        assert client.post(path, json=body).status_code == 200
        run = client.get("/api/v1/runs").json()["runs"][0]["run_id"]
        trail = client.get(f"/api/v1/runs/{run}").json()["trail"]
    login, *retrievals, answer = caller.rows()
    assert [login["kind"], answer["kind"]] == ["login", "answer"]
    assert login["facts"] == {"how": "key", "key": caller.key.id, "address": "127.0.0.1"}
    assert answer["facts"]["run"] == run
    assert (answer["facts"]["refused"], answer["facts"]["collection"]) == (False, "guide")
    calls = [step for step in trail if step["tool"]]
    assert len(retrievals) == len(calls) > 0
    for row, step in zip(retrievals, calls, strict=True):
        facts = row["facts"]
        assert (row["kind"], facts["tool"]) == ("retrieval", step["tool"])
        assert facts["evidence"] == [one for one, _ in step["evidence"]]
        assert facts["filter"]["tenant"] == "acme"
        assert facts["ask"] == answer["facts"]["ask"]
    said = json.dumps(caller.rows())
    assert "flame" not in said and "42 mm" not in said
    assert caller.secret not in said
    assert not services.audit.log.verify().problem


def test_a_search_is_recorded_with_what_it_found(services: AppState, url: str) -> None:
    caller = Caller(services, url, "searches")
    with caller.http as client:
        sent = {"query": "чайник", "collection": "guide", "pipeline": "keyword"}
        results = client.post("/api/v1/search", json=sent).json()["results"]
    _, row = caller.rows()
    assert row["facts"]["evidence"] == [one["chunk_id"] for one in results]
    assert (row["facts"]["tool"], row["facts"]["filter"]["user"]) == ("search_text", "searches")
    assert "чайник" not in json.dumps(row, ensure_ascii=False)


@pytest.mark.parametrize(("kept", "fact"), [("text", "question"), ("hash", "question_hash")])
def test_questions_are_recorded_when_the_operator_says_so(
    session: Session, kept: str, fact: str
) -> None:
    services = audited(session, audit_questions=kept)
    with running(services) as url:
        caller = Caller(services, url, f"asks.{kept}")
        with caller.http as client:
            client.post("/api/v1/chat", json=QUESTION)
    found = caller.rows()[-1]["facts"][fact]
    assert (found == TEXT) == (kept == "text")
    if kept == "hash":
        assert (
            found == services.audit.log.pseudonym(TEXT) != services.audit.log.pseudonym(TEXT + " ")
        )


def test_nothing_is_recorded_when_it_is_off(session: Session) -> None:
    services = audited(session, audit=False)
    with running(services) as url:
        caller = Caller(services, url, "unseen")
        with caller.http as client:
            assert client.post("/api/v1/chat", json=QUESTION).status_code == 200
    assert caller.rows() == []


def test_uploads_deletions_and_passages_are_recorded(services: AppState, url: str) -> None:
    caller = Caller(services, url, "uploads", "writer", "editor")
    with caller.http as client:
        sent = {"collection": "audited", "name": "fern.md", "role": "editor"}
        job = client.post("/api/v1/documents", params=sent, content=b"# Ferns\n\nFerns grow.")
        where = f"/api/v1/jobs/{job.json()['id']}"
        eventually(lambda: client.get(where).json()["state"] in ("done", "failed"))
        named = {"collection": "audited", "document_id": "fern.md"}
        read = client.get("/api/v1/documents/passages", params=named).json()["passages"]
        assert client.delete("/api/v1/documents", params=named).status_code == 204
    _, upload, reading, deletion = caller.rows()
    assert [upload["kind"], reading["kind"], deletion["kind"]] == [
        "upload",
        "retrieval",
        "deletion",
    ]
    named = services.audit.log.document(
        "fern.md"
    )  # by its pseudonym: the row outlives the document
    assert "fern" not in str(named) and set(named) == {"document_hash"}
    facts = {"job": job.json()["id"], "collection": "audited", **named}
    assert upload["facts"] == {**facts, "readers": ["editor"]}
    assert reading["facts"]["evidence"] == [one["chunk_id"] for one in read] != []
    assert reading["facts"]["document_hash"] == named["document_hash"]
    assert deletion["facts"] == {"collection": "audited", **named}
    with Caller(services, url, "asks", "admin").http as client:
        wanted = {"document": "fern.md", "limit": 9}
        found = client.get("/api/v1/audit", params=wanted).json()["events"]
        other = client.get("/api/v1/audit", params={"document": "fern"}).json()["events"]
    assert [row["kind"] for row in found] == ["deletion", "retrieval", "upload"]
    assert other == []


def test_wrong_keys_are_recorded_without_them(services: AppState, url: str) -> None:
    wrong = f"Bearer carrel_{'0' * 12}_{'7' * 64}"
    assert httpx.get(f"{url}/api/v1/runs", headers={"Authorization": wrong}).status_code == 401
    assert httpx.get(f"{url}/api/v1/runs").status_code == 401  # no key at all is no attempt
    services.audit.flush()
    (row,) = services.audit.log.newest(None, kind="login_failed", limit=1)
    assert row["facts"] == {"address": "127.0.0.1"}
    assert (row["tenant"], row["user"]) == ("", "")


def test_a_login_is_recorded_once_in_a_while(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = Audit(AuditLog(parts(session.store).database, session.settings), session.settings)
    auth = AuthContext(tenant="acme", user="token.user")
    now = [0.0]
    monkeypatch.setattr("serve.access.audit.time.monotonic", lambda: now[0])
    for minutes in (0, 1, 59, 60, 61):
        now[0] = minutes * 60
        audit.note_login(Entered(auth, "token"), "127.0.0.1")
    monkeypatch.undo()
    audit.close()
    found = audit.log.newest("acme", kind="login", limit=200)
    assert [row["user"] for row in found].count("token.user") == 2


def test_admins_read_their_own_tenant_page_by_page(services: AppState, url: str) -> None:
    admin = Caller(services, url, "reads.it", "admin")
    zed = AuthContext(tenant="zoo", user="zed")
    services.audit.record("login", zed)
    for number in range(5):
        services.audit.record("deletion", ANN, document=f"d{number}")
    services.audit.record("login_failed", None)
    with admin.http as client:
        seen: list[dict[str, Any]] = []
        before = None
        while True:
            params = {"limit": 2, "kind": "deletion"} | ({"before": before} if before else {})
            page = client.get("/api/v1/audit", params=params).json()
            seen += page["events"]
            before = page["next"]
            if before is None:
                break
        everything = client.get("/api/v1/audit", params={"limit": 500}).json()["events"]
        bad = client.get("/api/v1/audit", params={"limit": 0})
    assert [one["facts"]["document"] for one in seen[:5]] == ["d4", "d3", "d2", "d1", "d0"]
    assert len({one["seq"] for one in seen}) == len(seen)
    assert {one["tenant"] for one in everything} == {"acme"}
    assert error_of(bad)["code"] == "invalid"


def test_what_cannot_be_recorded_is_not_answered(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = audited(session)
    with running(services) as url:
        caller = Caller(services, url, "unlucky")
        append = services.audit.log.append

        def full(rows: Any) -> Any:
            raise OSError("database or disk is full")

        with caller.http as client:
            monkeypatch.setattr(services.audit.log, "append", full)
            refused = [
                client.post("/api/v1/chat", json=QUESTION),
                client.post("/api/v1/search", json={"query": "flame", "collection": "guide"}),
            ]
            events = client.post("/api/v1/chat", json={**QUESTION, "stream": True}).text
            monkeypatch.setattr(services.audit.log, "append", append)
            good = client.post("/api/v1/chat", json=QUESTION)
    for response in refused:
        assert (response.status_code, error_of(response)["code"]) == (503, "unavailable")
        assert "disk" not in response.text and "42" not in error_of(response)["message"]
    assert "event: error" in events and "event: sentence" not in events
    assert "42 mm" not in events and good.status_code == 200
    rows = caller.rows()  # what was held is written later
    searches = [row for row in rows if row["kind"] == "retrieval" and "ask" not in row["facts"]]
    asked = {row["facts"].get("ask") for row in rows if row["kind"] == "retrieval"} - {None}
    assert (rows[0]["kind"], len(searches), len(asked)) == ("login", 1, 3)
    assert [row["kind"] for row in rows].count("answer") == 2


@pytest.fixture
def log(tmp_path: Path) -> Iterator[AuditLog]:
    with closing(Database(tmp_path / "catalogue.sqlite3")) as database:
        yield AuditLog(database, load_settings()[0])


def test_many_who_wait_share_writes_and_lose_none(log: AuditLog) -> None:
    writer = AuditWriter(log, linger=5, days=0)

    def work(number: int) -> None:
        for turn in range(10):
            writer.add(AuditEntry("retrieval", ANN, {"by": number, "turn": turn}))
            writer.wait(writer.add(AuditEntry("answer", ANN, {"by": number, "turn": turn})))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close()
    verdict = log.verify()
    assert (verdict.problem, verdict.rows) == ("", 160)
    for number in range(8):
        own = [row for row in log.newest(None, limit=500) if row["facts"]["by"] == number]
        assert [row["facts"]["turn"] for row in reversed(own)] == [n // 2 for n in range(20)]


def test_what_nobody_waits_for_is_written_at_the_end(log: AuditLog) -> None:
    writer = AuditWriter(log, linger=60, days=0)
    for number in range(3):
        writer.add(AuditEntry("login", ANN, {"number": number}))
    writer.close()
    assert log.verify().rows == 3
    writer.wait(writer.add(AuditEntry("login", ANN, {})))  # and it begins again
    writer.close()
    assert log.verify().rows == 4


def test_rows_beyond_what_is_held_are_counted(
    log: AuditLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serve.access.audit.MOST_QUEUED", 3)
    append, broken = log.append, threading.Event()
    broken.set()

    def sometimes(rows: Any) -> Any:
        if broken.is_set():
            raise OSError("full")
        return append(rows)

    monkeypatch.setattr(log, "append", sometimes)
    writer = AuditWriter(log, linger=60, days=0)
    for number in range(5):
        writer.add(AuditEntry("login", ANN, {"number": number}))
    with pytest.raises(OperatorError, match="cannot record"):
        writer.wait()
    broken.clear()
    writer.wait()
    writer.close()
    lost, *kept = [row["facts"] for row in reversed(log.newest(None, limit=9))]
    assert lost == {"rows": 2}
    assert [one["number"] for one in kept] == [2, 3, 4]
