"""Groups of documents or sections that are alike, with what speaks for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import log1p
from typing import NamedTuple

import numpy as np

from core.language.analysis import content_terms
from core.types import Evidence
from models.vectors import Vectors, central, scale_rows
from retrievers.tree.leaves import find_keywords
from retrievers.tree.search import main_nodes
from retrievers.tree.view import TreeView, open_view
from retrievers.types import Index, Query

# Chosen, not measured:
GROUPS = 6  # of the documents of a collection, or of the parts of a document
NAMED = 4  # keywords that name a group
ASKED, BEGINNING = 6, 4  # parts that may speak for a group, and passages of each that are read


class SummaryPart(NamedTuple):
    """Hold what is called so: the chunks of a document or section, and the row of a document."""

    title: str
    keys: Sequence[str]
    row: int = 0


class PartGroup(NamedTuple):
    """Hold the chunks of those that speak for a group, the one it is named after first.

    There are so many `copies` of that one, and `more` others.
    """

    title: str
    copies: int
    more: int
    texts: list[list[str]]


class PartReader:
    """Read passages and their vectors with the rights of one caller, and group them."""

    def __init__(self, index: Index, query: Query) -> None:
        self._index, self.query = index, query

    def read(self, keys: Sequence[str]) -> list[Evidence]:
        """Return the chunks of these ids that may be seen, in their order."""
        found = self._index.catalogue.evidence(self.query.auth, self._index.collection.id, keys)
        return [found[key] for key in keys if key in found]

    def vectors(self, keys: Sequence[str]) -> Vectors:
        """Return the vectors of chunks, zeros where there is no embedder."""
        without = self._index.embedder is None
        return np.zeros((len(keys), 1), "float32") if without else self._index.vectors(keys)

    def tree(self, documents: int) -> TreeView | None:
        """Return the tree, None where it lacks some of so many documents that are to be seen."""
        view = open_view(self._index, self.query.auth)
        whole = view is not None and len(set(view.shape.documents.tolist())) == documents
        return view if whole else None

    def groups(self, every: Sequence[SummaryPart]) -> list[PartGroup]:
        """Return the main groups: of documents the largest first, of sections in their order.

        What has the same text is one.
        """
        copies = self._copies(every)
        own, counts = [every[one] for one in copies], list(copies.values())
        vectors = self._middles(own)
        found = []
        for leader, members in self._alike(own, vectors, len(every)):
            likeness = vectors[members] @ vectors[leader]
            near = np.array(members)[np.argsort(-likeness, kind="stable")[:ASKED]].tolist()
            speak = [own[one] for one in dict.fromkeys([leader, *near])]
            ids = [self._index.catalogue.chunk_ids([p.row]) if p.row else p.keys for p in speak]
            texts = [list(keys[:BEGINNING]) for keys in ids]
            more = sum(counts[one] for one in members) - counts[leader]
            found.append(PartGroup(own[leader].title, counts[leader], more, texts))
        return sorted(found, key=lambda one: -(one.copies + one.more)) if own[0].row else found

    def _alike(
        self, own: Sequence[SummaryPart], vectors: Vectors, documents: int
    ) -> list[tuple[int, list[int]]]:
        """Return the place of the leader and of all members of each group.

        A group is a main node of the tree, where there is one, else what is nearest to a central
        part.
        """
        nodes = self._nodes(own, documents) if len(own) > GROUPS and own[0].row else []
        if len(nodes) > 1:
            middles = np.array([vectors[one].mean(axis=0) for one in nodes])
            nearest = (vectors @ middles.T).argmax(axis=1)
            for place, node in enumerate(nodes):
                nearest[node] = place
            likeness = np.einsum("nd,nd->n", vectors, middles[nearest])
        else:
            leaders = central(vectors, GROUPS)
            likeness = vectors @ vectors[leaders].T
            nearest, likeness = likeness.argmax(axis=1), likeness.max(axis=1)
            nearest[leaders], likeness[leaders] = np.arange(len(leaders)), 2
        groups = [np.flatnonzero(nearest == one) for one in np.unique(nearest)]
        groups.sort(key=lambda one: int(one[0]))
        return [(int(one[likeness[one].argmax()]), one.tolist()) for one in groups]

    def _nodes(self, own: Sequence[SummaryPart], documents: int) -> list[list[int]]:
        """Return the places of documents by main node of the tree, each in one."""
        view = self.tree(documents)
        if view is None:
            return []
        left = {one.row: place for place, one in enumerate(own)}
        found = []
        for node in main_nodes(view, GROUPS):
            rows = set(view.shape.documents[view.nodes[node].leaves].tolist())
            found.append([left.pop(row) for row in sorted(rows) if row in left])
        return [one for one in found if one]

    def keywords(self, groups: Sequence[PartGroup]) -> list[list[str]]:
        """Return the words that tell each group from the others, by tf-idf over the groups."""
        counts: list[Counter[str]] = []
        shown: dict[str, str] = {}
        for one in groups:
            items = self.read([key for keys in one.texts for key in keys])
            pairs = [pair for item in items for pair in find_keywords(item.text, item.language)]
            titled = {term for item in items for term in content_terms(item.title, item.language)}
            shown |= dict(pairs)
            counts.append(Counter(term for term, _ in pairs if term not in titled))
        often = Counter(term for own in counts for term in own)
        rarity = {term: log1p(len(groups) / count) for term, count in often.items()}
        ranked = [sorted(own, key=lambda term: -own[term] * rarity[term]) for own in counts]
        return [[shown[term] for term in own[:NAMED]] for own in ranked]

    def _copies(self, parts: Sequence[SummaryPart]) -> dict[int, int]:
        """Return the places of parts of different text, with how many have each."""
        alike: dict[bytes, list[int]] = {}
        for place, row in enumerate(self._middles(parts)):
            alike.setdefault(row.round(3).tobytes(), []).append(place)
        found: dict[int, int] = {}
        for places in alike.values():
            texts: dict[str, int] = {}
            for place in places:
                read = self.read(parts[place].keys) if len(places) > 1 else []
                first = texts.setdefault("\n".join(one.text for one in read), place)
                found[first] = found.get(first, 0) + 1
        return dict(sorted(found.items()))

    def _middles(self, parts: Sequence[SummaryPart]) -> Vectors:
        rows = self.vectors([key for one in parts for key in one.keys])
        starts = np.cumsum([0, *(len(one.keys) for one in parts[:-1])])
        return scale_rows(np.add.reduceat(rows, starts, axis=0))
