"""Build a collection's tree and keep it up: documents first, then the nodes over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic

import numpy as np

from core.errors import ModelError
from models.vectors import scale_rows
from retrievers.tree.clustering import (
    Clusterer,
    NumpyClusterer,
    Places,
    UmapClusterer,
    soft_clusters,
)
from retrievers.tree.leaves import LeafSpan, cut_leaves, described_leaf
from retrievers.tree.shape import DIMENSION, LAYERS, MOST_TOKENS, PATH, SUMMARY_TOKENS, recipe_of
from retrievers.types import Index, Vector
from stores.ports import Trees
from stores.sqlite.tree import ROOT, DocumentTree, TreeLeaf, TreeSource, as_bytes

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


TOGETHER = 32  # documents of one transaction; chosen, not measured
# Of the documents: with more new ones the nodes over documents are made again; chosen.
NEW = 0.3

Progress = Callable[[str, int, int], None]


def silent(stage: str, done: int, total: int) -> None:
    """Take progress that nobody watches."""


@dataclass(frozen=True)
class TreeChanges:
    """Say how many documents came into a tree, and how long it took."""

    documents: int
    seconds: float


def build_tree(index: Index, progress: Progress = silent, *, fresh: bool = False) -> TreeChanges:
    """Build what a collection's tree lacks, with `fresh` all of it; nothing is done twice.

    Every batch of documents is kept at once, so an interruption costs one. Raises ModelError
    without an embedder.
    """
    started = monotonic()
    if index.embedder is None:
        rule = "a tree needs the embedder of its collection"
        raise ModelError(rule, value=index.keywords_only, hint="see `carrel doctor`")
    trees, collection_id = index.trees, index.collection.id
    recipe = recipe_of(index)
    if fresh or any(one != recipe for one in trees.recipes(collection_id)):
        trees.clear(collection_id)
    by_umap = index.settings.ingest.tree_reducer == "umap"
    clusterer = UmapClusterer() if by_umap else NumpyClusterer()
    rows = trees.unbuilt(collection_id, recipe)
    builder = DocumentBuilder(index, clusterer)
    for at in range(0, len(rows), TOGETHER):
        progress("tree", at, len(rows))
        made = builder.build(rows[at : at + TOGETHER])
        trees.write_documents(collection_id, recipe, made)
    progress("tree", len(rows), len(rows))
    _place(index, clusterer, recipe)
    return TreeChanges(len(rows), round(monotonic() - started, 3))


def _place(index: Index, clusterer: Clusterer, recipe: str) -> None:
    """Give each document with leaves a place under the nodes over documents."""
    trees, collection_id = index.trees, index.collection.id
    unplaced = trees.unplaced(collection_id, recipe)
    if not unplaced:
        return
    known = trees.members(collection_id)
    placed = {row for members in known.values() for row in members if row > 0}
    if len(unplaced) <= NEW * len(placed):
        upper = UpperTree(trees, collection_id, clusterer, known)
        for row in unplaced:
            upper.insert(row)
        trees.replace_members(collection_id, upper.changed)
        return
    centres = trees.centres(collection_id)
    members: dict[int, list[int]] = {}

    def join(places: Sequence[int]) -> int:
        members[len(members) + 1] = list(places)
        return -len(members)

    rows = list(centres)
    vectors = scale_rows(np.array([centres[row].vector for row in rows], dtype=np.float32))
    tokens = np.array([min(SUMMARY_TOKENS, centres[row].tokens) for row in rows])
    members_of_root = layers(clusterer, rows, vectors, tokens, join)
    trees.replace_members(collection_id, {**members, 0: members_of_root}, whole=True)


def layers(
    clusterer: Clusterer,
    members: Sequence[int],
    vectors: Vector,
    tokens: Places,
    join: Callable[[Sequence[int]], int],
) -> list[int]:
    """Cluster members into nodes, layer by layer, until few are left; return those.

    `join` makes a node of members and returns its number.
    """
    left = list(members)
    for _ in range(LAYERS):
        if len(left) <= DIMENSION + 1:
            break
        parts = soft_clusters(clusterer, vectors, tokens)
        if len(parts) >= len(left):
            break
        left = [left[p[0]] if len(p) == 1 else join([left[one] for one in p]) for p in parts]
        vectors = scale_rows(np.array([vectors[part].mean(axis=0) for part in parts]))
        tokens = np.array([min(SUMMARY_TOKENS, int(tokens[part].sum())) for part in parts])
    return list(dict.fromkeys(left))


class DocumentBuilder:
    """Build the parts of single documents."""

    def __init__(self, index: Index, clusterer: Clusterer) -> None:
        """Take vectors of sentences from the index, and embed what it has none of."""
        self._index, self._clusterer = index, clusterer

    def build(self, rows: Sequence[int]) -> dict[int, DocumentTree]:
        """Return the part of each document by row id; one that is gone is left out."""
        sources = list(self._index.trees.sources(rows))
        spans = [list(cut_leaves(one.chunks)) for one in sources]
        vectors = self._vectors([span for own in spans for span in own])
        made, first = {}, 0
        for source, own in zip(sources, spans, strict=True):
            part = vectors[first : first + len(own)]
            made[source.row] = self._document(source, own, part)
            first += len(own)
        return made

    def _document(
        self, source: TreeSource, spans: Sequence[LeafSpan], vectors: Vector
    ) -> DocumentTree:
        if not spans:
            return DocumentTree()
        leaves = tuple(described_leaf(span, source) for span in spans)
        nodes = list(_Sections(self._clusterer, leaves, vectors).nodes())
        return DocumentTree(leaves, tuple(nodes), as_bytes(vectors))

    def _vectors(self, spans: Sequence[LeafSpan]) -> Vector:
        """Return a unit vector for each leaf: the mean of its sentences', else its own."""
        assert self._index.embedder is not None  # see `build_tree`
        keys = list(dict.fromkeys(span.chunk.chunk_id for span in spans))
        kept = self._index.search.sentence_vectors(self._index.collection.id, keys)
        counts = _sentence_counts(spans)
        rows: list[Vector | None] = []
        for span in spans:
            own, (start, end) = kept.get(span.chunk.chunk_id), span.sentences
            known = own is not None and len(own) == counts[span.chunk.chunk_id]
            rows.append(own[start:end].mean(axis=0) if own is not None and known else None)
        missing = [place for place, row in enumerate(rows) if row is None]
        if missing:
            made = self._index.embedder.embed_documents([spans[place].text for place in missing])
            for place, row in zip(missing, made, strict=True):
                rows[place] = row
        return (
            scale_rows(np.array(rows, dtype=np.float32)) if rows else np.empty((0, 0), np.float32)
        )


