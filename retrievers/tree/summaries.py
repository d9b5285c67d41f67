"""The sentences that stand for a node: central, complete, none twice, in the order of the text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from core.types import Evidence
from models.vectors import central
from retrievers.extracts import Extract, central_sentences
from retrievers.tree.shape import TreeShape
from retrievers.types import Index, Vector

# Chosen, not measured, like the rest of these:
SENTENCES = 5  # of a summary at most: what a reader takes in at a glance
LEAST = 3  # sentences, where a node has as many members
PER_SENTENCE = 60  # tokens of a node for each sentence of its summary
NEAREST = 256  # leaves nearest to a node's middle, among which the central ones are looked for
READ = 12  # leaves, or documents, whose sentences are looked at
LEADING = 2  # leaves at the beginning of a document that say what it is about


class CentralSentence(NamedTuple):
    """Hold a sentence of a leaf as part of a summary."""

    leaf: int
    extract: Extract


def choose_sentences(
    index: Index,
    shape: TreeShape,
    node: int,
    read: Callable[[Iterable[int]], Mapping[int, Evidence]],
) -> list[CentralSentence]:
    """Return the sentences that stand for a node, of the leaves that `read` gives.

    Central leaves are found first, then among their sentences those that are central; of the
    beginning of a document the first that says what it is about leads.
    """
    inner = node < len(shape.nodes)
    leaves = _central_leaves(shape, node) if inner else shape.leaves_of(node).tolist()
    items = read(leaves)
    chunks: dict[str, Evidence] = {}
    within: dict[str, list[tuple[int, int]]] = {}
    places: dict[tuple[str, int], int] = {}
    for leaf in (one for one in leaves if one in items):
        key, place = items[leaf].chunk_id, shape.leaves[leaf]
        chunks[key] = items[leaf]
        within.setdefault(key, []).append((place.start, place.end))
        places[key, place.start] = leaf
    members = len(shape.nodes[node].children) + len(shape.nodes[node].own) if inner else 1
    most = max(min(LEAST, members), min(SENTENCES, shape.tokens(node) // PER_SENTENCE))
    opens = shape.leaves[leaves[0]].ordinal == 0
    subject = "" if opens and len(set(shape.documents[leaves].tolist())) == 1 else None
    found = central_sentences(
        index, list(chunks.values()), most, subject, strict=False, within=within
    )
    started = [
        (one, [a for a, b in within[one.item.chunk_id] if a <= one.start < b]) for one in found
    ]
    return [CentralSentence(places[one.item.chunk_id, starts[-1]], one) for one, starts in started]


def _central_leaves(shape: TreeShape, node: int) -> list[int]:
    """Return the leaves that a summary is made from, in the order of the text.

    Of several documents they are the beginnings of the central ones, which say what these are
    about; of one its own beginning and its central leaves.
    """
    leaves = shape.nodes[node].leaves
    documents, firsts = np.unique(shape.documents[leaves], return_index=True)
    if len(documents) == 1:
        return sorted(leaves[_central(shape, node, shape.vectors_of(leaves), (0,))].tolist())
    parts = np.split(leaves, firsts[1:])
    middles = np.array([shape.vectors_of(part).mean(axis=0) for part in parts])
    lengths = np.linalg.norm(middles, axis=1, keepdims=True)
    chosen = _central(shape, node, middles / np.maximum(lengths, 1e-9))
    return sorted(leaf for one in chosen for leaf in parts[one][:LEADING].tolist())


def _central(shape: TreeShape, node: int, rows: Vector, begin: tuple[int, ...] = ()) -> list[int]:
    """Return the places of central rows among those nearest to the middle of a node."""
    likeness = rows @ shape.vectors[node]
    likeness[list(begin)] = 2  # more than any cosine
    nearest = np.sort(np.argsort(-likeness, kind="stable")[:NEAREST])
    return [int(nearest[one]) for one in central(rows[nearest], READ, begin)]
