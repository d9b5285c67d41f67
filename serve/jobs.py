"""Uploads that are ingested in the background, one after the other, with their progress."""

from __future__ import annotations

import shutil
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from core.auth import AuthContext, checked_name
from core.errors import CallerError, CarrelError, DocumentError, ModelError
from core.settings import Settings
from graph.session import Session
from serve.errors import Busy, NotFound, new_id
from serve.logs import log

FOLDER = "uploads"
REMEMBERED = 1000
NAME_BYTES = 200

State = Literal["waiting", "running", "done", "failed"]


class _Stopped(Exception):
    """Say that the server stops; what was ingested stays."""


@dataclass(eq=False)
class Job:
    """Follow one upload; `stage`, `done` and `total` are those of the ingest."""

    id: str
    auth: AuthContext
    collection: str
    name: str
    roles: frozenset[str]
    state: State = "waiting"
    stage: str = ""
    done: int = 0
    total: int = 0
    error: str = ""
    documents: int = 0
    chunks: int = 0
    notes: list[str] = field(default_factory=list)

    def describe(self) -> dict[str, Any]:
        """Return the job as its owner sees it."""
        names = ("id", "collection", "name", "state", "stage", "done", "total", "error")
        return {name: getattr(self, name) for name in (*names, "documents", "chunks", "notes")}


class Jobs:
    """Ingest uploads into the open session; jobs are remembered until the server ends."""

    def __init__(self, session: Session, settings: Settings) -> None:
        """Start no thread yet."""
        self._session = session
        self.use(settings)
        self._folder = session.store.folder / FOLDER
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._waiting: deque[Job] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._thread: threading.Thread | None = None

    def use(self, settings: Settings) -> None:
        """Keep to the limits of these settings from now on."""
        self._limit = settings.serve_jobs
        self._retry = settings.serve_retry_seconds

    def prepare(
        self, auth: AuthContext, collection: str, name: str, roles: list[str]
    ) -> tuple[Job, Path]:
        """Return a job and the file that its upload is written to; raises for a name that is bad.

        The file's folder is new and its own, so no name reaches another file.
        """
        checked_name("collection", collection)
        job = Job(new_id(), auth, collection, checked_file_name(name), _roles(roles))
        with self._changed:
            waiting = sum(1 for other in self._waiting if other.auth.tenant == auth.tenant)
        if waiting >= self._limit:
            rule = f"at most {self._limit} uploads of a tenant wait"
            raise Busy(rule, retry_after=self._retry, of_caller=True)
        folder = self._folder / job.id
        folder.mkdir(parents=True)
        return job, folder / job.name

    def start(self, job: Job) -> None:
        """Ingest an upload whose file is written."""
        with self._changed:
            self._jobs[job.id] = job
            while len(self._jobs) > REMEMBERED:
                self._jobs.popitem(last=False)
            self._waiting.append(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="ingest", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def discard(self, job: Job) -> None:
        """Delete what was written of an upload."""
        shutil.rmtree(self._folder / job.id, ignore_errors=True)

    def find(self, auth: AuthContext, job_id: str) -> Job:
        """Return a job of this caller, or raise NotFound."""
        with self._changed:
            job = self._jobs.get(job_id)
        if job is None or (job.auth.tenant, job.auth.user) != (auth.tenant, auth.user):
            raise NotFound("there is no such job of yours", value=job_id)
        return job

    def close(self) -> None:
        """Stop after the current piece of work; uploads that wait are dropped."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closing or self._waiting)
                if self._closing:
                    return
                job = self._waiting.popleft()
            job.state = "running"
            try:
                self._ingest(job)
                job.state = "done"
            except CarrelError as error:
                job.state, job.error = "failed", str(error)
            except _Stopped:
                job.state, job.error = "failed", "the server was stopped; send it again"
            except Exception:
                log.exception("unexpected", extra={"id": job.id})
                job.state, job.error = "failed", f"something unexpected happened (id {job.id})"
            finally:
                self.discard(job)

    def _ingest(self, job: Job) -> None:
        from ingest.pipeline import Pipeline

        session = self._session
        if session.embedder is None:
            raise ModelError("documents need the embedder, which cannot be loaded")
        target = session.store.writer.open_collection(job.auth.tenant, job.collection, None)
        try:
            summary = Pipeline(
                session.store,
                session.embedder,
                session.index(target).settings,
                target,
                acl=job.roles,
                progress=self._progress(job),
                second=session.second,
            ).run([self._folder / job.id / job.name])
        finally:
            session.store.writer.drop_collection_if_empty(target)
        if summary.failed:
            raise DocumentError("the document could not be read", value=summary.failed[0].reason)
        job.documents, job.chunks, job.notes = summary.documents, summary.chunks, summary.notes

    def _progress(self, job: Job) -> Callable[[str, int, int], None]:
        def note(stage: str, done: int, total: int) -> None:
            if self._closing:
                raise _Stopped
            job.stage, job.done, job.total = stage, done, total

        return note


def checked_file_name(name: str) -> str:
    """Return the name of an upload when it is a plain one of a known format, or say why not."""
    from ingest.loaders.formats import format_of, refusal

    with suppress(UnicodeEncodeError):
        plain = name.isprintable() and not set(name) & set("/\\:") and not name.startswith(".")
        if plain and 0 < len(name.encode()) <= NAME_BYTES and name == name.strip():
            if format_of(name) is None:
                raise DocumentError(refusal(name), value=name)
            return name
    raise CallerError(
        f"a file name has 1 to {NAME_BYTES} bytes, no folder, and does not begin with a dot",
        value=name,
        hint="rename the file",
    )


def _roles(roles: list[str]) -> frozenset[str]:
    return frozenset(checked_name("role", role) for role in roles)
