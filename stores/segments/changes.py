"""What changed in the truth after rows were read: the dead, and vectors that came later."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from stores.segments.rows import vector_rows
from stores.segments.truth import dead_rows, vectors_by_row
from stores.segments.types import Booleans, Integers, Part
from stores.segments.view import Late, joined


def live_rows(
    connection: sqlite3.Connection, collection_id: int, parts: tuple[Part, ...]
) -> Booleans | None:
    """Return which rows are alive, None when all are."""
    import numpy as np

    dead = dead_rows(connection, collection_id)
    ids: Integers = joined([part.ids for part in parts])
    if not len(dead) or not len(ids):
        return None
    gone = np.isin(ids, dead)
    return ~gone if gone.any() else None


def late_vectors(connection: sqlite3.Connection, model: str, parts: tuple[Part, ...]) -> Late:
    """Return the vectors that rows got after they were read."""
    import numpy as np

    empty = Late(np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.float32))
    ids, has = joined([p.ids for p in parts]), joined([p.has_vector for p in parts])
    if has.all():
        return empty
    found = vectors_by_row(connection, model, ids[~has])
    if not found:
        return empty
    dimension = max(part.vectors.shape[1] for part in parts) or len(found[0][1]) // 4
    vectors, whole = vector_rows([blob for _, blob in found], dimension)
    late = np.array([row for row, _ in found], dtype=np.int64)
    return Late(np.searchsorted(ids, late[whole]), vectors[whole])


def without_vectors(part: Part) -> Part:
    """Return a part whose vectors are of another model, as one that has none."""
    import numpy as np

    rows = len(part.ids)
    sentences = replace(part.sentences, ends=np.zeros(rows, dtype=np.int64))
    return replace(
        part,
        vectors=np.zeros((rows, 0), dtype=np.float32),
        has_vector=np.zeros(rows, dtype=np.bool_),
        sentences=sentences,
    )
