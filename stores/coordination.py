"""What processes of one catalogue share beside its rows: locks, leases of jobs, small values.

A catalogue in SQLite has one process, which shares nothing with others: this is its coordination.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

INGEST = "ingest"  # shared by all that ingest; alone, nothing is on its way into the catalogue
ERASED = "erased"  # how often documents were: what other processes remember goes
LEASE_S = 20.0  # a worker that gave no sign of life for so long has lost its job; chosen
GONE_S = 3.0  # the same of one whose process has ended, as the catalogue's server sees it; chosen
BEAT_S = 1.0  # between two signs of life; chosen


@dataclass(frozen=True)
class JobLease:
    """Hold what a worker tells of a job: how far it is, and whether somebody wants its end."""

    job: str
    stage: str = ""
    done: int = 0
    total: int = 0
    cancelled: bool = False


@dataclass(frozen=True)
class Window:
    """Say whether a call counts, how many do in the last minute, and when the oldest no longer."""

    allowed: bool
    used: int
    reset_s: float


class Coordination:
    """Coordinate the only process."""

    is_shared = False  # whether other processes may use the catalogue at the same time

    def acquire(self, name: str) -> bool:
        """Take a lock of all processes; return False when another process has it."""
        return True

    def release(self, name: str) -> None:
        """Give a lock back; when a process ends, so do its locks."""

    @contextmanager
    def lock(self, name: str, *, shared: bool = False, wait: bool = True) -> Iterator[bool]:
        """Give whether the block has a lock of all processes; with `wait` it has.

        A shared one is taken by many, and keeps out who wants it alone in another thread.
        """
        yield True

    def close(self) -> None:
        """Give back what is still locked."""


class SharedCoordination(Coordination):
    """Coordinate several processes."""

    is_shared = True

    def claim(self, worker: str, *, syncs: bool, job: str = "") -> JobLease | None:
        """Take the oldest open job that no worker has, or this one; None where there is none."""
        raise NotImplementedError

    def renew(self, worker: str, lease: JobLease) -> bool | None:
        """Give a sign of life; return whether to cancel the job, None when it is another's."""
        raise NotImplementedError

    def drop(self, worker: str, job: str) -> None:
        """Give a job back, or say that it has ended."""
        raise NotImplementedError

    def cancel(self, job: str) -> None:
        """Have whoever works on a job, or takes it next, end it."""
        raise NotImplementedError

    def leases(self, jobs: Sequence[str]) -> dict[str, JobLease]:
        """Return how far jobs are, by id, those that are at work."""
        raise NotImplementedError

    def hit(self, key: str, limit: int, *, count: bool) -> Window:
        """Count a call within the last minute, unless that is more than `limit`."""
        raise NotImplementedError

    def put(self, kind: str, key: str, value: Any, seconds: float) -> None:  # noqa: ANN401 - JSON
        """Keep a small value for so many seconds."""
        raise NotImplementedError

    def get(self, kind: str, key: str) -> Any:  # noqa: ANN401 - JSON
        """Return a value that is kept, None for none."""
        raise NotImplementedError

    def agreed(self, name: str, value: str) -> str:
        """Keep a text for good, unless there is one already; return the one that is kept."""
        raise NotImplementedError

    def remove(self, kind: str, key: str = "", **fields: str) -> list[Any]:
        """Forget the value of a key, or those with these fields; return what they were."""
        raise NotImplementedError

    def bump(self, name: str) -> None:
        """Tell all processes that something has changed."""
        raise NotImplementedError

    def versions(self) -> dict[str, int]:
        """Return how often each thing has changed."""
        raise NotImplementedError

    def sweep(self) -> None:
        """Forget values whose time is over, and leases of jobs that have ended."""
        raise NotImplementedError
