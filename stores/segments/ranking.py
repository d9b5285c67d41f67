"""The best rows of each channel, with ties settled by the order of ingest."""

from __future__ import annotations

import numpy as np

from stores.segments.masks import Selection
from stores.segments.types import Floats, Integers
from stores.segments.view import CollectionView

ROUNDING = 1e-5  # more than two ways of adding up one cosine in float32 can differ


def best_words(view: CollectionView, scores: Floats, visible: Selection, pool: int) -> Integers:
    """Return the `pool` visible rows with the highest scores above 0, ascending by number."""
    ranked = visible.ranked(scores, 0.0)
    least = _least(ranked, pool)
    places = np.flatnonzero(ranked >= least) if least > 0 else np.flatnonzero(ranked > 0)
    rows = visible.original(places)
    return _cut(view, rows, scores[rows], pool)


def best_vectors(
    view: CollectionView, cosines: Floats, embedded: Selection, vector: Floats, pool: int
) -> Integers:
    """Return the `pool` rows nearest to `vector`, ascending by number.

    `cosines` are of all rows, or of the selected ones where those are few.
    """
    if embedded.rows is not None:
        ranked = cosines
    else:
        ranked = embedded.ranked(cosines, -np.inf)
    least = _least(ranked, pool)
    if not np.isfinite(least):  # fewer are visible than are wanted
        return embedded.numbers()
    rows = embedded.original(np.flatnonzero(ranked >= least - ROUNDING))
    return _cut(view, rows, view.exact(rows, vector), pool)


def nearest(view: CollectionView, rows: Integers, vector: Floats, pool: int) -> Integers:
    """Return the `pool` of these rows that are nearest to `vector`, ascending by number."""
    return _cut(view, rows, view.exact(rows, vector), pool)


def _least(ranked: Floats, pool: int) -> float:
    """Return the score of the last of the best `pool`, −∞ where there are fewer."""
    if pool >= len(ranked):
        return float("-inf")
    return float(np.partition(ranked, len(ranked) - pool)[len(ranked) - pool])


def _cut(view: CollectionView, rows: Integers, scores: Floats, pool: int) -> Integers:
    if len(rows) > pool:
        rows = rows[np.argsort(-scores, kind="stable")[:pool]]
        rows.sort()
    return rows
