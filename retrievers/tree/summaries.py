"""The sentences that stand for a node: central, complete, none twice, in the order of the text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from core.language.orders import gives_orders
from core.language.passages import standalone
from core.language.sentences import sentence_spans
from core.types import Evidence
from models.vectors import central
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
    """Hold text[start:end] of the chunk that a piece of evidence is, as part of a summary."""

    leaf: int
    evidence: Evidence
    start: int
    end: int

    @property
    def text(self) -> str:
        """Return the sentence as it stands there."""
        return self.evidence.text[self.start : self.end]


def choose_sentences(
    index: Index,
    shape: TreeShape,
    node: int,
    read: Callable[[Iterable[int]], Mapping[int, Evidence]],
) -> list[CentralSentence]:
    """Return the sentences that stand for a node, of the leaves that `read` gives.

    Central leaves are found first, then among their sentences those that are central.
    """
    leaves = _central_leaves(shape, node)
    items = read(leaves)
    every = [one for leaf in leaves if leaf in items for one in _of_leaf(shape, leaf, items[leaf])]
    seen: dict[str, CentralSentence] = {}
    for one in every:
        if gives_orders(one.evidence.text, one.start, one.end):
            continue
        seen.setdefault(" ".join(one.text.split()).casefold(), one)
    rated = [(one, standalone(one.text, one.evidence.language)) for one in seen.values()]
    good = [one for one in rated if one[1]]
    good = good or [(one, 1.0) for one, _ in rated]
    if not good:
        return []
    places, weights = [one for one, _ in good], np.array([worth for _, worth in good], "float32")
    members = len(shape.nodes[node].children) + len(shape.nodes[node].own)
    most = max(min(LEAST, members), min(SENTENCES, shape.tokens(node) // PER_SENTENCE))
    chosen = central(sentence_rows(index, shape, places), most, (), weights)
    return sorted((places[one] for one in chosen), key=lambda one: (one.leaf, one.start))


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


def _of_leaf(shape: TreeShape, leaf: int, item: Evidence) -> Iterable[CentralSentence]:
    start, end = shape.leaves[leaf].start, shape.leaves[leaf].end
    for first, last in sentence_spans(item.text):
        if start <= first and last <= end:
            yield CentralSentence(leaf, item, first, last)


def sentence_rows(index: Index, shape: TreeShape, places: list[CentralSentence]) -> Vector:
    """Return a unit vector for each sentence: its own where the index has it, else its leaf's."""
    keys = list(dict.fromkeys(one.evidence.chunk_id for one in places))
    kept = index.search.sentence_vectors(index.collection.id, keys)
    found = shape.vectors_of([one.leaf for one in places])
    for place, one in enumerate(places):
        spans, rows = sentence_spans(one.evidence.text), kept.get(one.evidence.chunk_id, ())
        if len(rows) == len(spans) and len(spans) > 1:
            found[place] = rows[spans.index((one.start, one.end))]
    return found
