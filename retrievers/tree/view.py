"""The tree as one caller sees it now: its nodes, and the central sentences that stand for each."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from core.auth import AuthContext
from core.types import Citation, Evidence
from models.vectors import central, scale_rows
from retrievers.extracts import Extract, central_sentences
from retrievers.tree.shape import TreeNode, TreeShape, recipe_of
from retrievers.types import Index, Vector
from stores.store import Store

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
    chosen = _central(shape, node, scale_rows(middles))
    return sorted(leaf for one in chosen for leaf in parts[one][:LEADING].tolist())


def _central(shape: TreeShape, node: int, rows: Vector, begin: tuple[int, ...] = ()) -> list[int]:
    """Return the places of central rows among those nearest to the middle of a node."""
    likeness = rows @ shape.vectors[node]
    likeness[list(begin)] = 2  # more than any cosine
    nearest = np.sort(np.argsort(-likeness, kind="stable")[:NEAREST])
    return [int(nearest[one]) for one in central(rows[nearest], READ, begin)]


NAMED = 5  # keywords that name a node without a title; chosen, not measured
REMEMBERED = 16  # shapes of a store, of callers with different rights; chosen, not measured
_shapes: WeakKeyDictionary[Store, OrderedDict[Any, TreeShape]] = WeakKeyDictionary()


@dataclass(frozen=True)
class SummarySentence:
    """Hold a sentence of a node's summary and what it rests on."""

    text: str
    citations: tuple[Citation, ...]


class TreeView:
    """Show a tree to one caller; all that it says rests on leaves that they may see now."""

    def __init__(self, index: Index, auth: AuthContext, shape: TreeShape) -> None:
        self.index, self.auth, self.shape = index, auth, shape

    @property
    def nodes(self) -> list[TreeNode]:
        """Return the nodes, the root first."""
        return self.shape.nodes

    @property
    def levels(self) -> int:
        """Return how many levels of nodes there are."""
        return self.nodes[0].level

    @property
    def size(self) -> dict[str, int]:
        """Return the counts of levels, nodes and leaves."""
        counts = {"nodes": len(self.nodes), "leaves": len(self.shape.leaves)}
        return {"levels": self.levels, **counts}

    def evidence(self, leaves: Iterable[int]) -> dict[int, Evidence]:
        """Return the chunk of each leaf by its place; what is not to be seen is left out."""
        wanted = [int(leaf) for leaf in leaves]
        rows, own = self.shape.documents, self.shape.leaves
        places = {leaf: (int(rows[leaf]), own[leaf].ordinal) for leaf in wanted}
        ids = self.index.trees.chunk_ids(places.values())
        collection = self.index.collection.id
        found = self.index.catalogue.evidence(self.auth, collection, list(ids.values()))
        keys = {leaf: ids.get(place, "") for leaf, place in places.items()}
        return {leaf: found[key] for leaf, key in keys.items() if key in found}

    def summary(self, node: int) -> list[SummarySentence]:
        """Return the central sentences of a node in the order of the text, each cited."""
        return [
            SummarySentence(" ".join(one.text.split()), (one.item.cited(one.start, one.end),))
            for _, one in self.sentences(node)
        ]

    def sentences(self, node: int) -> list[CentralSentence]:
        """Return the central sentences of a node with the evidence that they stand in."""
        return choose_sentences(self.index, self.shape, node, self.evidence)

    def title(self, node: int) -> str:
        """Return the document and section that a node is of, "" for one of several documents."""
        leaves = self.shape.leaves_of(node)
        if len(set(self.shape.documents[leaves].tolist())) != 1:
            return ""
        item = self.evidence([int(leaves[0])]).get(int(leaves[0]))
        if item is None:
            return ""
        parts = dict.fromkeys([item.title, self.shape.section(node).removeprefix(item.title)])
        return " · ".join(part for one in parts if (part := one.strip(" ›")))

    def describe(self, depth: int) -> dict[str, Any]:
        """Return sizes, and the nodes down to a depth with all that is shown of them.

        A document of one leaf is shown as a node of level 0. Of nodes that say the same the first
        stands for all, with the number of `copies`.
        """
        found, layer = [], [0]
        for _ in range(depth + 1):
            found += [one for one in dict.fromkeys(layer) if one not in found]
            layer = [child for one in layer for child in self.shape.below(one)]
        return {**self.size, "tree": _merged([self._describe(one) for one in found])}

    def _describe(self, place: int) -> dict[str, Any]:
        leaves, title = self.shape.leaves_of(place), self.title(place)
        keywords = self.shape.keywords(place)
        below = map(self.shape.leaves_of, self.shape.below(place))
        return {
            "node_id": self.shape.identify(leaves),
            "level": self.nodes[place].level if place < len(self.nodes) else 0,
            "title": title,
            "label": f"{title or ', '.join(keywords[:NAMED])} ({len(leaves)})",
            "leaves": len(leaves),
            "children": [self.shape.identify(one) for one in below],
            "keywords": keywords,
            "questions": self.shape.questions(place),
            "summary": [
                {"text": one.text, "citations": [c.model_dump() for c in one.citations]}
                for one in self.summary(place)
            ],
        }


def _merged(nodes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave one of the nodes that say the same, as copies of one document do."""
    first: dict[Any, dict[str, Any]] = {}
    stands: dict[str, str] = {}
    for node in nodes:
        texts = tuple(one["text"] for one in node["summary"]) or node["node_id"]
        same = first.setdefault((node["level"], texts), node)
        same["copies"] = same.get("copies", 0) + 1
        stands[node["node_id"]] = same["node_id"]
    for node in first.values():
        node["children"] = list(dict.fromkeys(stands.get(one, one) for one in node["children"]))
        node["label"] += f" × {node['copies']}" if node["copies"] > 1 else ""
    return list(first.values())


def open_view(index: Index, auth: AuthContext) -> TreeView | None:
    """Return the tree that a caller sees, None where they see none or it has another model."""
    if index.embedder is None:
        return None
    collection = index.collection
    record = index.trees.load(collection.id, recipe_of(index))
    if not record.members:
        return None
    visible = index.catalogue.visible_documents(auth, collection.id, ())
    seen = frozenset(visible & record.documents.keys())
    known = _shapes.setdefault(index.store, OrderedDict())
    key = (collection.id, record.version, seen)
    shape = known.get(key)
    if shape is None:
        shape = known[key] = TreeShape(record, set(seen), collection.secret)
        while len(known) > REMEMBERED:
            known.popitem(last=False)
    return TreeView(index, auth, shape) if shape.nodes else None
