"""Servers and workers of one catalogue: one worker a job, and what is of a caller is everywhere."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from postgres_server import new_catalogue
from serving import eventually, running

from app.session import Session
from core.auth import AuthContext
from core.errors import InUseError
from core.settings import Settings, load_settings
from serve.access.limits import CallerLimits
from serve.access.sign_in import SharedSessions
from serve.errors import LimitExceeded
from serve.runs.observers import Claims
from serve.services import make_app_state
from serve.shared_jobs import LeasedJob, SharedJobs, make_jobs
from stores.coordination import LEASE_S, SharedCoordination
from stores.index.port import IndexUnavailableError
from stores.postgres.connection import PostgresUnavailableError
from stores.runlog.jobs import JobRow, JobRows, new_ingest

TENANT = "queue"
ANN = AuthContext(tenant=TENANT, user="ann", roles=frozenset({"writer"}))


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("several")
    given = {"data": folder / "data", "catalogue": new_catalogue(), "reasoner": "rules"}
    return load_settings({**given, "embedder": "embedded", "serve_ask_rate": 2})[0]


@pytest.fixture(scope="module")
def pair(settings: Settings) -> Iterator[list[Session]]:
    with (
        Session(settings, create=True) as one,
        Session(settings) as other,
    ):
        yield [one, other]


@pytest.fixture
def workers(pair: list[Session]) -> Iterator[list[SharedJobs]]:
    made = [make_jobs(one, one.settings) for one in pair]
    assert all(isinstance(one, SharedJobs) for one in made)
    yield made  # type: ignore[misc]
    for one in made:
        one.close()


@pytest.fixture
def rows(pair: list[Session]) -> JobRows:
    return pair[0].accounts.jobs(100)


def shared(session: Session) -> SharedCoordination:
    found = session.maintenance.coordination
    assert isinstance(found, SharedCoordination)
    return found


def enqueued(rows: JobRows, folder: Path, *names: str, **values: Any) -> list[JobRow]:
    made = []
    for name in names:
        (folder / name).write_text(f"# {name}\n\nThe heron {name} is tall.", encoding="utf-8")
        row = new_ingest(TENANT, "birds", [folder / name], frozenset(), None, prune=False)
        for field, value in values.items():
            setattr(row, field, value)
        rows.save(row)
        made.append(row)
    return made


def state(rows: JobRows, row: JobRow) -> str:
    found = rows.find(row.id)
    return found.state if found else ""


def test_each_job_is_done_once_by_one_of_them(
    workers: list[SharedJobs], rows: JobRows, tmp_path: Path
) -> None:
    made = enqueued(rows, tmp_path, *(f"{n}.md" for n in range(6)))
    done: list[tuple[int, str]] = []
    for number, one in enumerate(workers):
        one.on_end = lambda row, number=number: done.append((number, row.id))  # type: ignore[misc]
        one.resume()
    eventually(lambda: all(one.is_empty() for one in workers))
    assert [state(rows, row) for row in made] == ["done"] * 6
    assert sorted(job for _, job in done) == sorted(row.id for row in made)
    assert {number for number, _ in done} == {0, 1}


def test_progress_and_cancel_reach_any_server(
    pair: list[Session], workers: list[SharedJobs], rows: JobRows, tmp_path: Path
) -> None:
    one, other = workers
    begun, ended = threading.Event(), threading.Event()

    def work(job: LeasedJob) -> None:
        progress = one._progress(job)
        progress("files", 3, 9)
        begun.set()
        while True:
            progress("files", 3, 9)
            ended.wait(0.02)

    one._work = work  # type: ignore[method-assign,assignment]
    [row] = enqueued(rows, tmp_path, "long.md")
    one.resume()
    assert begun.wait(20)
    eventually(lambda: [job.done for job in other._shown(rows.open())] == [3])
    assert [one.total for one in rows.leases(rows.open()).values()] == [9]
    rows.cancel(rows.open()[0])
    eventually(lambda: state(rows, row) == "cancelled")
    assert shared(pair[0]).leases([row.id]) == {}


def test_a_job_that_waits_is_cancelled_where_nobody_works(
    workers: list[SharedJobs], rows: JobRows, tmp_path: Path
) -> None:
    [row] = enqueued(rows, tmp_path, "waits.md")
    workers[1].cancel_any(row.id)
    assert state(rows, row) == "cancelled"
    [other] = enqueued(rows, tmp_path, "other.md")
    rows.cancel(other)  # as `carrel worker --cancel` does
    assert state(rows, other) == "cancelled"


def test_who_was_suspended_leaves_its_job_to_the_other(
    pair: list[Session], workers: list[SharedJobs], rows: JobRows, tmp_path: Path
) -> None:
    one, other = workers
    [row] = enqueued(rows, tmp_path, "hung.md")
    job = one._taken(syncs=False)
    assert isinstance(job, LeasedJob) and job.id == row.id
    shared(pair[0]).drop(one._worker, row.id)  # as the time of its lease does
    other.resume()
    eventually(lambda: state(rows, row) == "done")
    one._work_on(job)
    assert job.lost and one._live == {}
    found = rows.find(row.id)
    assert found is not None and (found.state, found.attempts) == ("done", 1)
    job.lost, job.renewed = False, job.renewed - LEASE_S - 1
    assert one._is_over(job)


def test_what_ends_its_processes_is_set_aside(
    workers: list[SharedJobs], rows: JobRows, tmp_path: Path
) -> None:
    [row] = enqueued(rows, tmp_path, "poison.md", state="running", attempts=40)
    [newer] = enqueued(rows, tmp_path, "newer.md", kind="reindex")
    workers[0].resume()
    eventually(workers[0].is_empty)
    found = rows.find(row.id)
    assert found is not None and "ended 40 times" in found.error
    found = rows.find(newer.id)
    assert found is not None and "another version of Carrel" in found.error


def test_an_upload_to_one_server_is_done_by_another(
    workers: list[SharedJobs], rows: JobRows
) -> None:
    one, other = workers
    job, path = one.prepare(ANN, "sent", "u.md", [])
    path.write_text("# U\n\nThe crane is grey.", encoding="utf-8")
    one.start(job)
    assert [found.id for found in other.newest(ANN, 5)] == [job.id]
    other.resume()
    eventually(lambda: state(rows, job.row) == "done")
    assert one.find(ANN, job.id).row.documents == 1
    eventually(lambda: not path.exists())


def test_a_stopped_worker_gives_its_job_back(
    pair: list[Session], rows: JobRows, tmp_path: Path
) -> None:
    [row] = enqueued(rows, tmp_path, "back.md")
    one = make_jobs(pair[0], pair[0].settings)
    assert isinstance(one, SharedJobs)
    job = one._taken(syncs=False)
    assert job is not None
    one._closing = True
    one._work_on(job)
    found = rows.find(row.id)
    assert found is not None and (found.state, found.attempts) == ("waiting", 0)
    assert shared(pair[1]).leases([row.id]) == {}
    rows.save(found)
    one.cancel_any(row.id)


def test_a_conversation_has_one_request_at_all_servers(pair: list[Session]) -> None:
    one, other = (Claims(shared(session)) for session in pair)
    with one.hold(ANN, "talk"), pytest.raises(InUseError):
        other.take(ANN, "talk")
    other.take(ANN, "talk")()


def test_questions_are_counted_at_all_servers(pair: list[Session], settings: Settings) -> None:
    limits = [CallerLimits(settings, one.accounts.spending, shared(one)) for one in pair]
    for one in limits:
        asyncio.run(one.admit(ANN))
    with pytest.raises(LimitExceeded, match="at most 2 questions"):
        asyncio.run(limits[0].admit(ANN))


def test_a_browser_is_signed_in_at_all_servers(pair: list[Session]) -> None:
    one, other = (SharedSessions(60, shared(session)) for session in pair)
    secret = one.begin(ANN)
    assert other.caller(secret) == ANN and other.caller("x") is None
    assert other.end(secret) == ANN and one.caller(secret) is None
    one.begin(ANN)
    assert other.end_all_of(TENANT, "ann") == 1


def test_settings_read_again_by_one_server_are_read_by_the_other(
    pair: list[Session], settings: Settings
) -> None:
    def load() -> Settings:
        given = {name: settings.value(name) for name in settings.given()}
        return load_settings({**given, "serve.rate": 77})[0]

    one, other = (make_app_state(session, allow_anonymous=True, load=load) for session in pair)
    assert one.watch is not None and other.watch is not None
    one.reload.now(one, None)
    other.watch.look()
    assert other.settings.serve.rate == 77
    assert isinstance(other.jobs, SharedJobs) and one.watch._known == other.watch._known
    remembered = other.session.caches.results
    remembered.put("k", b"text of a document")
    one.session.maintenance._changed()  # type: ignore[attr-defined]
    other.watch.look()
    assert remembered.entries == 0


def test_a_server_is_ready_while_its_catalogue_answers(
    pair: list[Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    import httpx

    from core.errors import StorageError

    services = make_app_state(pair[0], allow_anonymous=True)
    with running(services) as url:
        assert httpx.get(f"{url}/api/v1/ready").json() == {"status": "ready"}

        def fails() -> int:
            raise StorageError("gone")

        monkeypatch.setattr(services.catalogue, "index_version", fails)
        reply = httpx.get(f"{url}/api/v1/ready")
        assert (reply.status_code, reply.json()["status"]) == (503, "not ready")
        assert httpx.get(f"{url}/api/v1/health").status_code == 200


def test_a_job_waits_for_a_server_that_is_away(
    pair: list[Session],
    workers: list[SharedJobs],
    rows: JobRows,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("serve.jobs.WAIT_S", 0.1)
    ingest = pair[0].ingest
    cut = PostgresUnavailableError("terminating connection")
    cut.sqlstate = "57P01"  # type: ignore[attr-defined]
    failures: list[Exception] = [IndexUnavailableError("the server was not reached"), cut]

    def fails(*given: Any, **more: Any) -> Any:
        if failures:
            raise failures.pop()
        return ingest(*given, **more)

    monkeypatch.setattr(pair[0], "ingest", fails)
    [row] = enqueued(rows, tmp_path, "patient.md")
    workers[0].resume()
    eventually(lambda: state(rows, row) == "done")
    found = rows.find(row.id)
    assert found is not None and (found.documents, found.attempts, found.notes) == (1, 1, [])
    failures = [IndexUnavailableError("the server was not reached") for _ in range(3)]
    monkeypatch.setattr("serve.jobs.TRIES", 2)
    [row] = enqueued(rows, tmp_path, "hopeless.md")
    monkeypatch.setattr("serve.jobs.WAIT_S", 0.001)
    eventually(lambda: state(rows, row) == "failed")
    found = rows.find(row.id)
    assert found is not None and "was not reached" in found.error and len(found.notes) == 2
