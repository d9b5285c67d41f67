"""The nodes that a set of visible documents makes of a tree; nothing here knows a text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from math import log1p

import numpy as np
from numpy.typing import NDArray

from models.vectors import scale_rows
from retrievers.types import Index, Vector
from stores.sqlite.tree import ROOT, Bytes, DocumentTree, TreeLeaf, TreeRecord

LEAF_TOKENS = 100  # of a leaf, SPEC R1
MOST_TOKENS = 3500  # of the texts below a node; more are clustered again, SPEC R1
DIMENSION = 10  # of the reduced vectors, as in RAPTOR (arXiv:2401.18059)
LAYERS = 5  # of clusters over one another at most, as in RAPTOR
# Of a node's text where it is a member of another: its summary's; chosen, not measured.
SUMMARY_TOKENS = 150
VERSION = 2  # raise it when leaves are cut, described or clustered otherwise


def recipe_of(index: Index) -> str:
    """Name how a tree is made, with which reducer and model: one of another recipe is rebuilt."""
    model = index.embedder.model_id if index.embedder else ""
    reducer = index.settings.ingest.tree_reducer
    return f"{VERSION}/{LEAF_TOKENS}/{MOST_TOKENS}/{DIMENSION}/{reducer}/{model}"


Places = NDArray[np.int64]
KEYWORDS = 10  # of a node, SPEC R2
QUESTIONS = 5  # of a node, SPEC R2
# Leaves of a node whose questions are looked at, the most central; chosen, not measured.
ASKED = 64


@dataclass(frozen=True, eq=False)
class TreeNode:
    """Hold a node as it is seen: `leaves` are the places of all leaves below it, sorted.

    `children` are places of nodes, `own` of leaves directly below. A leaf has level 0.
    """

    node_id: str
    level: int
    leaves: Places
    children: tuple[int, ...]
    own: tuple[int, ...]


class TreeShape:
    """Hold what of a tree stands on some documents alone, the root first, parents before children.

    All of it is a function of those documents' leaves and of how they hang together: a node with
    one member is that member, and of nodes with the same leaves there is one.
    """

    def __init__(self, record: TreeRecord, visible: set[int], secret: str) -> None:
        """Take the documents that are visible; `secret` makes ids of nodes unpredictable."""
        self.nodes: list[TreeNode] = []
        self.leaves: list[TreeLeaf] = []
        documents: list[int] = []
        parts: list[Bytes] = []
        self._secret = secret.encode()
        self._known: dict[int, list[tuple[str, str]]] = {}
        self._first: dict[int, int] = {}
        self._trees = {
            row: tree for row, tree in record.documents.items() if row in visible and tree.nodes
        }
        for row, tree in self._trees.items():
            self._first[row] = len(self.leaves)
            self.leaves.extend(tree.leaves)
            documents += [row] * len(tree.leaves)
            parts.append(tree.vectors)
        self.documents: Places = np.array(documents, dtype=np.int64)
        self._bytes = np.concatenate(parts) if parts else np.empty((0, 1), np.int8)
        found = _Members(record, self._trees, self._first).branches()
        places = {branch.key: place for place, branch in enumerate(found)}
        for branch in found:
            children = tuple(places[one.key] for one in branch.children)
            node_id = self.identify(branch.leaves)
            self.nodes.append(
                TreeNode(node_id, branch.level, branch.leaves, children, tuple(branch.own))
            )

    def leaves_of(self, place: int) -> Places:
        """Return the leaves below a node; a leaf itself has a place behind all nodes."""
        behind = place - len(self.nodes)
        return self.nodes[place].leaves if behind < 0 else np.array([behind], dtype=np.int64)

    def below(self, place: int) -> list[int]:
        """Return the places of the nodes right below a node, and of documents of one leaf."""
        if place >= len(self.nodes):
            return []
        node = self.nodes[place]
        alone = (leaf for leaf in node.own if (self.documents == self.documents[leaf]).sum() == 1)
        return [*node.children, *(len(self.nodes) + leaf for leaf in alone)]

    def identify(self, leaves: Places) -> str:
        """Return the id of a node: a keyed hash of which leaves it has."""
        rows = self.documents[leaves]
        first = np.array([self._first[row] for row in rows.tolist()], dtype=np.int64)
        named = np.stack([rows, leaves - first]).tobytes()
        return blake2b(named, digest_size=8, key=self._secret[:64]).hexdigest()

    def vectors_of(self, leaves: Places | Sequence[int]) -> Vector:
        """Return the unit vectors of leaves, shape (n, dimension)."""
        return scale_rows(self._bytes[leaves].astype(np.float32))

    @cached_property
    def vectors(self) -> Vector:
        """Return the unit vector of each node, the mean of its leaves, shape (n, dimension)."""
        means = [self.vectors_of(node.leaves).mean(axis=0) for node in self.nodes]
        rows = np.array(means, dtype=np.float32).reshape(len(means), self._bytes.shape[1])
        return scale_rows(rows)

    def tokens(self, node: int) -> int:
        """Return how many tokens the leaves of a node have."""
        return sum(self.leaves[leaf].tokens for leaf in self.leaves_of(node).tolist())

    @cached_property
    def _rarity(self) -> dict[str, float]:
        """Return by term how rare it is among the leaves, squared: common words tell little."""
        counts = Counter(term for leaf in self.leaves for term, _ in leaf.keywords)
        return {term: log1p(len(self.leaves) / count) ** 2 for term, count in counts.items()}

    def keywords(self, node: int) -> list[str]:
        """Return up to 10 keywords of a node, as they are written, the most telling first."""
        return [written for _, written in self._keywords(node)]

    def terms(self, node: int) -> list[str]:
        """Return the keywords of a node as index terms, in the same order."""
        return [term for term, _ in self._keywords(node)]

    def _keywords(self, node: int) -> list[tuple[str, str]]:
        """Return (term, as it is mostly written) of the terms with most tf-idf over leaves."""
        if node not in self._known:
            own = (self.leaves[leaf].keywords for leaf in self.leaves_of(node).tolist())
            pairs = Counter(pair for keywords in own for pair in keywords)
            counts: Counter[str] = Counter()
            written: dict[str, str] = {}
            for (term, shown), count in pairs.most_common():
                counts[term] += count
                written.setdefault(term, shown)
            best = sorted(counts, key=lambda term: -counts[term] * self._rarity[term])
            found = {written[term].casefold(): (term, written[term]) for term in reversed(best)}
            self._known[node] = list(reversed(found.values()))[:KEYWORDS]
        return self._known[node]

    def questions(self, node: int) -> list[str]:
        """Return up to 5 questions that a node may answer, those of its central leaves."""
        leaves = self.leaves_of(node)
        rows = self.vectors_of(leaves)
        likeness = rows @ rows.mean(axis=0)
        central = leaves[np.argsort(-likeness, kind="stable")[:ASKED]].tolist()
        asked = dict.fromkeys(one for leaf in central for one in self.leaves[leaf].questions)
        words = [self.section(node).split(PATH)[-1], *self.keywords(node)]
        return choose_questions(list(asked), [word for word in words if word])

    def section(self, node: int) -> str:
        """Return the heading path that all leaves of a node in one document share, "" for none."""
        leaves = self.leaves_of(node)
        own = [self.leaves[leaf].section for leaf in leaves.tolist()]
        if len(set(self.documents[leaves].tolist())) != 1:
            return ""
        return PATH.join(common_path([section.split(PATH) for section in own]))


PATH = " › "  # between the headings of a chunk's section


def choose_questions(asked: Sequence[str], keywords: Sequence[str]) -> list[str]:
    """Return up to 5 questions that together name as many keywords as they can, the first best."""
    left = [one.casefold() for one in keywords]
    chosen: list[str] = []
    while len(chosen) < min(QUESTIONS, len(asked)):
        named = [
            -1 if one in chosen else sum(word in one.casefold() for word in left) for one in asked
        ]
        best = asked[named.index(max(named))]
        chosen.append(best)
        left = [word for word in left if word not in best.casefold()]
    return chosen


def common_path(paths: Sequence[Sequence[str]]) -> list[str]:
    """Return the beginning that paths share."""
    shared: list[str] = []
    for parts in zip(*paths, strict=False):
        if len(set(parts)) > 1 or not parts[0]:
            break
        shared.append(parts[0])
    return shared


@dataclass(eq=False)
class _Branch:
    """Hold a node on the way to a shape."""

    children: list[_Branch]
    own: list[int]
    leaves: Places

    @property
    def key(self) -> bytes:
        return self.leaves.tobytes()

    @cached_property
    def level(self) -> int:
        return 1 + max((one.level for one in self.children), default=0)


class _Members:
    """Follow the members of nodes from the root down, as far as they are visible."""

    def __init__(
        self, record: TreeRecord, trees: Mapping[int, DocumentTree], first: Mapping[int, int]
    ) -> None:
        self._record, self._trees, self._first = record, trees, first
        self._made: dict[int, _Branch | int | None] = {}
        self._known: dict[bytes, _Branch] = {}

    def branches(self) -> list[_Branch]:
        """Return the branches below the root, the highest first."""
        root = self._node(ROOT)
        if isinstance(root, int):
            root = _Branch([], [root], np.array([root]))
        found = {} if root is None else {root.key: root}
        layer = list(found.values())
        while layer:
            layer = [one for branch in layer for one in branch.children if one.key not in found]
            found |= {one.key: one for one in layer}
        return sorted(found.values(), key=lambda one: (-one.level, one.leaves[0], -len(one.leaves)))

    def _node(self, number: int) -> _Branch | int | None:
        """Return the branch of a node over documents, a leaf that stands for it, or None."""
        if number not in self._made:
            self._made[number] = None  # a damaged tree may lead back here
            members = self._record.members.get(number, ())
            self._made[number] = self._join(
                self._document(one) if one > 0 else self._node(-one) for one in members
            )
        return self._made[number]

    def _document(self, row: int) -> _Branch | int | None:
        tree = self._trees.get(row)
        made: list[_Branch | int | None] = []
        for members in tree.nodes if tree else ():
            parts = (self._first[row] + one if one >= 0 else made[-1 - one] for one in members)
            made.append(self._join(parts))
        return made[-1] if made else None

    def _join(self, parts: Iterator[_Branch | int | None]) -> _Branch | int | None:
        """Join members to a branch; one alone, or one with all leaves, stands for itself."""
        found = list(dict.fromkeys(one for one in parts if one is not None))
        if len(found) < 2:
            return found[0] if found else None
        children = [one for one in found if isinstance(one, _Branch)]
        own = [one for one in found if isinstance(one, int)]
        leaves = np.unique(np.concatenate([np.array(own, np.int64), *(c.leaves for c in children)]))
        return self._known.setdefault(leaves.tobytes(), _Branch(children, own, leaves))
