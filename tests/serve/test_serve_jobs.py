"""Jobs outlive the server: what waits or was at work goes on, what ended stays listed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from serving import Served, error_of, eventually
from uploading import finished, upload, uploaded

from app.session import Session
from core.auth import AuthContext
from serve.jobs import Job, Jobs
from stores.runlog.jobs import JobRow, JobRows
from stores.store import parts

WIM = AuthContext(tenant="acme", user="wim")


@pytest.fixture
def rows(session: Session) -> JobRows:
    return JobRows(parts(session.store).database, kept=1000)


@pytest.fixture
def jobs(session: Session) -> Iterator[Jobs]:
    made = Jobs(session, session.settings)
    yield made
    made.close()


def left_behind(rows: JobRows, folder: Path, job_id: str, text: bytes, **values: object) -> JobRow:
    """Leave what a server leaves that is killed after an upload was taken."""
    row = JobRow(job_id, "upload", "acme", "wim", "resumed", f"{job_id}.txt", bytes=len(text))
    row.sent_by(WIM, "")
    for name, value in values.items():
        setattr(row, name, value)
    (folder / job_id).mkdir(parents=True)
    (folder / job_id / row.name).write_bytes(text)
    rows.save(row)
    return row


def ended(jobs: Jobs, job_id: str) -> Job:
    eventually(lambda: jobs.find(WIM, job_id).row.ended)
    return jobs.find(WIM, job_id)


def test_what_was_left_is_resumed(jobs: Jobs, rows: JobRows, uploads: Path) -> None:
    left_behind(rows, uploads, "left1", b"A hare is 60 cm long.")
    left_behind(rows, uploads, "left2", b"A hare runs.", state="running", attempts=1)
    (uploads / "nobodys").mkdir()
    jobs.resume()
    for job_id in ("left1", "left2"):
        job = ended(jobs, job_id).describe()
        assert (job["state"], job["documents"], job["error"]) == ("done", 1, "")
    eventually(lambda: list(uploads.iterdir()) == [])  # a moment after its job is done
    again = [job.row.id for job in jobs.newest(WIM, 20)]  # other tests share the session
    assert [one for one in again if one.startswith("left")] == ["left2", "left1"]


def test_what_cannot_be_resumed_says_why(jobs: Jobs, rows: JobRows, uploads: Path) -> None:
    left_behind(rows, uploads, "cut", b"whole", bytes=10)
    left_behind(rows, uploads, "fatal", b"x", state="running", attempts=2)
    jobs.resume()
    cut, fatal = ended(jobs, "cut"), ended(jobs, "fatal")
    assert (cut.row.state, fatal.row.state) == ("failed", "failed")
    assert "send it again" in cut.row.error and "2 times" in fatal.row.error
    assert not list(uploads.iterdir())


def test_a_stopped_server_leaves_its_upload_to_the_next(
    session: Session, rows: JobRows, uploads: Path
) -> None:
    first = Jobs(session, session.settings)
    first.close()  # no thread takes anything up
    job, path = first.prepare(WIM, "resumed", "stay.txt", ["editor"])
    path.write_bytes(b"A weasel waits.")
    first.start(job)
    first.close()
    assert path.is_file() and rows.find(job.row.id)
    second = Jobs(session, session.settings)
    second.resume()
    done = ended(second, job.row.id)
    second.close()
    assert (done.row.state, done.row.roles) == ("done", frozenset({"editor"}))


def test_an_upload_that_waits_can_be_cancelled(session: Session, uploads: Path) -> None:
    jobs = Jobs(session, session.settings)
    jobs.close()
    job, path = jobs.prepare(WIM, "resumed", "never.txt", [])
    path.write_bytes(b"x")
    jobs.start(job)
    jobs.cancel(WIM, job.row.id)
    assert jobs.find(WIM, job.row.id).row.state == "cancelled"
    assert not path.exists()
    jobs.cancel(WIM, job.row.id)  # once more changes nothing
    assert jobs.find(WIM, job.row.id).row.state == "cancelled"


def test_an_upload_at_work_can_be_cancelled(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    def ingest(session: Session, row: JobRow, path: Path, progress: object, *_: object) -> None:
        jobs.cancel(WIM, row.id)
        assert callable(progress)
        progress("files", 0, 1)
        pytest.fail("it went on")

    monkeypatch.setattr("serve.jobs.ingest_upload", ingest)
    job, path = jobs.prepare(WIM, "resumed", "half.txt", [])
    path.write_bytes(b"x")
    jobs.start(job)
    assert ended(jobs, job.row.id).row.state == "cancelled"


def test_only_so_many_ended_jobs_are_kept(session: Session) -> None:
    rows = JobRows(parts(session.store).database, kept=3)
    for number in range(6):
        rows.save(JobRow(f"kept{number}", "upload", "many", "u", "c", "n.txt", state="done"))
    rows.save(JobRow("open", "upload", "many", "u", "c", "n.txt"))
    assert [row.id for row in rows.newest("many", None, 9)] == ["open", "kept5", "kept4", "kept3"]
    rows.save(JobRow("open", "upload", "many", "u", "c", "n.txt", state="cancelled"))


def test_who_sees_which_jobs(served: Served) -> None:
    uploaded(served, "one.txt", "A one is one.", collection="listed")
    uploaded(served, "two.txt", "A two is two.", kind="admin", collection="listed")

    def seen(kind: str, **params: str) -> set[str]:
        with served.client(kind) as client:
            found = client.get("/api/v1/jobs", params=params).json()["jobs"]
        return {job["name"] for job in found if job["collection"] == "listed"}

    assert seen("writer") == {"one.txt"}
    assert seen("admin") == {"two.txt"}
    assert seen("admin", all="true") == {"one.txt", "two.txt"}
    assert seen("other tenant") == seen("reader") == set()
    with served.client("writer") as client:
        refused = client.get("/api/v1/jobs", params={"all": "true"})
    assert (refused.status_code, error_of(refused)["code"]) == (403, "forbidden")


def test_the_names_of_failed_uploads_are_text(served: Served) -> None:
    name = "<img src=x onerror=alert(1)>.pdf"
    job = finished(served, upload(served, name, b"no pdf").json())
    assert (job["state"], job["name"]) == ("failed", name)
    with served.client("writer") as client:
        response = client.get("/api/v1/jobs")
    assert response.headers["content-type"] == "application/json"
    assert name in [one["name"] for one in response.json()["jobs"]]


def test_an_empty_upload_is_refused(served: Served, uploads: Path) -> None:
    response = upload(served, "none.txt", b"")
    assert (response.status_code, error_of(response)["code"]) == (400, "empty")
    assert not uploads.exists() or list(uploads.iterdir()) == []


def test_an_erasure_that_was_left_is_finished_at_the_start(jobs: Jobs, session: Session) -> None:
    from stores.erasure.rewriting import note_erasure

    with parts(session.store).database.write() as connection:
        note_erasure(connection, [], 1)
    assert session.store.maintenance.pending_erasure()
    jobs.resume()
    eventually(lambda: session.store.maintenance.pending_erasure() is None)


def test_a_job_that_was_erased_does_not_come_back(rows: JobRows, session: Session) -> None:
    row = JobRow("gone1", "upload", "gone", "wim", "resumed", "secret.txt", state="running")
    rows.save(row)
    session.store.maintenance.forget_tenant("gone")
    row.state = "done"
    rows.save(row)
    assert rows.find("gone1") is None
    session.store.maintenance.tidy()


def test_a_tree_is_built_as_a_job(served: Served) -> None:
    uploaded(served, "stoat.md", "# Stoat\n\nA stoat changes its coat in winter, and it is white.")
    params = {"collection": "uploaded"}
    with served.client("writer") as client:
        sent = client.post("/api/v1/tree", params=params)
        assert (sent.status_code, sent.json()["kind"]) == (202, "tree")
        job = finished(served, sent.json())
        assert (job["state"], job["error"], job["done"], job["total"]) == ("done", "", 0, 0)
        whole = client.get("/api/v1/tree", params=params | {"depth": 0}).json()
        assert job["tree"].pop("seconds") > 0
        assert job["tree"] == whole
