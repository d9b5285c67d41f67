"""BM25 from term counts: eager scores, term by term, added up per query.

score = idf · tf / (tf + k1 · (1 − b + b · length / mean length)) with
idf = log(1 + (N − n + ½)/(n + ½)), N rows of which n contain the term:
Lucene's BM25 (Kamphuis et al., ECIR 2020) with scores computed at building as in BM25S (Lù, 2024).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from stores.segments.types import Booleans, Floats, Integers, TermWeights


class SortedTerms:
    """Number terms by their place in the order of their UTF-8 bytes."""

    def __init__(self, blob: memoryview, ends: Integers) -> None:
        """Read terms that stand without gaps in `blob`; `ends` says where each of them ends."""
        self._blob = blob
        self._ends = ends

    def get(self, term: str) -> int | None:
        """Return the number of a term, None when it is not known."""
        wanted = term.encode("utf-8", "surrogatepass")
        low, high = 0, len(self._ends)
        while low < high:
            middle = (low + high) // 2
            if self._term(middle) < wanted:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self._ends) and self._term(low) == wanted else None

    def _term(self, place: int) -> bytes:
        start = self._ends[place - 1] if place else 0
        return bytes(self._blob[start : self._ends[place]])


def encode_terms(terms: Iterable[str]) -> list[bytes]:
    """Return the terms as bytes, in the order they are given."""
    return [term.encode("utf-8", "surrogatepass") for term in terms]


@dataclass(frozen=True)
class Postings:
    """Hold the scores of the rows of each term, rows ascending within a term.

    Those of term t stand in `scores` and `rows` from `starts[t]` to `starts[t + 1]`.
    """

    vocabulary: SortedTerms | Mapping[str, int]
    starts: Integers
    rows: Integers
    scores: Floats
    mean_length: float

    def add(self, terms: TermWeights, scores: Floats) -> None:
        """Add the weighted scores of terms to `scores`, one number per row."""
        for term, weight in terms.items():
            place = self.vocabulary.get(term)
            if place is None:
                continue
            start, end = int(self.starts[place]), int(self.starts[place + 1])
            found = self.scores[start:end]
            np.add.at(scores, self.rows[start:end], found if weight == 1 else found * weight)

    def containing(self, term: str) -> Integers:
        """Return the rows that contain a term, ascending."""
        place = self.vocabulary.get(term)
        if place is None:
            return self.rows[:0]
        return self.rows[int(self.starts[place]) : int(self.starts[place + 1])]

    def frequency(self, term: str, alive: Booleans | None = None) -> int:
        """Count the rows that contain a term, or those of them that are alive."""
        place = self.vocabulary.get(term)
        if place is None:
            return 0
        start, end = int(self.starts[place]), int(self.starts[place + 1])
        if alive is None:
            return end - start
        return int(np.count_nonzero(alive[self.rows[start:end]]))


class TermCounts:
    """Count the terms of rows, batch by batch."""

    def __init__(self) -> None:
        self.vocabulary: defaultdict[str, int] = defaultdict()
        self.vocabulary.default_factory = self.vocabulary.__len__
        self.rows = 0
        self._idf: list[float] = []  # of known terms under a segment's statistics
        self._batches: list[tuple[Integers, Integers, Floats]] = []
        self._lengths: list[Floats] = []

    def add(self, rows: Sequence[Sequence[str]]) -> None:
        """Append rows of terms."""
        lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        terms = np.fromiter(
            map(self.vocabulary.__getitem__, chain.from_iterable(rows)),
            dtype=np.int64,
            count=int(lengths.sum()),
        )
        places = np.repeat(np.arange(len(rows), dtype=np.int64), lengths)
        keys, counts = np.unique((places << 32) | terms, return_counts=True)
        numbers = ((keys >> 32) + self.rows).astype(np.int32)
        self._batches.append(
            (numbers, (keys & 0xFFFFFFFF).astype(np.int32), counts.astype(np.float32))
        )
        self._lengths.append(lengths.astype(np.float32))
        self.rows += len(rows)

    def postings(
        self,
        base: Postings | None = None,
        base_rows: int = 0,
        *,
        order: Sequence[int] | None = None,
    ) -> Postings:
        """Score all rows, under the statistics of a segment `base` or under their own.

        `order` renumbers the terms; the postings then have no vocabulary of their own.
        """
        rows, terms, counts = self._join_batches()
        lengths = np.concatenate(self._lengths) if self._lengths else np.zeros(0, np.float32)
        if order is not None:
            terms = np.asarray(order, dtype=np.int32)[terms]
        frequencies = np.bincount(terms, minlength=len(self.vocabulary))
        mean = float(lengths.mean(dtype=np.float64)) if len(lengths) else 0.0
        idf = idf_of(frequencies, self.rows)
        if base is not None:
            mean, idf = base.mean_length, self._base_idf(base, base_rows)
        norms = BM25_K1 * (1 - BM25_B + BM25_B * lengths / (mean or 1.0))
        scores = (idf[terms] * counts / (counts + norms[rows])).astype(np.float32)
        sorter = np.argsort(terms, kind="stable")
        starts = np.zeros(len(frequencies) + 1, dtype=np.int64)
        np.cumsum(frequencies, out=starts[1:])
        # A copy: the counter goes on counting, and asking a defaultdict must not add terms.
        vocabulary = dict(self.vocabulary) if order is None else {}
        return Postings(vocabulary, starts, rows[sorter], scores[sorter], mean)

    def _join_batches(self) -> tuple[Integers, Integers, Floats]:
        if not self._batches:
            empty = np.zeros(0, dtype=np.int32)
            return empty, empty, np.zeros(0, dtype=np.float32)
        columns = zip(*self._batches, strict=True)
        joined = tuple(np.concatenate(column) for column in columns)
        self._batches = [(joined[0], joined[1], joined[2])]
        return self._batches[0]

    def _base_idf(self, base: Postings, rows: int) -> Floats:
        known = len(self._idf)
        new = [base.frequency(term) for term in list(self.vocabulary)[known:]]
        self._idf += idf_of(np.array(new, dtype=np.int64), rows).tolist()
        return np.array(self._idf, dtype=np.float64)


def idf_of(frequencies: Integers, rows: int) -> Floats:
    """Return log(1 + (N − n + ½)/(n + ½)) for each count n of rows that contain a term."""
    return np.log1p((rows - frequencies + 0.5) / (frequencies + 0.5))


# BM25 weights of the columns beside the text, which has 1; chosen, no measurement of them is kept.
TITLE_WEIGHT = 3.0
KEYWORDS_WEIGHT = 2.0
SECTION_WEIGHT = 2.0
BM25_K1 = 1.5  # how soon repeated words stop to count: rank-bm25's and bm25s's value
BM25_B = 0.75  # how much long chunks are marked down: rank-bm25's and bm25s's value


def bm25_settings() -> dict[str, float]:
    """Return what the scores of a segment depend on besides the truth, for its manifest."""
    weights = {"title": TITLE_WEIGHT, "keywords": KEYWORDS_WEIGHT, "section": SECTION_WEIGHT}
    return {"k1": BM25_K1, "b": BM25_B, **{name: round(one) for name, one in weights.items()}}


def weighted_terms(title: str, keywords: str, section: str, body: str) -> list[str]:
    """Return all terms of a row, repeated by the weight of their column."""
    return (
        title.split() * round(TITLE_WEIGHT)
        + keywords.split() * round(KEYWORDS_WEIGHT)
        + section.split() * round(SECTION_WEIGHT)
        + body.split()
    )
