"""Copy the truth of a data directory at one moment, while others go on writing."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from core.errors import OperatorError
from stores.accounts.audit_chain import HEAD_FILE, KEY_FILE
from stores.backup.manifest import CATALOGUE, facts_of
from stores.index.place import INDEX, INDEX_ID
from stores.integrity.witness import KEY as COMMITS
from stores.runlog.conversations import THREADS
from stores.sqlite.database import Database, explained
from stores.sqlite.schema import FORMAT

# Tables whose rows are derived; the virtual tables of full text are left out with all theirs.
DERIVED = frozenset({"segments", "dead_chunks", "indexed_vectors"})
FULL_TEXT = "fts_"
BUSY_S = 30.0
OUT = "copied"

Progress = Callable[[str, int, int], None]


def snapshot(database: Database, folder: Path, progress: Progress) -> dict[str, object]:
    """Copy catalogue, conversations and the key of the audit log into an empty folder.

    Catalogue and conversations are of one moment: both snapshots begin while the catalogue's one
    writer waits, and a turn's state is always written before the catalogue names it. Returns the
    facts of the manifest.
    """
    data = database.path.parent
    with (
        explained(database.path),
        _copying(database.path, folder / CATALOGUE) as catalogue,
        _copying(data / THREADS, folder / THREADS) as threads,
    ):
        with database.write():
            for connection in filter(None, (catalogue, threads)):
                connection.execute("BEGIN")
                connection.execute("SELECT count(*) FROM main.sqlite_schema").fetchone()
            for name in (KEY_FILE, HEAD_FILE):
                if (data / name).exists():
                    shutil.copyfile(data / name, folder / name)
        assert catalogue is not None  # an open store has one
        _copy(catalogue, progress)
        if threads is not None:
            _copy(threads, lambda stage, done, total: None)
    with closing(sqlite3.connect(folder / CATALOGUE)) as copied:
        # It counts for itself, and has an index of its own.
        copied.execute("DELETE FROM meta WHERE key IN (?, ?, ?)", (COMMITS, INDEX, INDEX_ID))
        copied.commit()
        damage = [row[0] for row in copied.execute("PRAGMA quick_check(3)") if row[0] != "ok"]
        if damage:
            raise OperatorError(
                "the catalogue is damaged, so it cannot be backed up",
                value="; ".join(damage),
                hint="`carrel doctor` tells more; keep the backups there are",
            )
        return facts_of(copied)


@contextmanager
def _copying(source: Path, target: Path) -> Iterator[sqlite3.Connection | None]:
    """Open a file with its copy attached; None where there is no such file."""
    if not source.exists():
        yield None
        return
    with closing(sqlite3.connect(source, isolation_level=None, timeout=BUSY_S)) as connection:
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute(f"ATTACH DATABASE ? AS {OUT}", (str(target),))
        for pragma in ("journal_mode=OFF", "synchronous=OFF"):
            connection.execute(f"PRAGMA {OUT}.{pragma}")
        yield connection


def _copy(connection: sqlite3.Connection, progress: Progress) -> None:
    """Copy the tables with their rows, then indexes and triggers, and end the snapshot."""
    rows = connection.execute(
        "SELECT type, name, sql FROM main.sqlite_schema WHERE sql IS NOT NULL"
        " ORDER BY type = 'trigger', type = 'index', rowid"
    ).fetchall()
    wanted = [row for row in rows if not row[1].startswith((FULL_TEXT, "sqlite_"))]
    for done, (kind, name, sql) in enumerate(wanted):
        connection.execute(placed(kind, sql))
        if kind == "table" and name not in DERIVED:
            connection.execute(f'INSERT INTO {OUT}."{name}" SELECT * FROM main."{name}"')
        progress("copy", done + 1, len(wanted))
    connection.execute(f"PRAGMA {OUT}.user_version = {FORMAT}")
    connection.execute("COMMIT")


def placed(kind: str, sql: str) -> str:
    """Return the statement that made something, for the copy in place of the original."""
    words = "CREATE UNIQUE INDEX" if sql.startswith("CREATE UNIQUE") else f"CREATE {kind.upper()}"
    return f"{words} {OUT}.{sql.removeprefix(words).lstrip()}"
