"""Sources over HTTP: a caller's own, on the network alone, and synced when their time comes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from local_web import Site
from serving import Served, eventually
from uploading import finished

from app.session import Session
from core.auth import AuthContext
from ingest.connectors import network
from serve.jobs import Jobs
from stores.runlog.sources import SourceRow

BODY = {"name": "birds", "address": "https://93.184.216.34/docs/", "collection": "birds"}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"address": "/etc"}, "on the network"),
        ({"address": "FILE:///etc"}, "on the network"),
        ({"address": "git+file:///etc"}, "on the network"),
        ({"address": "loader:os.system"}, "on the network"),
        ({"address": "imaps://ann@93.184.216.34/INBOX"}, "on the network"),
        ({"address": "https://ann@93.184.216.34/"}, "no secret"),
        ({"address": "http://169.254.169.254/latest"}, "public address"),
        ({"address": "http://[::1]/"}, "public address"),
        ({"every": 5}, "at least 60 seconds"),
        ({"acl": ["not a role"]}, "role is 1 to 64"),
        ({"name": "../x"}, "a source is 1 to 64"),
    ],
)
def test_what_a_caller_may_not_add(served: Served, changed: dict[str, object], why: str) -> None:
    with served.client("writer") as client:
        answer = client.post("/api/v1/sources", json=BODY | changed)
        assert answer.status_code == 400 and why in answer.text
        assert client.get("/api/v1/sources").json() == {"sources": []}
        assert client.post("/api/v1/sources", json=BODY | {"private": True}).status_code == 422


def test_a_source_of_a_caller(served: Served, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server of the test stands for one of the public internet."""
    monkeypatch.setattr(network, "is_public", lambda text: True)
    monkeypatch.setenv("CARREL_SOURCE_BIRDS_TOKEN", "of-the-operator")
    site.page("/a.html", "The heron wades in the marsh.")
    sent = {**BODY, "address": f"{site.url}/a.html", "acl": ["board"]}
    with served.client("writer") as client, served.client("admin") as other:
        assert client.post("/api/v1/sources", json=sent).status_code == 201
        assert "source of this name" in client.post("/api/v1/sources", json=sent).text
        assert other.get("/api/v1/sources").json() == {"sources": []}
        [seen] = other.get("/api/v1/sources", params={"all": "true"}).json()["sources"]
        assert seen["name"] == "birds" and seen["user"] != ""
        assert client.get("/api/v1/sources", params={"all": "true"}).status_code == 403
        for call in (other.delete, lambda path: other.post(f"{path}/sync")):
            assert call("/api/v1/sources/birds").status_code == 404
        job = client.post("/api/v1/sources/birds/sync")
        assert job.status_code == 202 and job.json()["kind"] == "sync"
        done = finished(served, job.json())
        assert (done["state"], done["documents"], done["name"]) == ("done", 1, "birds")
        assert client.get("/api/v1/sources").json()["sources"][0]["state"] == "ok"
        assert all(value == "" for _, name, value in site.headers if name == "Authorization")
        del site.pages["/a.html"]  # its reader is another, and it goes all the same
        assert finished(served, client.post("/api/v1/sources/birds/sync").json())["state"] == "done"
        assert client.delete("/api/v1/sources/birds").status_code == 204
        assert client.get("/api/v1/sources").json() == {"sources": []}


def test_sources_whose_time_has_come_are_synced(session: Session, tmp_path: Path) -> None:
    (folder := tmp_path / "birds").mkdir()
    (folder / "heron.md").write_text("The heron wades.")
    rows, jobs = session.accounts.sources(), Jobs(session, session.settings)
    rows.add(SourceRow("acme", "", "birds", "birds", str(folder), every=3600))
    rows.add(SourceRow("acme", "", "by-hand", "birds", str(folder)))
    jobs.sync_due(time.time())
    jobs.sync_due(time.time())  # waits or works already
    try:
        eventually(lambda: rows.find("acme", "birds").state == "ok")
        assert rows.find("acme", "by-hand").state == "new"
        assert rows.due(time.time()) == []
        assert [one.name for one in rows.due(time.time() + 3601)] == ["birds"]
        admin = AuthContext(tenant="acme", user="ada")
        again = jobs.sync(rows.find("acme", "birds"))
        eventually(lambda: again.row.ended)

        def states() -> list[str]:
            made = [one.row for one in jobs.newest(admin, 99, everyone=True)]
            return [one.state for one in made if one.user == "command.line"]

        eventually(lambda: states() == ["done"])  # a moment after its job has ended
    finally:
        jobs.close()


def test_a_folder_is_synced_when_it_changes(session: Session, tmp_path: Path) -> None:
    (folder := tmp_path / "birds" / "deep").mkdir(parents=True)
    rows, jobs = session.accounts.sources(), Jobs(session, session.settings)
    row = SourceRow("acme", "", "watched", "watched", str(folder.parent), every=3600)
    row.synced = time.time()
    rows.add(row)
    try:
        jobs.sync_due(time.time())  # begins to watch
        (folder / "heron.md").write_text("The heron wades.")

        def is_read() -> bool:
            jobs.sync_due(time.time())
            return rows.find("acme", "watched").state == "ok"

        eventually(is_read)
        known = rows.items(row)
        assert [one.file for one in known.values()] == ["watched/deep/heron.md"]
    finally:
        rows.remove(row)
        jobs.close()


def test_a_source_of_a_revoked_key_reads_nothing(session: Session) -> None:
    rows, jobs = session.accounts.sources(), Jobs(session, session.settings)
    row = SourceRow("acme", "", "late", "birds", "https://93.184.216.34/", every=60)
    row.sent_by(AuthContext(tenant="acme", user="wim"), "nokey")
    rows.add(row)
    jobs.sync_due(time.time())
    try:
        eventually(lambda: rows.find("acme", "late").state == "failed")
        assert "expired or revoked" in rows.find("acme", "late").message
    finally:
        jobs.close()
