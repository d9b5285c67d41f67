"""The nodes over documents, changed along the path of one document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from retrievers.tree.clustering import Clusterer, soft_clusters
from retrievers.tree.recipe import DIMENSION, MOST_TOKENS, SUMMARY_TOKENS
from retrievers.types import Vector
from stores.ports import Trees
from stores.sqlite.tree import ROOT

# Probability from which a node takes a document. These densities are flatter than a mixture's: from
# 0.1, documents of the FastAPI pages had six parents each, where a whole build gives one.
SHARE = 0.35
# Documents below a node by which its middle is estimated, so that the path alone is read.
SAMPLE = 16  # chosen, not measured


class UpperTree:
    """Insert documents under the nodes that they are nearest to; `changed` is to be written."""

    def __init__(
        self,
        trees: Trees,
        collection_id: int,
        clusterer: Clusterer,
        members: Mapping[int, list[int]],
    ) -> None:
        """Change what has these members; vectors are read as they are needed."""
        self._trees, self._collection_id = trees, collection_id
        self._clusterer, self._members = clusterer, dict(members)
        self._vectors: dict[int, Vector | None] = {}
        self._tokens: dict[int, int] = {}
        self._last = max(self._members, default=0)
        self.changed: dict[int, list[int]] = {}

    def insert(self, row: int) -> None:
        """Give a document a place below each node that it belongs to."""
        vector = self._vector(row)
        if vector is None:
            return
        for node in self._targets(ROOT, vector):
            self._change(node, [*self._own(node), row])
            self._split(node)

    def _targets(self, node: int, vector: Vector) -> list[int]:
        """Return the lowest nodes whose members a document of this vector is like."""
        children = [-one for one in self._own(node) if one < 0 and self._vector(one) is not None]
        if not children:
            return [node]
        middles = np.array([self._vector(-one) for one in children])
        shares = self._shares(middles @ vector, children)
        chosen = [one for one, share in zip(children, shares, strict=True) if share >= SHARE]
        best = children[int(shares.argmax())]
        return list(
            dict.fromkeys(
                target for one in (chosen or [best]) for target in self._targets(one, vector)
            )
        )

    def _shares(self, cosines: Vector, children: Sequence[int]) -> Vector:
        """Return how likely each node has a vector, by von Mises-Fisher densities.

        All are as concentrated as documents are around their middles on average, in as many
        dimensions as clusters have.
        """
        pairs = [
            (self._vector(row), self._vector(-node))
            for node in children
            for row in self._sample(node, SAMPLE)
        ]
        apart = [1 - float(one @ two) for one, two in pairs if one is not None and two is not None]
        mean = max(float(np.mean(apart)) if apart else 1.0, 1e-3)
        logs = (DIMENSION - 1) / 2 / mean * (cosines - cosines.max())
        return np.asarray(np.exp(logs) / np.exp(logs).sum())

    def _split(self, node: int) -> None:
        """Cluster the members of a node again when they are too many, and those above it."""
        members = [one for one in self._own(node) if self._vector(one) is not None]
        tokens = np.array([self._size(one) for one in members])
        if tokens.sum() <= MOST_TOKENS:
            return
        vectors = np.array([self._vector(one) for one in members], dtype=np.float32)
        parts = soft_clusters(self._clusterer, vectors, tokens)
        made = [self._add([members[one] for one in part]) for part in parts]
        if node == ROOT:
            self._change(ROOT, [-one for one in made])
            return
        self._change(node, [])
        for parent in [one for one, own in self._members.items() if -node in own]:
            kept = [one for one in self._own(parent) if one != -node]
            self._change(parent, [*kept, *(-one for one in made)])
            self._split(parent)

    def _add(self, members: list[int]) -> int:
        self._last += 1
        self._change(self._last, members)
        return self._last

    def _change(self, node: int, members: list[int]) -> None:
        self._members[node] = self.changed[node] = list(dict.fromkeys(members))
        self._vectors.pop(-node, None)

    def _own(self, node: int) -> list[int]:
        """Return the members of a node, also nodes that have no document any more."""
        return self._members.get(node, [])

    def _size(self, member: int) -> int:
        return min(SUMMARY_TOKENS, self._tokens.get(member, SUMMARY_TOKENS))

    def _vector(self, member: int) -> Vector | None:
        """Return the unit vector of a document, or the middle of some below a node."""
        if member not in self._vectors:
            rows = [member] if member > 0 else self._sample(-member, SAMPLE)
            self._read([row for row in rows if row not in self._vectors])
            if member < 0:
                found = [row for row in map(self._vectors.get, rows) if row is not None]
                self._vectors[member] = _middle(found) if found else None
        return self._vectors[member]

    def _read(self, rows: Sequence[int]) -> None:
        found = self._trees.centres(self._collection_id, rows) if rows else {}
        for row in rows:
            known = found.get(row)
            self._vectors[row] = (
                None if known is None else _middle([known.vector.astype(np.float32)])
            )
            self._tokens[row] = known.tokens if known else 0

    def _sample(self, node: int, most: int) -> list[int]:
        """Return up to so many documents below a node, of all its branches."""
        members = self._own(node)
        share = -(-most // max(1, len(members)))
        step = max(1, len(members) // most)
        rows: list[int] = []
        for one in members[::step]:
            rows += [one] if one > 0 else self._sample(-one, share)
        return rows[:most]


def _middle(vectors: Sequence[Vector]) -> Vector:
    mean = np.mean(np.array(vectors, dtype=np.float32), axis=0)
    return np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-9))
