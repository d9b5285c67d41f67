"""Rows of the catalogue that are damaged or missing: what tells of them, and how to go on."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from core.settings import Settings
from stores.accounts.audit import AuditLog
from stores.accounts.audit_chain import read_head
from stores.folder import ALL_FOLDERS
from stores.integrity.checks import Check, Defect
from stores.integrity.condition import check_server
from stores.sqlite.catalogue import MAX_VARIABLES
from stores.sqlite.database import LOST_LOG, Database
from stores.sqlite.fulltext import table
from stores.sqlite.sums import (
    CHUNK,
    DERIVED,
    DOCUMENT,
    VECTORS,
    Damage,
    drop_damaged,
    find_damage,
    sign,
)
from stores.sqlite.writer import bump

if TYPE_CHECKING:
    from stores.store import StoreParts

AGAIN = "restore a backup, or ingest their files again"
# What is said of damaged rows, by attribute of `Damage`, and what to do.
DAMAGED = {
    "documents": ("{} documents are damaged in the catalogue and withheld", AGAIN),
    "chunks": ("{} passages are damaged in the catalogue and withheld", AGAIN),
    "vectors": (
        "{} stored vectors are damaged: their passages are found by words alone",
        "run `carrel doctor --repair`",
    ),
    "collections": (
        "the profile of a collection is damaged in the catalogue",
        "restore a backup, or ingest again with --profile",
    ),
    "keys": ("keys are damaged and not accepted", "make new ones"),
}
RECORDS = {
    "runs": "records of runs are damaged and withheld; restore a backup",
    "feedback": "opinions are damaged and withheld; restore a backup",
    "conversations": "conversations are damaged and withheld; restore a backup",
    "conversation_turns": "turns of conversations are damaged and withheld; restore a backup",
    "notes": "notes of memory are damaged and withheld; restore a backup",
    "jobs": "jobs are damaged and not taken up; restore a backup, or send the uploads again",
    "sources": "sources are damaged and not synced; remove them and add them again",
    "files": "entries of ingested files are damaged: the next ingest reads these files again; run"
    " `carrel doctor --repair`",
    "book_texts": "links of books are damaged and not followed; run `carrel doctor --repair`, then"
    " ingest again",
    "aliases": "names that several documents have are damaged: their documents are shown by longer"
    " ids; run `carrel doctor --repair`",
    "tree_documents": "documents are damaged in their collection's tree and left out of it; run"
    " `carrel doctor --repair`, then `carrel tree build`",
}
SEGMENT = re.compile(r"([0-9]{12})-[0-9a-f]{8}", re.ASCII)
UNDONE = (
    "what was deleted or revoked in the missing commits is there again: delete and revoke it once"
    " more, and ingest again what was new"
)


class RowCheck(Check):
    """The sums of all rows; damaged documents are kept out of sight."""

    damage = Damage()  # that was found last

    def check(self) -> list[Defect]:
        """Compare every row with its sum, and remember which are damaged."""
        self.damage = find_damage(self._parts.database.read())
        found = enumerate(damage_problems(self.damage))
        return [Defect(said, (line,), f"rows {n}", said) for n, (said, line) in found]

    def settle(self) -> list[str]:
        """Withhold damaged documents, and have answers warn of all that is damaged."""
        condition = self._parts.database.condition
        condition.clear("rows ")
        try:
            found = self.check()
            self._withhold()
        except sqlite3.DatabaseError as error:
            check_server(error)
            condition.malformed = str(error)
            return []
        for defect in found:
            condition.report(defect.name, defect.warning)
        return []

    def _withhold(self) -> None:
        database, damaged = self._parts.database, self.damage.documents
        known = {row[0] for row in database.read().execute("SELECT document FROM quarantine")}
        if known != damaged.keys() and not database.condition.read_only:
            with database.write() as connection:
                connection.execute("DELETE FROM quarantine")
                rows = [(row_id,) for row_id in damaged]
                connection.executemany("INSERT INTO quarantine VALUES (?, 'sum')", rows)
                bump(connection)

    def make_again(self) -> list[str]:
        """Drop damaged vectors, and have the next ingest read damaged documents; say so."""
        self.settle()
        done, database = [], self._parts.database
        if self.damage.vectors:
            with database.write() as connection:
                dropped = drop_damaged(connection, *VECTORS)
                bump(connection)
            done.append(f"{dropped} damaged vectors were dropped")
        if n := read_again(database):
            done.append(f"{n} damaged documents are read anew when their files are ingested again")
        return done


def damage_problems(damage: Damage) -> list[tuple[str, str]]:
    """Return what is wrong with the rows of the truth, each time without names and with them.

    Only who runs the machine may read names: they are those of every tenant.
    """
    lines = []
    for kind, (said, advice) in DAMAGED.items():
        if found := getattr(damage, kind):
            names = found.values() if kind == "documents" else found
            shown = "" if kind == "vectors" else _some(names)
            said = said.format(len(found))
            lines.append((f"{said}; {advice}", f"{said}{shown}; {advice}"))
    return lines + [(f"{n} {RECORDS[name]}",) * 2 for name, n in damage.records.items()]


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - 3} more" if len(listed) > 3 else ""
    return f" ({', '.join(listed[:3])}{more})" if listed else ""


def read_again(database: Database) -> int:
    """Make the next ingest read the files of damaged documents; return how many these are."""
    with database.write() as connection:
        drop_damaged(connection, *DERIVED)
        rows = connection.execute(
            f"""SELECT DISTINCT d.id FROM documents d LEFT JOIN chunks c ON c.document = d.id
                WHERE d.sum IS NOT {DOCUMENT} OR (c.id IS NOT NULL AND c.sum IS NOT {CHUNK})"""
        ).fetchall()
        for row in rows:
            connection.execute(
                """UPDATE files SET fingerprint = '' WHERE EXISTS (SELECT 1 FROM documents d
                   WHERE d.id = ? AND d.collection_id = files.collection_id
                       AND d.file = files.relative)""",
                (row[0],),
            )
            connection.execute("UPDATE documents SET content_hash = '' WHERE id = ?", (row[0],))
        sign(connection, "files", "f.fingerprint = ''")
    return len(rows)


def incomplete_documents(
    database: Database, model: str, collection_id: int, documents: Sequence[str]
) -> dict[str, str]:
    """Read documents of the journal back; return what each incomplete one lacks, by its id."""
    problems: dict[str, str] = {}
    for start in range(0, len(documents), MAX_VARIABLES):
        part = documents[start : start + MAX_VARIABLES]
        rows = database.read().execute(
            f"""SELECT j.document_id, j.chunks AS expected, count(c.id) AS found,
                    count(f.rowid) AS indexed, count(e.vector) AS embedded
                FROM journal j
                LEFT JOIN documents d
                    ON d.collection_id = j.collection_id AND d.document_id = j.document_id
                LEFT JOIN chunks c ON c.document = d.id
                LEFT JOIN {table(collection_id)} f ON f.rowid = c.id
                LEFT JOIN embeddings e ON e.content_hash = c.content_hash AND e.model = ?
                WHERE j.collection_id = ? AND j.stage = 'indexed'
                    AND j.document_id IN ({", ".join("?" * len(part))})
                GROUP BY j.document_id, j.chunks""",
            (model, collection_id, *part),
        )
        for name, expected, found, indexed, embedded in rows:
            if found != expected:
                problems[name] = f"{found} of its {expected} chunks are there"
            elif indexed < found:
                problems[name] = "its text is not in the full-text index"
            elif embedded < found:
                problems[name] = "it has no vector of the current model"
    return problems


def missing(store: StoreParts) -> list[str]:
    """Say what is beside the catalogue and speaks of rows that it does not have.

    That is the note of the last audit row, and segments of a later index version.
    """
    database = store.database
    found = [database.condition.lost] if database.condition.lost else []
    try:
        head, newest = read_head(store.folder), newest_segment(store)
        last = database.read().execute("SELECT coalesce(max(seq), 0) FROM audit").fetchone()[0]
        version = store.catalogue.index_version()
    except (sqlite3.DatabaseError, ValueError):  # a damaged catalogue, which is told otherwise
        return found
    if head is not None and head.seq > last:
        found.append(f"the audit rows {last + 1} to {head.seq} are gone")
    if newest > version:
        found.append(
            f"a search segment is of index version {newest}, the catalogue is of {version}"
        )
    return found


def newest_segment(store: StoreParts) -> int:
    """Return the highest index version of any segment's folder, 0 without one."""
    names = (path.name for home in ALL_FOLDERS for path in (store.folder / home).glob("*/*"))
    return max((int(match[1]) for name in names if (match := SEGMENT.fullmatch(name))), default=0)


def loss_problems(store: StoreParts) -> list[str]:
    """Say what is missing and what to do, for `carrel doctor`; nothing where nothing is lost."""
    if not store.database.condition.lost:
        return []
    lines = missing(store)
    with suppress(OSError, sqlite3.DatabaseError):
        known = {row[0] for row in store.database.read().execute("SELECT id FROM jobs")}
        folders = list((store.folder / "uploads").iterdir())
        if count := sum(path.name not in known for path in folders):
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
