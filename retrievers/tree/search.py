"""Search a tree by meaning and words, from the top down or over all nodes at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from core.language.analysis import content_terms
from core.types import Evidence
from retrievers.tree.shape import SUMMARY_TOKENS
from retrievers.tree.view import TreeView
from retrievers.types import Vector

TREE = "tree"  # the name of its score
COMPARED = 200  # nodes and leaves nearest by meaning whose words are compared; chosen, not measured


@dataclass(frozen=True)
class TreeQuery:
    """Say how a tree is searched.

    `traversal` follows the `nearest` nodes of each layer, from `start_layer` below the root
    down to `depth` layers further, none farther than `threshold` (0..1); `collapsed` takes the
    nearest of all nodes and leaves, as many as fit into `tokens`. With `words` a hit is as far as
    its farthest of meaning, questions and keywords.
    """

    text: str
    vector: Vector
    language: str | None = None
    mode: Literal["traversal", "collapsed"] = "traversal"
    words: bool = False
    nearest: int = 6
    depth: int = 20
    threshold: float = 1.0
    start_layer: int = 0
    tokens: int = 3000


class TreeHit(NamedTuple):
    """Point to the passage of a leaf, with 1 − its distance."""

    item: Evidence
    score: float


def jaccard(one: Iterable[str], other: Iterable[str]) -> float:
    """Return the share of the words of either that both have; 0 where there are none."""
    first, second = set(one), set(other)
    return len(first & second) / len(first | second) if first | second else 0.0


class TreeSearch:
    """Rank the nodes and leaves of one caller's tree by one question.

    A node has its place in the shape, a leaf the place behind all nodes.
    """

    def __init__(self, view: TreeView, query: TreeQuery) -> None:
        self._view, self._shape, self._query = view, view.shape, query
        self._first = len(view.nodes)
        self._terms = frozenset(content_terms(query.text, query.language))

    def hits(self) -> list[TreeHit]:
        """Return the passages that are nearest, best first, each leaf once."""
        found = self._collapsed() if self._query.mode == "collapsed" else self._traversed()
        chosen: dict[int, float] = {}
        for place, distance in found:
            if place >= self._first:
                chosen.setdefault(place - self._first, 1 - distance)
                continue
            for one in self._view.sentences(place):  # what stands for a node
                chosen.setdefault(one.leaf, 1 - distance)
        items = self._view.evidence(chosen)
        return [TreeHit(items[leaf], score) for leaf, score in chosen.items() if leaf in items]

    def _ranked(self, places: Sequence[int]) -> list[tuple[int, float]]:
        given = np.array(places, dtype=np.int64)
        rows = np.concatenate(
            [
                self._shape.vectors[given[given < self._first]],
                self._shape.vectors_of(given[given >= self._first] - self._first),
            ]
        )
        given = np.concatenate([given[given < self._first], given[given >= self._first]])
        far = 1 - rows @ self._query.vector
        order = np.argsort(far, kind="stable")[: COMPARED if self._query.words else None]
        near = [(int(given[one]), float(far[one])) for one in order]
        if not self._query.words:
            return near
        return sorted(
            ((place, self._distance(place, distance)) for place, distance in near),
            key=lambda one: one[1],
        )

    def _distance(self, place: int, distance: float) -> float:
        """Return max(1 − cosine, 1 − Jaccard of questions, 1 − Jaccard of keywords), SPEC R3."""
        if place < self._first:
            questions, keywords = self._shape.questions(place), self._shape.terms(place)
        else:
            leaf = self._shape.leaves[place - self._first]
            questions, keywords = list(leaf.questions), [term for term, _ in leaf.keywords]
        asked = content_terms("\n".join(questions), self._query.language)
        return max(
            distance,
            1 - jaccard(self._terms, asked),
            1 - jaccard(self._terms, keywords),
        )

    def _collapsed(self) -> list[tuple[int, float]]:
        room = self._query.tokens
        found: list[tuple[int, float]] = []
        for place, distance in self._ranked(range(self._first + len(self._shape.leaves))):
            room -= self._size(place)
            if (found and room < 0) or distance > self._query.threshold:
                break
            found.append((place, distance))
        return found

    def _size(self, place: int) -> int:
        if place >= self._first:
            return self._shape.leaves[place - self._first].tokens
        return min(SUMMARY_TOKENS, self._shape.tokens(place))

    def _traversed(self) -> list[tuple[int, float]]:
        layer = [0] if self._view.nodes else []
        for _ in range(self._query.start_layer):
            layer = self._below(layer) or layer
        for _ in range(self._query.depth):
            near = self._ranked(layer)[: self._query.nearest]
            kept = [place for place, distance in near if distance <= self._query.threshold]
            below = self._below(kept)
            if not below or below == layer:
                break
            layer = below
        return [
            (place, distance)
            for place, distance in self._ranked(layer)[: self._query.nearest]
            if distance <= self._query.threshold
        ]

    def _below(self, places: Sequence[int]) -> list[int]:
        """Return the members of nodes, leaves as they are."""
        found: dict[int, None] = {}
        for place in places:
            if place >= self._first:
                found[place] = None
                continue
            node = self._view.nodes[place]
            found |= dict.fromkeys([*node.children, *(self._first + leaf for leaf in node.own)])
        return list(found)
