"""Is everything that was ingested still there, and does it answer?"""

from __future__ import annotations

import platform
import shutil
import sqlite3
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.distribution import program_version
from stores.index.folders import ALL_FOLDERS, WORDS
from stores.index.place import INDEX
from stores.integrity.condition import ROWS_LOST
from stores.integrity.findings import (
    damage_problems,
    fulltext_findings,
    structure_problems,
    threads_problem,
)
from stores.integrity.loss import loss_problems
from stores.runlog.conversations import THREADS
from stores.sqlite.catalogue import Collection

if TYPE_CHECKING:
    from stores.store import StoreParts


# SQLite 3.7.0 to 3.51.2 can lose a commit when two connections write at one moment in WAL mode.
WAL_RESET = ((3, 7, 0), (3, 51, 3))
MEGABYTE = 1 << 20
PART = ".part"


def versions(connection: sqlite3.Connection) -> dict[str, Any]:
    """Return the versions of what reads and writes the directory, and its format."""
    lowest, fixed = WAL_RESET
    affected = lowest <= sqlite3.sqlite_version_info < fixed
    return {
        "carrel": program_version(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "sqlite_note": (
            "this SQLite has the WAL-reset bug, which needs two connections that write at one"
            " moment; Carrel has one writer per data directory"
            if affected
            else ""
        ),
        "chromadb": _version("chromadb"),
        "format": connection.execute("PRAGMA user_version").fetchone()[0],
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def disk_space(folder: Path) -> dict[str, int]:
    """Return the megabytes that the directory takes and that are free beside it."""
    used = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return {"used_mb": used // MEGABYTE, "free_mb": shutil.disk_usage(folder).free // MEGABYTE}


def orphan_files(store: StoreParts) -> list[str]:
    """Return what lies in the directory and belongs to nothing, as paths below it.

    Segments that are not published, folders of an index that the directory does not have, and files
    that were being written when a process ended.
    """
    folder = store.folder
    connection = store.database.read()
    published = {
        f"{row[0]}/{row[1]}"
        for row in connection.execute("SELECT collection_id, name FROM segments")
    }
    found = [
        path
        for name in WORDS
        for home in _folders(folder / name)
        for path in _folders(home)
        if f"{home.name}/{path.name}" not in published
    ]
    found += [folder / name for name in ALL_FOLDERS if name not in store.search.folders]
    found += [path for path in folder.glob("*" + PART) if path.is_file()]
    return sorted(path.relative_to(folder).as_posix() for path in found if path.exists())


def _folders(home: Path) -> list[Path]:
    return [path for path in home.iterdir() if path.is_dir()] if home.is_dir() else []


NAMED = 20  # ids of each kind that are listed


def examine(store: StoreParts) -> dict[str, Any]:
    """Compare the search index with the catalogue.

    `ok` is False when anything is missing or damaged; each problem says what to do. What was
    repaired when the directory was opened is a problem as well, once.
    """
    store.maintenance.finish_check()
    connection = store.database.read()
    lost = loss_problems(store)
    problems = lost + store.maintenance.repaired
    damage = structure_problems(connection)
    problems += [f"the catalogue is damaged ({line}); restore a backup" for line in damage]
    damaged = store.maintenance.check_rows()
    problems += damage_problems(damaged, named=True)
    collections = store.catalogue.collections()
    chunks = _count(connection, "SELECT count(*) FROM chunks")
    sets = {one.id: _sets(store, connection, one) for one in collections}
    problems += [line for one in sets.values() for line in one.pop("problems")]
    problems += store.search.problems(collections)
    if unembedded := chunks - sum(one["vectors"] for one in sets.values()):
        problems.append(
            f"{unembedded} chunks have no vector of the current model; run `carrel reindex`"
        )
    if left := store.maintenance.pending_erasure():
        problems.append(left.problem)
    orphans = orphan_files(store)
    place = _recorded_index(connection)
    problems += [f"{path} belongs to nothing; run `carrel doctor --repair`" for path in orphans]
    problems += store.maintenance.check_sample()
    if broken := threads_problem(store.folder / THREADS):
        problems.append(broken)
    known = {*problems, *damage_problems(damaged, named=False)}
    general = store.database.condition.warnings()
    problems += [one for one in general if one not in known and not (lost and ROWS_LOST in one)]
    return {
        "ok": not problems,
        "lost": store.database.condition.lost,
        "documents": _count(connection, "SELECT count(*) FROM documents"),
        "chunks": chunks,
        "fts_rows": sum(one["fts_rows"] for one in sets.values()),
        "vectors": sum(one["vectors"] for one in sets.values()),
        "index": place,
        "problems": problems,
        "collections": list(sets.values()),
        "embedders": dict(
            connection.execute("SELECT model, dimension FROM embedders ORDER BY model").fetchall()
        ),
        "pending": {"erasures": len(left.rows) if left else 0},
        "orphans": orphans,
        "disk": disk_space(store.folder),
        "versions": versions(connection),
        "seal": {"state": store.sealed.state, "changed": list(store.sealed.files)},
        "repaired": list(store.maintenance.repaired),
    }


def _recorded_index(connection: sqlite3.Connection) -> str:
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (INDEX,)).fetchone()
    return str(row[0]) if row else ""


def _count(connection: sqlite3.Connection, query: str, *values: object) -> int:
    return int(connection.execute(query, values).fetchone()[0])


def _sets(
    store: StoreParts, connection: sqlite3.Connection, collection: Collection
) -> dict[str, Any]:
    """Compare the full text of a collection with its chunks."""
    expected = _count(
        connection, "SELECT count(*) FROM chunks WHERE collection_id = ?", collection.id
    )
    found = fulltext_findings(store.database, collection.id)
    bare = _without_vector(store, connection, collection.id)
    problems = []
    name = f"full text of '{collection.name}'"
    if found.error:
        problems.append(f"{name}: {found.error}; run `carrel reindex`")
    elif found.problem():
        problems.append(
            f"{name} has {found.rows} rows for {expected} chunks ({found.problem()});"
            " run `carrel reindex`"
        )
    return {
        "tenant": collection.tenant,
        "collection": collection.name,
        "chunks": expected,
        "fts_rows": found.rows,
        "fts_missing": _chunk_ids(connection, found.missing[:NAMED]),
        "fts_orphans": found.orphans[:NAMED],
        "vectors": expected - len(bare),
        "vectors_missing": bare[:NAMED],
        "problems": problems,
    }


def _chunk_ids(connection: sqlite3.Connection, rows: Iterable[int]) -> list[str]:
    query = "SELECT chunk_id FROM chunks WHERE id = ?"
    return [connection.execute(query, (row,)).fetchone()[0] for row in rows]


def _without_vector(
    store: StoreParts, connection: sqlite3.Connection, collection_id: int
) -> list[str]:
    """Return the ids of the chunks that have no vector of the current model."""
    rows = connection.execute(
        "SELECT c.chunk_id FROM chunks c WHERE c.collection_id = ? AND NOT EXISTS (SELECT 1"
        " FROM embeddings e WHERE e.content_hash = c.content_hash AND e.model = ?) ORDER BY c.id",
        (collection_id, store.model_id),
    )
    return [row[0] for row in rows]
