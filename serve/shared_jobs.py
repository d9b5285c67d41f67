"""Jobs that several servers and workers take from one queue: each has one worker at a time.

A worker has a lease of its job and gives a sign of life every second. When it gives none for
`LEASE_S`, or `GONE_S` where its process has ended, another one takes the job over. Who was only
suspended meanwhile notices that before its next piece of work, and leaves the job alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from app.session import Session
from core.errors import StorageError
from core.settings import Settings
from serve.errors import new_id
from serve.jobs import LOOK_S, TICK_S, Job, Jobs
from serve.telemetry.logs import log
from stores.coordination import BEAT_S, LEASE_S, JobLease, SharedCoordination
from stores.runlog.jobs import JobRow, State

UNKNOWN_S = 24 * 3600.0  # after which an upload that no job has is given up; chosen
SWEEP_S = 60.0  # between two looks for values whose time is over; chosen


@dataclass(eq=False)
class LeasedJob(Job):
    """Follow a job of this worker; `lost` when another may have it by now."""

    renewed: float = field(default_factory=time.monotonic)
    lost: bool = False

    @property
    def is_lost(self) -> bool:
        """Tell whether the lease is over: this worker may have been suspended."""
        return self.lost or time.monotonic() - self.renewed > LEASE_S


class SharedJobs(Jobs):
    """Work on the open session beside others that work on the same catalogue."""

    def __init__(
        self, session: Session, settings: Settings, shared: SharedCoordination, *, works: bool
    ) -> None:
        """Start no thread yet; without `works` jobs are left to others."""
        super().__init__(session, settings)
        self._shared = shared
        self._works = works
        self._worker = new_id()
        shared.acquire(f"worker.{self._worker}")
        self._beating: threading.Thread | None = None
        self._ended = threading.Event()
        self._poked = {True: False, False: False}
        self.watchers: list[Callable[[], None]] = []  # called every second

    def resume(self) -> None:
        """Begin to take jobs, also those that others have left."""
        if self._beating is None:
            self._beating = threading.Thread(target=self._beat, name="beat", daemon=True)
            self._beating.start()
        if not self._works or self._session.maintenance.condition.read_only:
            return
        left = self._rows.open()
        self._remove_unknown({row.id for row in left}, UNKNOWN_S)
        if not any(row.kind == "deletion" for row in left):
            self.finish_erasure()
        self._start_threads()

    def is_empty(self) -> bool:
        """Tell whether no process has a job that waits or is at work."""
        return not self._rows.open()

    def close(self) -> None:
        """Stop after the current piece of work, and give its job back."""
        super().close()
        self._ended.set()
        if self._beating is not None:
            self._beating.join()

    def _enqueue(self, job: Job) -> None:
        if not job.row.created_at:
            self._rows.save(job.row)
        with self._changed:
            self._poked = {True: True, False: True}
            self._changed.notify_all()

    def _waiting_rows(self) -> list[JobRow]:
        return [row for row in self._rows.open() if row.state == "waiting"]

    def _open_rows(self) -> list[JobRow]:
        return self._rows.open()

    def _shown(self, rows: Sequence[JobRow]) -> list[Job]:
        leases = self._rows.leases(rows)
        found = []
        for row in rows:
            lease = leases.get(row.id, JobLease(row.id))
            there = Job(row, lease.stage, lease.done, lease.total, lease.cancelled)
            found.append(self._live.get(row.id) or there)
        return found

    def _cancel(self, job: Job) -> None:
        row = job.row
        if row.kind == "deletion" or row.ended:
            return
        if self._shared.claim(self._worker, syncs=False, job=row.id) is not None:
            self._end(LeasedJob(row), "cancelled", "")
            return
        self._shared.cancel(row.id)
        job.cancelled = True

    def _run(self, syncs: bool) -> None:
        looked = 0.0
        while not self._closing:
            if (job := self._taken(syncs)) is not None:
                self._work_on(job)
                continue
            if syncs and time.monotonic() - looked > TICK_S:
                looked = time.monotonic()
                self._look(self._look_for_due)
            with self._changed:
                self._changed.wait_for(lambda: self._closing or self._poked[syncs], LOOK_S)
                self._poked[syncs] = False

    def _taken(self, syncs: bool) -> Job | None:
        try:
            while (lease := self._shared.claim(self._worker, syncs=syncs)) is not None:
                row = self._rows.find(lease.job)
                if row is None:  # damaged: it is looked at again when the lease is over
                    continue
                job = LeasedJob(row)
                if lease.cancelled:
                    self._end(job, "cancelled", "")
                elif reason := self._find_loss(row):
                    self._end(job, "failed", reason)
                else:
                    row.state = "running"
                    self._live[row.id] = job
                    return job
        except StorageError as error:
            log.warning("no job can be taken: %s", error)
        return None

    def _is_over(self, job: Job) -> bool:
        return super()._is_over(job) or (isinstance(job, LeasedJob) and job.is_lost)

    def _renew(self, job: Job) -> bool:
        """Give a sign of life; return whether the job is still this worker's."""
        assert isinstance(job, LeasedJob)  # all are that are at work here
        began = time.monotonic()
        lease = JobLease(job.id, job.stage, job.done, job.total)
        found = self._shared.renew(self._worker, lease)
        if found is None:
            job.lost = True
            return False
        job.renewed, job.cancelled = began, found or job.cancelled
        return True

    def _save(self, job: Job) -> bool:
        try:
            if not self._renew(job):
                return False
        except StorageError as error:
            log.warning("a job could not be kept: %s", error)
            return False
        return super()._save(job)

    def _end(self, job: Job, state: State, error: str) -> None:
        """Keep how a job ended, then delete its file: a worker that is killed leaves no gap."""
        row = job.row
        row.error, row.state = error, state
        if row.kind == "ingest":  # its paths name documents, which may be forgotten
            row.sent_by(*row.sender())
        if self._save(job):
            self.on_end(row)
            self.discard(job)
        self._leave(job)

    def _stop_job(self, job: Job) -> None:
        if job.cancelled:
            self._end(job, "cancelled", "")
            return
        job.row.state = "waiting"
        job.row.attempts -= 1  # only those count that ended with the process
        self._save(job)
        self._leave(job)

    def _postpone(self, job: Job, seconds: float) -> None:
        """Keep the lease for so long without a sign of life: then any worker takes the job."""
        self._live.pop(job.id, None)
        self._look(lambda: self._shared.put("lease", job.id, {}, seconds))

    def _leave(self, job: Job) -> None:
        """Give a job back; where that cannot be, its lease ends by itself."""
        self._live.pop(job.id, None)
        self._look(lambda: self._shared.drop(self._worker, job.id))

    def _beat(self) -> None:
        swept = time.monotonic()
        while not self._ended.wait(BEAT_S):
            for job in list(self._live.values()):
                self._look(partial(self._renew, job))
            for watch in self.watchers:
                self._look(watch)
            if time.monotonic() - swept > SWEEP_S:
                swept = time.monotonic()
                self._look(self._shared.sweep)


def make_jobs(session: Session, settings: Settings, *, works: bool = True) -> Jobs:
    """Return the jobs of a session, shared with other processes where these use its catalogue."""
    coordination = session.maintenance.coordination
    if isinstance(coordination, SharedCoordination):
        return SharedJobs(session, settings, coordination, works=works)
    return Jobs(session, settings)
