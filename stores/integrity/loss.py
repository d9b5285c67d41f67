"""Rows that were committed and are gone: what tells of them, and how a directory goes on."""

from __future__ import annotations

import re
import sqlite3
from typing import TYPE_CHECKING

from core.settings import Settings
from stores.accounts.audit import AuditLog
from stores.accounts.audit_chain import read_head
from stores.index.folders import ALL_FOLDERS
from stores.sqlite.database import LOST_LOG, Database

if TYPE_CHECKING:
    from stores.store import StoreParts

SEGMENT = re.compile(r"([0-9]{12})-[0-9a-f]{8}", re.ASCII)
UNDONE = (
    "what was deleted or revoked in the missing commits is there again: delete and revoke it once"
    " more, and ingest again what was new"
)


def missing(store: StoreParts) -> list[str]:
    """Say what is beside the catalogue and speaks of rows that it does not have."""
    database = store.database
    found = [database.condition.lost] if database.condition.lost else []
    try:
        return [*found, *_audit_rows(database), *_segments_ahead(store)]
    except (sqlite3.DatabaseError, ValueError):  # a damaged catalogue, which is told otherwise
        return found


def _audit_rows(database: Database) -> list[str]:
    """Compare the note of the last audit row with the rows."""
    head = read_head(database.path.parent)
    last = database.read().execute("SELECT coalesce(max(seq), 0) FROM audit").fetchone()[0]
    if head is None or head.seq <= last:
        return []
    return [f"the audit rows {last + 1} to {head.seq} are gone"]


def _segments_ahead(store: StoreParts) -> list[str]:
    """Look for search segments made of a later catalogue: one is named by its index version."""
    newest = newest_segment(store)
    version = store.catalogue.index_version()
    if newest <= version:
        return []
    return [f"a search segment is of index version {newest}, the catalogue is of {version}"]


def newest_segment(store: StoreParts) -> int:
    """Return the highest index version of any segment's folder, 0 without one."""
    names = (path.name for home in ALL_FOLDERS for path in (store.folder / home).glob("*/*"))
    return max((int(match[1]) for name in names if (match := SEGMENT.fullmatch(name))), default=0)


def _uploads_without_job(store: StoreParts) -> int:
    """Count the folders of uploads whose jobs may be among what is missing."""
    folder = store.folder / "uploads"
    try:
        known = {row[0] for row in store.database.read().execute("SELECT id FROM jobs")}
        return sum(path.name not in known for path in folder.iterdir())
    except (OSError, sqlite3.DatabaseError):
        return 0


def loss_problems(store: StoreParts) -> list[str]:
    """Say what is missing and what to do, for `carrel doctor`; nothing where nothing is lost."""
    if not store.database.condition.lost:
        return []
    lines = missing(store)
    if count := _uploads_without_job(store):
        lines.append(f"{count} folders of uploads belong to no job")
    kept = store.database.path.with_name(store.database.path.name + LOST_LOG)
    if kept.exists():
        lines.append(f"the log as it was found is in {kept.name} until the loss is accepted")
    return [
        f"rows of the catalogue are missing: {'; '.join(lines)}; nothing is written. Copy the data"
        " directory, then restore a backup into an empty one, or go on without them with"
        f" `carrel doctor --repair --accept-loss`; {UNDONE}"
    ]


def accept_loss(store: StoreParts, settings: Settings) -> list[str]:
    """Go on without what is missing, and say so in the audit log; return what was done."""
    database = store.database
    if not database.condition.lost:
        return []
    lines = missing(store)
    newest = newest_segment(store)
    log = AuditLog(database, settings)
    log.accept_loss(lines)
    database.accept_loss(newest)
    log.append([])
    return [f"missing rows were accepted: {'; '.join(lines)}; {UNDONE}"]
