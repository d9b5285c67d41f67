"""Uploads, ingests, deletions and trees, made in the background one by one; a restart resumes them.

Syncs of sources wait for networks, so that they have a thread of their own, which also looks whose
time has come.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from app.session import Session
from app.syncing import is_syncing, note_failure, sync_source
from core.auth import AuthContext, checked_name, checked_principal
from core.errors import CallerError, CarrelError, DocumentError, StorageUnavailableError
from core.settings import Settings
from ingest.connectors.address import folder_of
from ingest.connectors.watching import FolderWatch
from ingest.discover import SourceFile
from ingest.loaders.formats import checked_file_name
from serve.errors import Busy, NotFound, explained, failure_of, new_id
from serve.ingest_jobs import AGAIN, INGEST_ATTEMPTS, NEWER, JobStopped, ingest_paths
from serve.runs.pool import RETRY_SECONDS
from serve.telemetry.logs import log
from stores.accounts.audit import AuditEntry, Kind
from stores.erasure.erase import UPLOADS
from stores.index.port import IndexUnavailableError
from stores.runlog.jobs import OPERATOR, JobRow, State
from stores.runlog.sources import SourceRow
from stores.sqlite.database import ServerAwayError
from stores.sqlite.permissions import WriteAccess

TREE = "tree"  # the stage in which a tree is built
UNSEEN = (
    "its sender is none of its readers and can neither replace nor delete it: sent again, it is"
    " kept beside this one"
)

Progress = Callable[[str, int, int], None]


def ingest_upload(
    session: Session, row: JobRow, path: Path, progress: Progress, auth: AuthContext
) -> None:
    """Ingest one file into its collection; raises a CarrelError that says what is wrong with it.

    `auth` is who sent it: what they may not see stays as it is.

    Doing it again changes nothing, so an interrupted upload simply starts again.
    """
    target = session.intake.open_collection(row.tenant, row.collection, None)
    summary = session.ingest(
        target,
        [SourceFile(path, row.name)],
        acl=row.roles,
        progress=progress,
        renames=False,  # an upload's own file is gone when it is done
        access=WriteAccess(auth, str(path.resolve())),
    )
    row.documents, row.chunks, row.notes = summary.documents, summary.chunks, list(summary.notes)
    lost = [(item.path, item.reason) for item in (*summary.failed, *summary.left_out)]
    if lost and not summary.documents:
        raise DocumentError("the document could not be read", value=lost[0][1])
    readers = row.roles or frozenset(session.intake.default_access(target))
    if readers and not readers & auth.principals:
        row.notes.append(UNSEEN)
    if lost:  # a file of several documents
        row.notes.append(f"{len(lost)} of its documents were not taken; {lost[0][0]}: {lost[0][1]}")


JOBS_KEPT = 1000  # ended uploads and deletions of one tenant that stay listed; chosen, not measured
TICK_S = 5.0  # between two looks for sources whose time has come; chosen, not measured
LOOK_S = 1.0  # between two looks for ingests that others have enqueued; chosen, not measured
SHOWN_FAILURES = 20  # of a sync; chosen
TRIES, WAIT_S = 6, 2.0  # of a job whose servers do not answer, some two minutes in all; chosen
TRIED = "tried again: "
JOB_ATTEMPTS = 2  # how often an upload may be at work when the server dies; chosen, not measured

SHOWN = (
    *("id", "kind", "user", "collection", "name", "bytes", "state", "error"),
    *("documents", "chunks", "notes", "created_at", "updated_at"),
)


@dataclass(eq=False)
class Job:
    """Follow one job; `stage`, `done` and `total` are those of the ingest."""

    row: JobRow
    stage: str = ""
    done: int = 0
    total: int = 0
    cancelled: bool = False

    @property
    def id(self) -> str:
        """Return the id that its owner asks by."""
        return self.row.id

    @property
    def name(self) -> str:
        """Return the name of the file, empty for any but an upload."""
        return self.row.name

    def describe(self) -> dict[str, Any]:
        """Return the job as its owner sees it."""
        shown = {name: getattr(self.row, name) for name in SHOWN}
        shown |= {"roles": sorted(self.row.roles)}
        return shown | {"stage": self.stage, "done": self.done, "total": self.total}


class Jobs:
    """Work on the open session; every change of a job's state is kept."""

    def __init__(self, session: Session, settings: Settings) -> None:
        """Start no thread yet."""
        self._session = session
        self.settings = settings
        self._keys = session.accounts.keys
        self._rows = session.accounts.jobs(JOBS_KEPT)
        self._uploads = session.store.folder / UPLOADS
        self._live: dict[str, Job] = {}
        self._waiting: deque[Job] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._watch = FolderWatch()
        self._threads: dict[bool, threading.Thread] = {}  # of syncs, and of all else
        self.on_end: Callable[[JobRow], object] = lambda row: None

    def resume(self) -> None:
        """Continue the jobs that the last server left, and delete unknown files.

        Where rows of the catalogue are missing, their uploads may be all that is left of them.
        """
        if self._session.maintenance.condition.read_only:
            return
        left = self._rows.open()
        self._remove_unknown({row.id for row in left})
        for row in left:
            if row.id in self._live:
                continue
            reason = self._find_loss(row)
            if reason:
                self._end(Job(row), "failed", reason)
            else:
                row.state = "waiting"
                self._enqueue(Job(row))
        if not self._live:
            self.finish_erasure()
        self._start_threads()

    def _start_threads(self) -> None:
        with self._changed:
            for syncs in (True, False):
                self._start_thread(syncs=syncs)

    def _remove_unknown(self, known: Set[str], age_s: float = 0) -> None:
        """Delete the folders of uploads that no job has, `age_s` seconds after they were made."""
        before = time.time() - age_s
        for folder in self._uploads.iterdir() if self._uploads.is_dir() else ():
            if folder.name not in known and folder.stat().st_mtime <= before:
                shutil.rmtree(folder, ignore_errors=True)

    def prepare(
        self, auth: AuthContext, collection: str, name: str, roles: list[str], key: str = ""
    ) -> tuple[Job, Path]:
        """Return a job and the file that its upload is written to; raises for a name that is bad.

        The file's folder is new and its own, so no name reaches another file. `key` is the id of
        the caller's key, whose rights are looked up when the job is worked on.
        """
        self._session.maintenance.check_writable()
        checked_name("collection", collection)
        acl = frozenset(checked_principal(role) for role in roles)
        file_name = checked_file_name(name)
        waiting = [row for row in self._waiting_rows() if row.kind == "upload"]
        if sum(row.tenant == auth.tenant for row in waiting) >= self.settings.serve.jobs:
            rule = f"at most {self.settings.serve.jobs} uploads of a tenant wait"
            raise Busy(rule, retry_after=RETRY_SECONDS, of_caller=True)
        row = JobRow(new_id(), "upload", auth.tenant, auth.user, collection, file_name, acl)
        row.sent_by(auth, key)
        path = self._path(row)
        path.parent.mkdir(parents=True)
        return Job(row), path

    def start(self, job: Job) -> None:
        """Ingest an upload whose file is written."""
        job.row.bytes = self._path(job.row).stat().st_size
        self._rows.save(job.row)
        self._enqueue(job)

    def after_deletion(self, auth: AuthContext, collection: str) -> Job:
        """Tidy up, in the background, after a document that is deleted already.

        Its text is taken out of all derived files, and empty collections go away.
        The job does not name it: the list of jobs outlives the document.
        """
        row = JobRow(new_id(), "deletion", auth.tenant, auth.user, collection, "")
        self._rows.save(row)
        job = Job(row)
        self._enqueue(job)
        return job

    def build_tree(self, auth: AuthContext, collection: str, key: str = "") -> Job:
        """Build what the tree of a collection lacks; one that waits for the same is returned.

        Raises CallerError for a collection that the caller does not see.
        """
        self._session.maintenance.check_writable()
        self._session.catalogue.visible_collection(auth, collection)
        row = JobRow(new_id(), "tree", auth.tenant, auth.user, collection, "")
        row.sent_by(auth, key)
        return self._once(row, ("kind", "collection", "caller"), self._waiting_rows)

    def _once(
        self, row: JobRow, names: Sequence[str], among: Callable[[], Iterable[JobRow]]
    ) -> Job:
        """Enqueue a job, unless one that is equal by these names is there: that is returned."""
        with self._session.maintenance.coordination.lock("jobs"), self._changed:
            for one in among():
                if all(getattr(one, name) == getattr(row, name) for name in names):
                    return self._live.get(one.id) or Job(one)
            self._rows.save(row)
            job = Job(row)
            self._enqueue(job)
        return job

    def _waiting_rows(self) -> list[JobRow]:
        with self._changed:
            return [job.row for job in self._waiting]

    def _open_rows(self) -> list[JobRow]:
        with self._changed:
            return [job.row for job in self._live.values() if not job.row.ended]

    def sync(self, source: SourceRow) -> Job:
        """Sync a source; a job that waits or works for it already is returned."""
        self._session.maintenance.check_writable()
        owner = source.user or OPERATOR
        row = JobRow(new_id(), "sync", source.tenant, owner, source.collection, source.name)
        auth, key = (
            source.sender() if source.caller else (AuthContext(tenant=row.tenant, user=owner), "")
        )
        row.sent_by(auth, key)
        return self._once(row, ("kind", "tenant", "user", "name"), self._open_rows)

    def sync_due(self, now: float) -> None:
        """Sync the sources whose time has come."""
        rows = self._session.accounts.sources()
        for source in [*rows.due(now), *self._changed_folders()]:
            if not is_syncing(self._session, source):
                self.sync(source)

    def _changed_folders(self) -> list[SourceRow]:
        """Return the sources with a schedule whose folder has changed meanwhile."""
        listed = self._session.accounts.sources().list_sources(None)
        folders = [(one, folder_of(one.address)) for one in listed if one.every]
        try:
            found = self._watch.changed(frozenset(path for _, path in folders if path))
        except OSError as error:
            log.warning("folders of sources cannot be watched: %s", error)
            return []
        return [one for one, path in folders if path in found]

    def finish_erasure(self) -> None:
        """Tidy up, in the background, after what is erased already; the job is nobody's."""
        if self._session.maintenance.pending_erasure():
            self._enqueue(Job(JobRow(new_id(), "deletion", "", "", "", "")))

    def discard(self, job: Job) -> None:
        """Delete the file of an upload."""
        shutil.rmtree(self._uploads / job.row.id, ignore_errors=True)

    def find(self, auth: AuthContext, job_id: str) -> Job:
        """Return a job of this caller, or raise NotFound."""
        with self._changed:
            job = self._live.get(job_id)
        row = job.row if job else self._rows.find(job_id)
        own = row is not None and (row.tenant, row.user) == (auth.tenant, auth.user)
        if row is None or not own or not row.is_open_to(auth):
            raise NotFound("there is no such job of yours", value=job_id)
        return job or self._shown([row])[0]

    def _shown(self, rows: Sequence[JobRow]) -> list[Job]:
        """Return the jobs of these rows, with what is known of how far they are."""
        with self._changed:
            return [self._live.get(row.id) or Job(row) for row in rows]

    def newest(self, auth: AuthContext, limit: int, *, everyone: bool = False) -> list[Job]:
        """List the newest jobs of a caller, or with `everyone` of the tenant, the newest first."""
        if everyone:
            rows = self._rows.newest(auth.tenant, None, limit)
        else:
            known = self._rows.newest(auth.tenant, auth.user, -1)
            rows = [row for row in known if row.is_open_to(auth)][:limit]
        return self._shown(rows)

    def cancel(self, auth: AuthContext, job_id: str) -> None:
        """Stop a job of this caller; one that has ended stays as it is."""
        self._cancel(self.find(auth, job_id))

    def cancel_any(self, job_id: str) -> None:
        """Stop a job of anybody, for the operator; raises NotFound where none is open."""
        with self._changed:  # so that it is not taken up meanwhile
            job = self._live.get(job_id)
            row = job.row if job else self._rows.find(job_id)
            if row is None or row.ended:
                raise NotFound("no job of this id waits or is at work", value=job_id)
            self._cancel(job or Job(row))

    def is_empty(self) -> bool:
        """Tell whether no job waits or is at work; one whose end could not be kept is neither."""
        with self._changed:
            ended = {job_id for job_id, job in self._live.items() if job.row.ended}
        return all(row.id in ended for row in self._rows.open())

    def _cancel(self, job: Job) -> None:
        if job.row.kind == "deletion":
            return  # the document is gone already
        with self._changed:
            job.cancelled = True
            if job.row.state == "running":
                return  # it notices between two pieces
            if job in self._waiting:
                self._waiting.remove(job)
        self._end(job, "cancelled", "")

    def close(self) -> None:
        """Stop after the current piece of work; the next server resumes the rest."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for thread in list(self._threads.values()):
            thread.join()

    def _path(self, row: JobRow) -> Path:
        """Return the path of an upload, in a folder of its own, so that no name reaches another."""
        return self._uploads / row.id / PurePosixPath(row.name).name

    def _find_loss(self, row: JobRow) -> str:
        path = self._path(row)
        complete = row.kind != "upload" or (path.is_file() and path.stat().st_size == row.bytes)
        if not complete:
            return "the upload is no longer there; send it again"
        most = INGEST_ATTEMPTS if row.kind == "ingest" else JOB_ATTEMPTS
        if row.state == "running" and row.attempts >= most:
            return f"the server ended {row.attempts} times while it was at work on this"
        return ""

    def _enqueue(self, job: Job) -> None:
        with self._changed:
            self._live[job.row.id] = job
            self._waiting.append(job)
            self._start_thread(syncs=job.row.kind == "sync")
            self._changed.notify_all()

    def _start_thread(self, *, syncs: bool) -> None:
        if syncs not in self._threads:
            name = "syncs" if syncs else "jobs"
            made = threading.Thread(target=self._run, args=(syncs,), name=name, daemon=True)
            self._threads[syncs] = made
            made.start()

    def _next(self, syncs: bool) -> Job | None:
        return next((one for one in self._waiting if (one.row.kind == "sync") is syncs), None)

    def _run(self, syncs: bool) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._closing or self._next(syncs), TICK_S if syncs else LOOK_S
                )
                if self._closing:
                    return
                if (job := self._next(syncs)) is not None:
                    self._waiting.remove(job)
                    job.row.state = "running"
            if job is None:
                self._look(self._look_for_due if syncs else self._look_for_new)
                continue
            self._work_on(job)

    def _work_on(self, job: Job) -> None:
        """Do a job, and keep how it ended."""
        job.row.attempts += 1
        self._save(job)
        try:
            self._in_turn(job)
            self._end(job, "done", "")
        except JobStopped:
            self._stop_job(job)
        except Exception as error:
            message, known = str(error), explained(error)
            if not isinstance(error, CarrelError):
                log.exception("unexpected", extra={"id": job.row.id})
                message = failure_of(error).message if known else "something unexpected happened"
                message += f" (id {job.row.id})"
            if isinstance(known, ServerAwayError | IndexUnavailableError):
                self._try_later(job, message)
            else:
                self._end(job, "failed", message)

    def _try_later(self, job: Job, reason: str) -> None:
        """Let a job wait for a server that does not answer, twice as long each time, then fail."""
        row = job.row
        tried = sum(note.startswith(TRIED) for note in row.notes)
        if tried >= TRIES:
            self._end(job, "failed", reason)
            return
        row.notes.append(f"{TRIED}{reason}")
        row.state = "waiting"
        row.attempts -= 1  # only those count that ended with the process
        self._save(job)
        self._postpone(job, WAIT_S * 2**tried)

    def _postpone(self, job: Job, seconds: float) -> None:
        """Take a job up again later; the next process does where this one ends before."""

        def again() -> None:
            if not job.row.ended:  # as cancelled meanwhile
                self._enqueue(job)

        timer = threading.Timer(seconds, again)
        timer.daemon = True
        timer.start()

    def _look(self, look: Callable[[], object]) -> None:
        try:
            look()
        except StorageUnavailableError as error:
            log.warning("the catalogue does not answer: %s", " ".join(str(error).split()))
        except Exception:  # of a disk or a damaged catalogue: the next look may find it well
            log.exception("unexpected")

    def _look_for_due(self) -> None:
        self.sync_due(time.time())

    def _look_for_new(self) -> None:
        """Take up what other processes have enqueued: SQLite lets them write beside the owner."""
        with self._changed:
            for row in self._rows.open():
                if row.kind == "ingest" and row.id not in self._live:
                    self._enqueue(Job(row))

    def _in_turn(self, job: Job) -> None:
        """Work when no other work changes many documents, such as a command of the operator."""
        if job.row.kind == "sync":  # which waits for its turn with each batch that it has read
            self._sync(job)
            return
        progress = self._progress(job)
        named = f"{job.row.kind} of {job.row.name}" if job.row.name else job.row.kind
        # What it waits for may be another tenant's.
        with self._session.maintenance.turn(named, lambda other: progress("waiting", 0, 0)):
            self._work(job)

    def _work(self, job: Job) -> None:
        row = job.row
        if row.kind == "upload":
            path, progress = self._path(row), self._progress(job)
            ingest_upload(self._session, row, path, progress, self._rights(row))
            return
        if row.kind == "ingest":
            save, record = partial(self._save, job), self._audited(row)
            ingest_paths(self._session, row, self._progress(job), save, record)
            return
        if row.kind == "tree":
            catalogue, auth = self._session.catalogue, self._rights(row)
            target = catalogue.visible_collection(auth, row.collection)
            self._session.build_tree(auth, target, self._progress(job))
            return
        if row.kind != "deletion":
            raise CallerError(NEWER, value=row.kind, hint=AGAIN)
        with self._changed:  # one of several deletions tidies up after all
            later = any(other.row.kind == "deletion" for other in self._waiting)
        if not later:
            progress = self._progress(job)
            self._session.maintenance.tidy(lambda stage: progress(stage, 0, 0))

    def _sync(self, job: Job) -> None:
        row, rows = job.row, self._session.accounts.sources()
        found = [
            one
            for one in rows.list_sources(row.tenant)
            if (one.name, one.user or OPERATOR) == (row.name, row.user)
        ]
        if not found:
            raise CallerError("the source was removed meanwhile", value=row.name)
        source, auth = found[0], None
        try:
            if source.caller:
                auth = self._rights(source)
        except CallerError as error:
            note_failure(self._session, source, str(error))
            raise
        report = sync_source(
            self._session, source, self._progress(job), auth=auth, record=self._audited(row)
        )
        row.documents, row.notes = report.new + report.changed, list(report.notes)
        row.notes += [f"{one.path}: {one.reason}" for one in report.failed[:SHOWN_FAILURES]]

    def _audited(self, row: JobRow) -> Callable[..., None]:
        """Return what has the audit log name what a sync brought, and what went."""
        settings, auth = self.settings, AuthContext(tenant=row.tenant, user=row.user)
        if not settings.audit.enabled:
            return lambda kind, **facts: None
        kept = self._session.accounts.audit(settings)

        def append(kind: Kind, **facts: Any) -> None:  # noqa: ANN401 - the log's own
            kept.append([AuditEntry(kind, auth, facts)])

        return append

    def _rights(self, row: JobRow | SourceRow) -> AuthContext:
        """Return the present rights of the sender of a job; raises CallerError for none.

        A signed token, or the caller without a key, has the roles of then.
        """
        auth, key_id = row.sender()
        if not key_id:
            return auth
        key = self._keys.good(key_id)
        if key is None:
            raise CallerError(
                "the key that this was sent with is expired or revoked by now",
                hint="send it again with another one",
            )
        return key.auth

    def _stop_job(self, job: Job) -> None:
        if job.cancelled:
            self._end(job, "cancelled", "")
            return
        job.row.state = "waiting"
        job.row.attempts -= 1  # only those count that ended with the server
        self._save(job)

    def _end(self, job: Job, state: State, error: str) -> None:
        job.row.error, job.row.state = error, state
        if job.row.kind == "ingest":  # its paths name documents, which may be forgotten
            job.row.sent_by(*job.row.sender())
        self.discard(job)
        self.on_end(job.row)
        with self._changed:  # with those whose end could not be kept on a full disk
            live = list(self._live.values())
        for one in [*(one for one in live if one.row.ended and one is not job), job]:
            if self._save(one):
                with self._changed:
                    self._live.pop(one.row.id, None)

    def _save(self, job: Job) -> bool:
        try:
            self._rows.save(job.row)
        except Exception:  # as of a full disk: it must not end the thread; the next start goes on
            log.exception("unexpected", extra={"id": job.row.id})
            return False
        return True

    def _is_over(self, job: Job) -> bool:
        return self._closing or job.cancelled

    def _progress(self, job: Job) -> Callable[[str, int, int], None]:
        def note(stage: str, done: int, total: int) -> None:
            if self._is_over(job):
                raise JobStopped
            if stage == TREE:  # how many documents it lacks would tell of hidden ones
                done = total = 0
            job.stage, job.done, job.total = stage, done, total

        return note
