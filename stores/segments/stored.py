"""Vectors that are not in a segment: read from the catalogue when they are asked for."""

from __future__ import annotations

import numpy as np

from stores.segments.rows import vector_rows
from stores.segments.truth import tuples, vectors_by_row
from stores.segments.types import Floats, Integers
from stores.sqlite.database import Database


class StoredVectors:
    """Stand in the place of an array of vectors, shape (rows, dimension)."""

    def __init__(self, database: Database, model: str, ids: Integers) -> None:
        """Read vectors of `model` of the rows whose ids these are, ascending."""
        self._database = database
        self._model = model
        self._ids = ids
        query = "SELECT dimension FROM embedders WHERE model = ?"
        known = tuples(database.read(), query, (model,))
        self.shape = (len(ids), int(known[0][0]) if known else 0)

    def __getitem__(self, rows: Integers) -> Floats:
        """Return the vectors of rows in any order, NaN where one has none."""
        ids = self._ids[rows]
        found = vectors_by_row(self._database.read(), self._model, np.unique(ids))
        vectors = np.full((len(ids), self.shape[1]), np.nan, dtype=np.float32)
        if found:
            have = np.array([row for row, _ in found], dtype=np.int64)
            read, _ = vector_rows([blob for _, blob in found], self.shape[1])
            places = np.searchsorted(have, ids).clip(max=len(have) - 1)
            there = have[places] == ids
            vectors[there] = read[places[there]]
        return vectors
