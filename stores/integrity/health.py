"""Is everything that was ingested still there, and does it answer?"""

from __future__ import annotations

import platform
import shutil
import sqlite3
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from core.distribution import program_version
from stores.index.place import INDEX
from stores.integrity.checks import Check, fulltext_findings
from stores.integrity.condition import ROWS_LOST
from stores.integrity.rows import damage_problems, loss_problems
from stores.sqlite.catalogue import Collection

if TYPE_CHECKING:
    from stores.store import StoreParts


# SQLite 3.7.0 to 3.51.2 can lose a commit when two connections write at one moment in WAL mode.
WAL_RESET = ((3, 7, 0), (3, 51, 3))
MEGABYTE = 1 << 20


def versions(connection: sqlite3.Connection) -> dict[str, Any]:
    """Return the versions of what reads and writes the directory, and its format."""
    lowest, fixed = WAL_RESET
    own = isinstance(connection, sqlite3.Connection)  # else the catalogue is on a server
    affected = own and lowest <= sqlite3.sqlite_version_info < fixed
    return {
        "carrel": program_version(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "sqlite_note": (
            "this SQLite has the WAL-reset bug, which needs two connections that write at one"
            " moment; Carrel has one writer per data directory, but for keys and enqueued ingests"
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


NAMED = 20  # ids of each kind that are listed; chosen, not measured


def examine(store: StoreParts) -> dict[str, Any]:
    """Make every check, and compare the search index with the catalogue.

    `ok` is False when anything is missing or damaged; each problem says what to do. What was
    repaired when the directory was opened is a problem as well, once.
    """
    maintenance, connection = store.maintenance, store.database.read()
    maintenance.finish_check()
    lost = loss_problems(store)
    problems = lost + maintenance.repaired + _lines(maintenance.structure)
    damaged = damage_problems(maintenance.check_rows())
    problems += [named for _, named in damaged]
    collections = store.catalogue.collections()
    sets = [_sets(store, connection, one) for one in collections]
    problems += [line for one in sets for line in one.pop("problems")]
    problems += store.search.problems(collections)
    chunks = _count(connection, "SELECT count(*) FROM chunks")
    if unembedded := chunks - sum(one["vectors"] for one in sets):
        problems.append(
            f"{unembedded} chunks have no vector of the current model; run `carrel reindex`"
        )
    if left := maintenance.pending_erasure():
        problems.append(left.problem)
    orphans = maintenance.orphans.check()
    problems += [line for one in orphans for line in one.lines]
    problems += maintenance.check_sample() + _lines(maintenance.threads)
    place = connection.execute("SELECT value FROM meta WHERE key = ?", (INDEX,)).fetchone()
    used = sum(path.stat().st_size for path in store.folder.rglob("*") if path.is_file())
    known = {*problems, *(general for general, _ in damaged)}
    general = store.database.condition.warnings()
    problems += [one for one in general if one not in known and not (lost and ROWS_LOST in one)]
    return {
        "ok": not problems,
        "lost": store.database.condition.lost,
        "documents": _count(connection, "SELECT count(*) FROM documents"),
        "chunks": chunks,
        "fts_rows": sum(one["fts_rows"] for one in sets),
        "vectors": sum(one["vectors"] for one in sets),
        "index": place[0] if place else "",
        "problems": problems,
        "collections": sets,
        "embedders": dict(
            connection.execute("SELECT model, dimension FROM embedders ORDER BY model").fetchall()
        ),
        "pending": {"erasures": len(left.rows) if left else 0},
        "orphans": [one.why for one in orphans],
        "disk": {
            "used_mb": used // MEGABYTE,
            "free_mb": shutil.disk_usage(store.folder).free // MEGABYTE,
        },
        "versions": versions(connection),
        "seal": {"state": store.sealed.state, "changed": list(store.sealed.files)},
        "repaired": list(maintenance.repaired),
    }


def _lines(check: Check) -> list[str]:
    return [line for one in check.check() for line in one.lines]


def _count(connection: sqlite3.Connection, query: str, *values: object) -> int:
    return int(connection.execute(query, values).fetchone()[0])


def _sets(
    store: StoreParts, connection: sqlite3.Connection, collection: Collection
) -> dict[str, Any]:
    """Compare the full text of a collection, and the vectors of the model, with its chunks."""
    expected = _count(
        connection, "SELECT count(*) FROM chunks WHERE collection_id = ?", collection.id
    )
    rows = connection.execute(
        "SELECT c.chunk_id FROM chunks c WHERE c.collection_id = ? AND NOT EXISTS (SELECT 1"
        " FROM embeddings e WHERE e.content_hash = c.content_hash AND e.model = ?) ORDER BY c.id",
        (collection.id, store.model_id),
    )
    bare = [row[0] for row in rows]
    found = fulltext_findings(store.database, collection.id)
    query, missing = "SELECT chunk_id FROM chunks WHERE id = ?", found.missing[:NAMED]
    defect = found.defect(collection)
    return {
        "tenant": collection.tenant,
        "collection": collection.name,
        "chunks": expected,
        "fts_rows": found.rows,
        "fts_missing": [connection.execute(query, (row,)).fetchone()[0] for row in missing],
        "fts_orphans": found.orphans[:NAMED],
        "vectors": expected - len(bare),
        "vectors_missing": bare[:NAMED],
        "problems": list(defect.lines) if defect else [],
    }
