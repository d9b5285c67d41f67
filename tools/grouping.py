"""Groups of documents or sections that are alike, with what speaks for each and names it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from core.language.analysis import content_terms
from core.language.numbering import heading_title
from core.types import Evidence
from models.vectors import Vectors, central, scale_rows
from retrievers.tree.leaves import find_keywords
from retrievers.types import Index, Query

# Chosen, not measured:
GROUPS = 6  # of the documents of a collection, or of the sections of documents
APART = 10  # documents of which each is a group by itself, so that none is left out
NAMED, HEADINGS = 4, 2  # keywords, and headings, that name a group
ASKED, BEGINNING = 6, 4  # parts that may speak for a group, and passages of each that are read
PASSAGES = 24  # passages of a group, the nearest to its middle, that are read for its theme
LONGEST_LABEL = 60  # characters of a heading that names a group
COMPARABLE = 0.5  # of the worth of the best heading has another that stands beside it


class SummaryPart(NamedTuple):
    """Hold what is called so: the chunks of a document or section, and its document's row."""

    title: str
    keys: Sequence[str]
    row: int


class PartGroup(NamedTuple):
    """Hold the parts of a group, the one it is named after first, then the nearest to that.

    There are so many `copies` of that one, and `more` others.
    """

    parts: Sequence[SummaryPart]
    copies: int
    more: int


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

    def groups(self, every: Sequence[SummaryPart]) -> list[PartGroup]:
        """Return the main groups, those of most documents first; what has the same text is one.

        Of one document they come in its order. All documents count alike, however many parts they
        have. What all parts share is taken from their vectors, since it tells none from another.
        """
        copies = self._copies(every)
        own, counts = [every[one] for one in copies], list(copies.values())
        of_each = Counter(one.row for one in own)
        vectors = self._middles(own)
        vectors = scale_rows(vectors - vectors.mean(axis=0)) if len(own) > GROUPS else vectors
        weights = np.array([of_each[one.row] ** -0.5 for one in own], dtype=np.float32)
        few = len(own) if len(of_each) == len(own) <= APART else GROUPS
        leaders = central(vectors, few, weights=weights)
        likeness = vectors @ vectors[leaders].T
        nearest, likeness = likeness.argmax(axis=1), likeness.max(axis=1)
        nearest[leaders], likeness[leaders] = np.arange(len(leaders)), 2
        found: list[tuple[int, int, PartGroup]] = []
        for place, leader in enumerate(leaders):
            members = np.flatnonzero(nearest == place)
            members = members[np.argsort(-likeness[members], kind="stable")]
            more = sum(counts[one] for one in members) - counts[leader]
            group = PartGroup([own[one] for one in members], counts[leader], more)
            found.append((len({one.row for one in group.parts}) + counts[leader], leader, group))
        ordered = sorted(found, key=lambda one: (-one[0] if len(of_each) > 1 else 0, one[1]))
        return [group for _, _, group in ordered]

    def beginnings(self, group: PartGroup) -> list[list[str]]:
        """Return the first chunks of each part that speaks for a group."""
        return [list(one.keys[:BEGINNING]) for one in group.parts[:ASKED]]

    def nearest(self, group: PartGroup) -> list[str]:
        """Return the chunks of a group that are nearest to its middle, in their order."""
        keys = [key for part in group.parts for key in part.keys]
        vectors = self.vectors(keys)
        order = np.argsort(-(vectors @ vectors.mean(axis=0)), kind="stable")[:PASSAGES]
        return [keys[place] for place in sorted(order.tolist())]

    def themes(
        self, groups: Sequence[PartGroup], texts: Sequence[Sequence[str]]
    ) -> Iterator[tuple[str, dict[str, float]]]:
        """Yield what each group is called and how telling its words are, by its passages.

        These are headings whose words most of its passages have, and few of the others; words that
        tell more than the headings stand behind them, and alone where there are none.
        """
        shares: list[Counter[str]] = []
        shown: list[Counter[tuple[str, str]]] = []
        titles: list[list[str]] = []
        for group, keys in zip(groups, texts, strict=True):
            items = self.read(keys)
            often = Counter(term for item in items for term in _terms(item))
            shares.append(Counter({term: n / len(items) for term, n in often.items()}))
            pairs = (set(find_keywords(one.text, one.language)) for one in items)
            shown.append(Counter(pair for own in pairs for pair in own))
            parts = [heading_title(part.title) for part in group.parts]
            titles.append(list(dict.fromkeys([*parts, *(item.title for item in items)])))
        total = sum(shares, Counter())
        taken: set[str] = set()
        for own, words, titled in zip(shares, shown, titles, strict=True):
            worth = {term: share * share / total[term] for term, share in own.items()}
            chosen = _headings(worth, [one for one in titled if one not in taken])
            taken |= set(chosen)
            yield _label(worth, words, chosen) or next(filter(None, titled), ""), worth

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


def _terms(item: Evidence) -> set[str]:
    return set(content_terms(f"{item.title}\n{item.section}\n{item.text}", item.language))


def _value(worth: Mapping[str, float], terms: Collection[str]) -> float:
    return sum(worth.get(one, 0.0) for one in terms) / len(terms) if terms else 0.0


def _headings(worth: Mapping[str, float], titles: Sequence[str]) -> list[str]:
    """Return the heading that is worth most, and one of other words that is worth nearly as much.

    Long ones are left out.
    """
    terms = {one: set(content_terms(one)) for one in titles if len(one) <= LONGEST_LABEL}
    ranked = sorted(terms, key=lambda one: -_value(worth, terms[one]))
    least = COMPARABLE * _value(worth, terms[ranked[0]]) if ranked else 0.0
    chosen: list[str] = []
    for one in ranked:
        new = not any(terms[one] & terms[other] for other in chosen)
        if len(chosen) < HEADINGS and new and terms[one] and _value(worth, terms[one]) >= least:
            chosen.append(one)
    return chosen


def _label(
    worth: Mapping[str, float], words: Counter[tuple[str, str]], headings: Sequence[str]
) -> str:
    """Return headings, with the words behind them that tell more than these do."""
    known = {term for one in headings for term in content_terms(one)}
    least = min((_value(worth, set(content_terms(one))) for one in headings), default=0.0)
    values = {pair: _value(worth, pair[0].split()) for pair in words if words[pair] > 1}
    names: list[str] = []
    for term, written in sorted(values, key=lambda pair: -values[pair]):
        own = set(term.split())
        if len(names) < NAMED and values[term, written] > least and not own & known:
            names.append(written)
            known |= own
    label, keywords = " · ".join(headings), ", ".join(names)
    return f"{label} ({keywords})" if label and keywords else label or keywords
