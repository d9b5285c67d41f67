"""Files of uploads on their way into a collection, and the work of ingesting one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from app.session import Session
from core.auth import AuthContext
from core.errors import CallerError, DocumentError, ModelError
from ingest.loaders.formats import format_of, refusal
from ingest.pipeline import Pipeline
from stores.erasure.erase import UPLOADS
from stores.runlog.jobs import JobRow
from stores.sqlite.permissions import WriteAccess

NAME_BYTES = 200
UNSEEN = (
    "its sender is none of its readers and can neither replace nor delete it: sent again, it is"
    " kept beside this one"
)

Progress = Callable[[str, int, int], None]


class UploadFiles:
    """Keep each upload in a new folder of its own, so that no name reaches another file."""

    def __init__(self, data: Path) -> None:
        """Keep them below the data directory."""
        self._folder = data / UPLOADS

    def make(self, row: JobRow) -> Path:
        """Return where an upload is written; its folder is there."""
        path = self.path(row)
        path.parent.mkdir(parents=True)
        return path

    def path(self, row: JobRow) -> Path:
        """Return where an upload is."""
        return self._folder / row.id / row.name

    def whole(self, row: JobRow) -> bool:
        """Tell whether the upload is still there with all its bytes."""
        path = self.path(row)
        return path.is_file() and path.stat().st_size == row.bytes

    def discard(self, row: JobRow) -> None:
        """Delete what was written of an upload."""
        shutil.rmtree(self._folder / row.id, ignore_errors=True)

    def discard_others(self, rows: list[JobRow]) -> None:
        """Delete what was written of uploads that are none of these."""
        known = {row.id for row in rows}
        folders = self._folder.iterdir() if self._folder.is_dir() else ()
        for folder in folders:
            if folder.name not in known:
                shutil.rmtree(folder, ignore_errors=True)


def ingest_upload(
    session: Session, row: JobRow, path: Path, progress: Progress, auth: AuthContext
) -> None:
    """Ingest one file into its collection; raises a CarrelError that says what is wrong with it.

    `auth` is who sent it: what they may not see stays as it is.

    Doing it again changes nothing, so an interrupted upload simply starts again.
    """
    if session.embedder is None:
        raise ModelError("documents need the embedder, which cannot be loaded")
    target = session.intake.open_collection(row.tenant, row.collection, None)
    try:
        summary = Pipeline(
            session.store,
            session.embedder,
            session.index(target).settings,
            target,
            acl=row.roles,
            progress=progress,
            second=session.second,
            renames=False,  # an upload's own file is gone when it is done
            access=WriteAccess(auth, str(path.resolve())),
        ).run([path])
    finally:
        session.intake.drop_collection_if_empty(target)
    row.documents, row.chunks, row.notes = summary.documents, summary.chunks, list(summary.notes)
    lost = [(item.path, item.reason) for item in (*summary.failed, *summary.left_out)]
    if lost and not summary.documents:
        raise DocumentError("the document could not be read", value=lost[0][1])
    if row.roles and not row.roles & auth.principals:
        row.notes.append(UNSEEN)
    if lost:  # a file of several documents
        row.notes.append(f"{len(lost)} of its documents were not taken; {lost[0][0]}: {lost[0][1]}")


def tidy_after_deletion(session: Session, progress: Progress) -> None:
    """Take text of deleted documents out of all derived files, and empty collections away."""
    session.maintenance.tidy(lambda stage: progress(stage, 0, 0))


def checked_file_name(name: str) -> str:
    """Return the name of an upload when it is a plain one of a known format, or say why not."""
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
