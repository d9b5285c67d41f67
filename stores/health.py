"""Is everything that was ingested still there, and does it answer?"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

from stores import canary
from stores.catalogue import Collection
from stores.condition import ROWS_LOST
from stores.conversations import THREADS
from stores.findings import damage_problems, fulltext_findings, structure_problems, threads_problem
from stores.inventory import disk_space, orphan_files, versions
from stores.loss import loss_problems
from stores.samples import vector_sample
from stores.store import Store

NAMED = 20  # ids of each kind that are listed


def examine(store: Store) -> dict[str, Any]:
    """Compare the derived indexes with the truth and ask the vector index what it must know.

    `ok` is False when anything is missing or damaged; each problem says what to do. What was
    repaired when the directory was opened is a problem as well, once.
    """
    store.checkup.finish()
    connection = store.database.read()
    lost = loss_problems(store)
    problems = lost + store.checkup.parts.repaired
    damage = structure_problems(connection)
    problems += [f"the catalogue is damaged ({line}); restore a backup" for line in damage]
    damaged = store.checkup.parts.rows()
    problems += damage_problems(damaged, named=True)
    collections = store.catalogue.collections()
    sets = {one.id: _sets(store, connection, one) for one in collections}
    problems += [line for one in sets.values() for line in one.pop("problems")]
    problems += store.hot.problems(collections)
    if unembedded := _without_vector(store, connection):
        problems.append(
            f"{unembedded} chunks have no vector of the current model; run `carrel reindex`"
        )
    if pending := store.outbox.pending():
        problems.append(
            f"{pending} changes have not reached the vector index; ingest again or reindex"
        )
    if left := store.erasure.pending():
        problems.append(left.problem)
    chunks = _count(connection, "SELECT count(*) FROM chunks")
    vectors = 0
    if chunks:
        found, vectors, compared = vector_sets(store)
        problems += found
        for key, values in compared.items():
            sets[key].update(values)
    orphans = orphan_files(store)
    problems += [f"{path} belongs to nothing; run `carrel doctor --repair`" for path in orphans]
    problems += store.checkup.sample()
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
        "vectors": vectors,
        "problems": problems,
        "collections": list(sets.values()),
        "embedders": dict(
            connection.execute("SELECT model, dimension FROM embedders ORDER BY model").fetchall()
        ),
        "pending": {"outbox": pending, "erasures": len(left.rows) if left else 0},
        "orphans": orphans,
        "disk": disk_space(store.folder),
        "versions": versions(connection),
        "seal": {"state": store.sealed.state, "changed": list(store.sealed.files)},
        "repaired": list(store.checkup.parts.repaired),
    }


def _count(connection: sqlite3.Connection, query: str, *values: object) -> int:
    return int(connection.execute(query, values).fetchone()[0])


def _sets(store: Store, connection: sqlite3.Connection, collection: Collection) -> dict[str, Any]:
    """Compare the full text of a collection with its chunks."""
    expected = _count(
        connection, "SELECT count(*) FROM chunks WHERE collection_id = ?", collection.id
    )
    found = fulltext_findings(store.database, collection.id)
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
        "problems": problems,
    }


def _chunk_ids(connection: sqlite3.Connection, rows: Iterable[int]) -> list[str]:
    query = "SELECT chunk_id FROM chunks WHERE id = ?"
    return [connection.execute(query, (row,)).fetchone()[0] for row in rows]


def _without_vector(store: Store, connection: sqlite3.Connection) -> int:
    return _count(
        connection,
        "SELECT count(*) FROM chunks c WHERE NOT EXISTS (SELECT 1 FROM embeddings e"
        " WHERE e.content_hash = c.content_hash AND e.model = ?)",
        store.model_id,
    )


def vector_sets(store: Store) -> tuple[list[str], int, dict[int, dict[str, Any]]]:
    """Ask the vector index in a child process, and compare its ids with the chunks'.

    Returns problems, the number of vectors, and what is missing or of no chunk by collection.
    """
    connection, collections = store.database.read(), store.catalogue.collections()
    sample = vector_sample(connection, collections, store.model_id)
    report = canary.probe(
        store.folder / "chroma",
        store.model_id,
        sample,
        timeout_s=store.checkup.probe_s,
        ids=True,
    )
    if "error" in report:
        return [f"the vector index: {report['error']}; run `carrel reindex`"], 0, {}
    problems: list[str] = []
    sets = {one.id: _compared(connection, one, report, problems) for one in collections}
    if report["missed"]:
        problems.append(
            f"the vector index does not find {report['missed']} of {report['asked']} of its own"
            " vectors; run `carrel reindex`"
        )
    if store.chroma.torn:
        problems.append(f"the vector index: {store.chroma.torn}; run `carrel reindex`")
    elif not problems:
        store.chroma.trust()
    return problems, sum(one["vectors"] for one in sets.values()), sets


def _compared(
    connection: sqlite3.Connection,
    collection: Collection,
    report: dict[str, Any],
    problems: list[str],
) -> dict[str, Any]:
    known = set(report.get("ids", {}).get(str(collection.id), ()))
    query = "SELECT chunk_id FROM chunks WHERE collection_id = ?"
    chunks = {row[0] for row in connection.execute(query, (collection.id,))}
    missing, orphans = sorted(chunks - known), sorted(known - chunks)
    if missing or orphans:
        problems.append(
            f"the vector index of '{collection.name}' has {len(known)} vectors for"
            f" {len(chunks)} chunks ({len(missing)} missing, {len(orphans)} of no chunk);"
            " run `carrel reindex`"
        )
    return {
        "vectors": len(known),
        "vectors_missing": missing[:NAMED],
        "vectors_orphans": orphans[:NAMED],
    }
