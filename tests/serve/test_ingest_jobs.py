"""Ingests of the queue: taken up from beside, set aside file by file, taken over from the dead."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import eventually

from app.session import Session
from ingest.discover import SourceFile
from serve.errors import NotFound
from serve.jobs import Jobs
from stores.runlog.jobs import JobRow, JobRows, new_ingest
from stores.store import parts

TENANT = "queue"
FILES = {"a.txt": "A heron is 90 cm tall.", "b.txt": "A crane is tall.", "c.txt": "A stork nests."}


@pytest.fixture
def rows(session: Session) -> JobRows:
    return JobRows(parts(session.store).database, kept=1000)


@pytest.fixture
def jobs(session: Session) -> Iterator[Jobs]:
    made = Jobs(session, session.settings)
    yield made
    made.close()


def enqueued(rows: JobRows, folder: Path, collection: str, **values: object) -> JobRow:
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    row = new_ingest(TENANT, collection, [folder], frozenset(), None, prune=False)
    for name, value in values.items():
        setattr(row, name, value)
    rows.save(row)
    return row


def ended(rows: JobRows, job_id: str) -> JobRow:
    found: list[JobRow] = []

    def is_ended() -> bool:
        row = rows.find(job_id)
        if row is not None and row.ended:
            found.append(row)
        return bool(found)

    eventually(is_ended)
    return found[0]


def test_what_another_process_enqueued_is_taken_up(
    jobs: Jobs, rows: JobRows, tmp_path: Path
) -> None:
    jobs.resume()
    (tmp_path / "poison.pdf").write_bytes(b"%PDF-1.7 nothing")
    row = enqueued(rows, tmp_path, "beside")
    done = ended(rows, row.id)
    assert (done.state, done.documents) == ("done", 3)
    [reason] = done.notes
    assert reason.startswith("poison.pdf: ")
    assert str(tmp_path) not in done.caller  # paths may name what is forgotten later
    eventually(jobs.is_empty)


def test_what_a_dead_worker_left_is_taken_over(jobs: Jobs, rows: JobRows, tmp_path: Path) -> None:
    row = enqueued(rows, tmp_path, "over", state="running", attempts=1)
    assert rows.counts(TENANT, None)["running"] == 1  # until it is done or set aside
    jobs.resume()
    assert ended(rows, row.id).state == "done"


def test_the_file_at_which_processes_end_is_set_aside(
    jobs: Jobs, rows: JobRows, tmp_path: Path
) -> None:
    left = ["b.txt: the process ended while it was read"] * 2
    row = enqueued(rows, tmp_path, "ends", state="running", attempts=4, notes=left)
    jobs.resume()
    done = ended(rows, row.id)
    assert (done.state, done.documents) == ("done", 2)
    assert done.notes == ["b.txt: the process ended each time it was read"]
    hopeless = enqueued(rows, tmp_path, "hopeless", state="running", attempts=40)
    jobs.resume()
    assert "the server ended 40 times" in ended(rows, hopeless.id).error


def test_an_unexpected_error_sets_its_file_aside(
    jobs: Jobs, session: Session, rows: JobRows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest = session.ingest

    def fails(target: Any, given: list[Any], **more: Any) -> Any:
        if not isinstance(given[0], SourceFile) or given[0].relative == "b.txt":
            raise ZeroDivisionError("poison")
        return ingest(target, given, **more)

    monkeypatch.setattr(session, "ingest", fails)
    row = enqueued(rows, tmp_path, "unexpected")
    jobs.resume()
    done = ended(rows, row.id)
    assert (done.state, done.documents) == ("done", 2)
    assert done.notes == ["b.txt: something unexpected (poison)"]


def test_nothing_usable_fails_and_says_why(jobs: Jobs, rows: JobRows, tmp_path: Path) -> None:
    (tmp_path / "bad.pdf").write_bytes(b"nothing")
    row = new_ingest(TENANT, "bad", [tmp_path / "bad.pdf"], frozenset(), None, prune=False)
    rows.save(row)
    gone = new_ingest(TENANT, "bad", [tmp_path / "gone.txt"], frozenset(), None, prune=False)
    rows.save(gone)
    jobs.resume()
    failed = ended(rows, row.id)
    assert failed.state == "failed" and "bad.pdf" in failed.error
    assert "no such file or folder" in ended(rows, gone.id).error


def test_a_job_of_another_version_is_one_line(jobs: Jobs, rows: JobRows, tmp_path: Path) -> None:
    row = enqueued(rows, tmp_path, "newer", caller='{"auth": {"tenant": "queue"}, "key": ""}')
    kind = enqueued(rows, tmp_path, "newer", kind="reindex")
    jobs.resume()
    for job_id in (row.id, kind.id):
        assert "a job of another version of Carrel" in ended(rows, job_id).error


def test_a_job_is_cancelled_by_the_operator(jobs: Jobs, rows: JobRows, tmp_path: Path) -> None:
    row = enqueued(rows, tmp_path, "cancelled")
    jobs.cancel_any(row.id)
    assert ended(rows, row.id).state == "cancelled"
    with pytest.raises(NotFound, match="no job of this id"):
        jobs.cancel_any(row.id)
