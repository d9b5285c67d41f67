"""The best rows of one view by words and by vector, and the rows that say a name.

Ties are settled by the order of ingest. A name and the chunks that say it are edges of a graph of
names and chunks. The postings hold it already, so nothing is built or kept for it, and only rows
that the caller sees are ever counted.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stores.segments.types import Booleans, Candidates, Floats, Integers, TermWeights
from stores.segments.view import CollectionView, Mask, Selection
from stores.sqlite.embeddings import ROUNDING
from stores.sqlite.fulltext import FullText

if TYPE_CHECKING:
    from stores.index.tracking import TrackedVectors


def best_words(view: CollectionView, scores: Floats, visible: Selection, pool: int) -> Integers:
    """Return the `pool` visible rows with the highest scores above 0, ascending by number."""
    ranked = visible.rank_scores(scores, 0.0)
    least = _least(ranked, pool)
    places = np.flatnonzero(ranked >= least) if least > 0 else np.flatnonzero(ranked > 0)
    rows = visible.original(places)
    return _cut_pool(view, rows, scores[rows], pool)


def best_vectors(
    view: CollectionView, cosines: Floats, embedded: Selection, vector: Floats, pool: int
) -> Integers:
    """Return the `pool` rows nearest to `vector`, ascending by number.

    `cosines` are of all rows, or of the selected ones where those are few.
    """
    if embedded.rows is not None:
        ranked = cosines
    else:
        ranked = embedded.rank_scores(cosines, -np.inf)
    least = _least(ranked, pool)
    if not np.isfinite(least):  # fewer are visible than are wanted
        return embedded.numbers()
    rows = embedded.original(np.flatnonzero(ranked >= least - ROUNDING))
    return _cut_pool(view, rows, view.exact(rows, vector), pool)


def nearest(view: CollectionView, rows: Integers, vector: Floats, pool: int) -> Integers:
    """Return the `pool` of these rows that are nearest to `vector`, ascending by number."""
    return _cut_pool(view, rows, view.exact(rows, vector), pool)


def _least(ranked: Floats, pool: int) -> float:
    """Return the score of the last of the best `pool`, −∞ where there are fewer."""
    if pool >= len(ranked):
        return float("-inf")
    return float(np.partition(ranked, len(ranked) - pool)[len(ranked) - pool])


def _cut_pool(view: CollectionView, rows: Integers, scores: Floats, pool: int) -> Integers:
    if len(rows) > pool:
        rows = rows[np.argsort(-scores, kind="stable")[:pool]]
        rows.sort()
    return rows


# Rows whose cosines are averaged where not all vectors are at hand; chosen, not measured: a mean
# of so many is within 3 % of a deviation.
SAMPLE = 1000


@dataclass(frozen=True)
class _Near:
    """Hold the rows of the vector channel and how cosines spread over all visible rows."""

    rows: Integers
    mean: float = 0.0
    deviation: float = 0.0
    note: str = ""


class Channels:
    """Search one view by words and by vector."""

    def __init__(self, fulltext: FullText, tracked: TrackedVectors | None) -> None:
        """Let FTS5 answer for words that a view has not counted, `tracked` for all vectors."""
        self._fulltext = fulltext
        self._tracked = tracked

    def search(
        self,
        view: CollectionView,
        connection: sqlite3.Connection,
        mask: Mask,
        terms: TermWeights,
        vector: Floats | None,
        pool: int,
        kinds: Sequence[str] = (),
    ) -> Candidates:
        """Return the union of the `pool` best rows of each channel; the mask is of these kinds."""
        scores = self._word_scores(view, connection, terms)
        wordy = best_words(view, scores, mask.visible, pool) if pool > 0 else _none()
        near = _Near(_none())
        if vector is not None:
            vector = view.check_vector(vector)
            near = self._nearest(view, connection, mask.embedded, vector, pool, kinds)
        rows = np.union1d(wordy, near.rows)
        words = scores[rows]
        seen = mask.visible.values(scores) if terms else scores[:0]
        cosine = sentence = None
        if vector is not None:
            cosine, sentence = _similarities(view, rows, vector)
        return Candidates(
            chunk_ids=[key.decode() for key in view.chunk_ids(rows).tolist()],
            bm25=words,
            cosine=cosine,
            sentence=sentence,
            best_bm25=float(seen.max(initial=0)),
            mean=near.mean,
            deviation=near.deviation,
            visible=mask.visible.count,
            source="segment" if view.words else "index",
            notes=(*view.notes, *([near.note] if near.note else [])),
        )

    def _word_scores(
        self, view: CollectionView, connection: sqlite3.Connection, terms: TermWeights
    ) -> Floats:
        if view.words:
            return view.word_scores(terms)
        scores = np.zeros(view.rows, dtype=np.float32)
        for weight in sorted(set(terms.values())):
            group = [{term} for term, given in terms.items() if given == weight]
            found = self._fulltext.scores(connection, view.collection_id, group)
            if found:
                ids, values = zip(*found, strict=True)
                rows, live = view.places(np.array(ids, dtype=np.int64))
                scores[rows[live]] += np.float32(weight) * np.array(values, np.float32)[live]
        return scores

    def _nearest(
        self,
        view: CollectionView,
        connection: sqlite3.Connection,
        embedded: Selection,
        vector: Floats,
        pool: int,
        kinds: Sequence[str],
    ) -> _Near:
        if not embedded.count:
            return _Near(_none())
        if self._tracked is not None:
            rows, note = self._tracked.nearest(view, connection, embedded, vector, pool, kinds)
            sampled = _sample(view, embedded) @ vector
            return _Near(rows, *spread(sampled[np.isfinite(sampled)]), note)
        few = embedded.rows is not None
        cosines = view.vectors(embedded.numbers()) @ vector if few else view.scan(vector)
        seen = cosines if few else embedded.values(cosines)
        rows = best_vectors(view, cosines, embedded, vector, pool) if pool > 0 else _none()
        return _Near(rows, *spread(seen))


def _sample(view: CollectionView, embedded: Selection) -> Floats:
    """Return vectors spread over the selected rows, read once; their spread stands for all."""
    if not embedded.sample:
        every = embedded.numbers()
        embedded.sample.append(view.vectors(every[:: -(-len(every) // SAMPLE)]))
    return embedded.sample[0]


def spread(cosines: Floats) -> tuple[float, float]:
    """Return mean and standard deviation, 0 where there is nothing."""
    if not len(cosines):
        return 0.0, 0.0
    mean = float(cosines.mean(dtype=np.float64))
    gaps = cosines - np.float32(mean)
    return mean, float(np.sqrt(np.dot(gaps, gaps) / len(gaps)))


def _similarities(view: CollectionView, rows: Integers, vector: Floats) -> tuple[Floats, Floats]:
    """Return the cosine of each row, and the best one of its sentences; rows in any order."""
    cosine = view.exact(rows, vector)
    order = np.argsort(rows)
    sentence = np.empty_like(cosine)
    sentence[order] = view.sentences(rows[order], vector)
    return cosine, np.where(np.isnan(sentence), cosine, sentence)


def _none() -> Integers:
    return np.zeros(0, dtype=np.int64)


# A name in more than this share of the chunks links nothing; searched with those of
# retrievers/hybrid.py.
HUB_SHARE = 0.01
HUB_LEAST = 3  # names in up to so many chunks always link them; chosen, as is the next
HUB_MOST = 1000  # names in more chunks than this never do

Name = tuple[str, ...]  # index terms, all of which a chunk must have
# A name whose rarest word is in that many times `most` chunks is taken for a hub, so that no query
# walks long lists; chosen, not measured.
_SCAN = 50


@dataclass(frozen=True)
class Links:
    """Hold m names, n chunks that say any of them, and g words of a question.

    `says` (m, n) tells which chunk says which name; a name in fewer than two visible chunks, or in
    too many, has no chunk, and its count in `counts` (m,) is 0. `covers` (g, n) tells which chunk
    has which word, `seed_covers` (g, seeds) which seed; `rarity` (g,) is log(1 + N/(1 + df)) over
    the N = `visible` chunks.
    """

    chunk_ids: list[str]
    says: Booleans
    counts: Integers
    covers: Booleans
    seed_covers: Booleans
    rarity: Floats
    visible: int


def find_links(
    view: CollectionView,
    visible: Selection,
    names: Sequence[Name],
    words: Sequence[Collection[str]],
    seeds: Integers,
    limit: int,
) -> Links:
    """Return the links of names among the visible rows of a view that counts words.

    `words` are alternatives each, `seeds` row ids. Up to `limit` chunks are returned, those first
    that say the rarest names.
    """
    most = max(HUB_LEAST, int(min(HUB_SHARE * visible.count, HUB_MOST)))
    found = [_rows_of_name(view, visible, name, most) for name in names]
    counts = np.array([len(rows) for rows in found], dtype=np.int64)
    rows = _rarest(found, counts, limit)
    says = [np.isin(rows, one, assume_unique=True) for one in found]
    seeds, live = view.places(seeds)
    covers, seed_covers, rarity = [], [], []
    for group in words:
        having = _inside(visible, _rows_of_word(view, group))
        covers.append(np.isin(rows, having))
        seed_covers.append(np.isin(seeds, having) & live)
        rarity.append(np.log1p(visible.count / (1 + len(having))))
    groups = len(words)
    return Links(
        chunk_ids=[key.decode() for key in view.chunk_ids(rows).tolist()],
        says=np.array(says, dtype=np.bool_).reshape(len(found), len(rows)),
        counts=counts,
        covers=np.array(covers, dtype=np.bool_).reshape(groups, len(rows)),
        seed_covers=np.array(seed_covers, dtype=np.bool_).reshape(groups, len(seeds)),
        rarity=np.array(rarity, dtype=np.float64),
        visible=visible.count,
    )


def _rows_of_name(view: CollectionView, visible: Selection, name: Name, most: int) -> Integers:
    """Return the visible rows that have all terms of a name, none unless they are 2 to `most`."""
    none = np.zeros(0, dtype=np.int64)
    # Masked first: whether a name is a hub must not depend on what the caller may not see.
    seen = (_inside(visible, view.containing(term)) for term in dict.fromkeys(name))
    lists = sorted(seen, key=len)
    if not lists or not 0 < len(lists[0]) <= _SCAN * most:
        return none
    rows = lists[0]
    for longer in lists[1:]:
        place = np.searchsorted(longer, rows).clip(max=max(0, len(longer) - 1))
        rows = rows[longer[place] == rows]
    return rows if 2 <= len(rows) <= most else none


def _rows_of_word(view: CollectionView, group: Collection[str]) -> Integers:
    lists = [view.containing(term) for term in sorted(group)]
    if len(lists) == 1:
        return lists[0]
    return np.unique(np.concatenate(lists)) if lists else np.zeros(0, dtype=np.int64)


def _inside(visible: Selection, rows: Integers) -> Integers:
    if visible.keep is not None:
        return rows[visible.keep[rows]]
    if visible.rows is not None:
        return np.intersect1d(rows, visible.rows, assume_unique=True)
    return rows


def _rarest(found: Sequence[Integers], counts: Integers, limit: int) -> Integers:
    """Return up to `limit` rows, ascending, those that say the rarest names."""
    if not counts.any():
        return np.zeros(0, dtype=np.int64)
    rows, place = np.unique(np.concatenate(found), return_inverse=True)
    shares = np.repeat(1.0 / np.maximum(counts, 1), counts)
    worth = np.bincount(place, weights=shares, minlength=len(rows))
    return np.sort(rows[np.argsort(-worth, kind="stable")[:limit]])
