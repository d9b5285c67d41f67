"""Ingests that were put into the queue: one job for what one command named.

A file that cannot be read is set aside with its reason, as in any ingest. One at which the process
itself ends is found by reading the files one by one after that.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from app.session import Session
from core.errors import CallerError, CarrelError, DocumentError, StorageError
from core.profile import Profile
from ingest.discover import SourceFile, discover
from ingest.summary import Summary
from ingest.types import LoadFailure
from serve.telemetry.logs import log
from stores.runlog.jobs import JobRow

# How often a process may end at work on one ingest; chosen, not measured: two ends find the first
# file that causes them, and two more each further one.
INGEST_ATTEMPTS = 40
WHOLE_ATTEMPTS = 2  # in which all files are read at once, which is faster
FILE_ATTEMPTS = 2  # in which a process may end at one file; kills at random hit few files twice
SHOWN_SET_ASIDE = 100  # of an ingest; chosen
NEWER = "a job of another version of Carrel cannot be done by this one"
AGAIN = "use the same version for all, or enqueue it again"
ENDED = "{}: the process ended while it was read"


class JobStopped(Exception):
    """Say that the server stops, or that the job is cancelled; what was ingested stays."""


Progress = Callable[[str, int, int], None]
Record = Callable[..., None]


def ingest_paths(
    session: Session,
    row: JobRow,
    progress: Progress,
    save: Callable[[], object],
    record: Record,
) -> None:
    """Ingest what a job names; raises DocumentError where nothing of it could be taken.

    Doing it again changes nothing, so one whose process ended simply starts again.
    """
    work: dict[str, Any] = row.work
    if not work.keys() >= {"paths", "prune", "profile"}:
        raise CallerError(NEWER, value=sorted(work), hint=AGAIN)
    own = work["profile"]
    profile = Profile.model_validate(own) if own else None
    target = session.intake.open_collection(row.tenant, row.collection, profile)
    paths = [Path(path) for path in work["paths"]]

    def ingest(given: list[Path] | list[SourceFile], prune: bool = False) -> Summary:
        return session.ingest(target, given, acl=row.roles, progress=progress, prune=prune)

    summary = None
    if row.attempts <= WHOLE_ATTEMPTS:
        try:
            summary = ingest(paths, bool(work["prune"]))
        except (CarrelError, StorageError, JobStopped):
            raise
        except Exception:
            log.exception("unexpected", extra={"id": row.id})
    if summary is None:
        summary = _one_by_one(ingest, paths, row, save)
    lost = [*summary.failed, *summary.left_out]
    row.documents, row.chunks = summary.documents, summary.chunks
    row.notes = [*summary.notes, *(f"{one.path}: {one.reason}" for one in lost[:SHOWN_SET_ASIDE])]
    named = {"collection": row.collection}
    if summary.indexed:
        record("upload", **named, files=summary.indexed, readers=sorted(row.roles))
    if summary.removed:
        record("deletion", **named, documents=summary.removed)
    if not summary.ok:
        reason = f"{lost[0].path}: {lost[0].reason}" if lost else "there is no file to ingest"
        raise DocumentError("nothing could be ingested", value=reason)


def _one_by_one(
    ingest: Callable[[list[SourceFile]], Summary],
    paths: list[Path],
    row: JobRow,
    save: Callable[[], object],
) -> Summary:
    """Ingest each file alone, so that the next process knows at which one this one ended."""
    sources, failures = discover(paths)
    total = Summary(files=len(sources), failed=list(failures))
    for source in sources:
        note = ENDED.format(source.relative)
        if row.notes.count(note) >= FILE_ATTEMPTS:
            total.failed.append(_set_aside(source, "the process ended each time it was read"))
            continue
        row.notes.append(note)
        save()
        try:
            done = ingest([source])
        except (CarrelError, StorageError, JobStopped):
            raise
        except Exception as error:
            log.exception("unexpected", extra={"id": row.id})
            total.failed.append(_set_aside(source, f"something unexpected ({error})"))
            continue
        finally:
            row.notes.remove(note)
        for name in ("indexed", "unchanged", "renamed", "documents", "chunks"):
            setattr(total, name, getattr(total, name) + getattr(done, name))
        total.failed += done.failed
        total.left_out += done.left_out
    return total


def _set_aside(source: SourceFile, reason: str) -> LoadFailure:
    return LoadFailure(path=source.relative, reason=reason)