def _sentence_counts(spans: Sequence[LeafSpan]) -> dict[str, int]:
    """Return how many sentences each chunk has, by the last leaf of it."""
    counts: dict[str, int] = {}
    for span in spans:
        counts[span.chunk.chunk_id] = span.sentences[1]
    return counts


class _Sections:
    """Make the nodes of one document: its sections in the order of the text, clusters in them."""

    def __init__(self, clusterer: Clusterer, leaves: Sequence[TreeLeaf], vectors: Vector) -> None:
        self._clusterer, self._vectors = clusterer, vectors
        self._paths = [leaf.section.split(PATH) if leaf.section else [] for leaf in leaves]
        self._tokens = np.array([leaf.tokens for leaf in leaves])
        self._made: list[tuple[int, ...]] = []
        self._below: list[list[int]] = []  # the leaves of each node

    def nodes(self) -> Iterator[tuple[int, ...]]:
        """Yield the members of each node, those of the root last."""
        top = self._grow(list(range(len(self._paths))), 0)
        if top >= 0:
            self._join([top])
        yield from self._made

    def _join(self, members: Sequence[int]) -> int:
        self._made.append(tuple(members))
        self._below.append([leaf for one in members for leaf in self._leaves(one)])
        return -len(self._made)

    def _leaves(self, member: int) -> list[int]:
        return [member] if member >= 0 else self._below[-1 - member]

    def _grow(self, leaves: list[int], depth: int) -> int:
        if len(leaves) == 1:
            return leaves[0]
        groups = list(self._sections(leaves, depth))
        if len(groups) == 1 and any(len(self._paths[one]) > depth + 1 for one in leaves):
            return self._grow(leaves, depth + 1)
        members = [self._grow(one, depth + 1) for one in groups] if len(groups) > 1 else leaves
        vectors = np.array([self._vectors[self._leaves(one)].mean(axis=0) for one in members])
        sums = [int(self._tokens[self._leaves(one)].sum()) for one in members]
        tokens = [
            n if one >= 0 else min(SUMMARY_TOKENS, n) for one, n in zip(members, sums, strict=True)
        ]
        rest = layers(self._clusterer, members, scale_rows(vectors), np.array(tokens), self._join)
        return rest[0] if len(rest) == 1 else self._join(rest)

    def _sections(self, leaves: Sequence[int], depth: int) -> Iterator[list[int]]:
        group: list[int] = []
        for leaf in leaves:
            if group and self._paths[leaf][: depth + 1] != self._paths[group[-1]][: depth + 1]:
                yield group
                group = []
            group.append(leaf)
        yield group
