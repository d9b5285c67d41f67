"""Which visible chunks say a name: links between chunks, read from the postings.

A name and the chunks that say it are edges of a graph of names and chunks. The postings hold it
already, so nothing is built or kept for it, and only rows that the caller sees are ever counted.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from stores.segments.types import Booleans, Floats, Integers
from stores.segments.view import CollectionView, Selection

# A name in more than this share of the chunks links nothing; searched with those of
# retrievers/links.py.
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


@dataclass(frozen=True)
class LinkQuery:
    """What is looked up: names, a question's words (alternatives each), seeds by row id.

    Names in more than `most` chunks are hubs; `limit` chunks are returned at most, those first
    that say the rarest names.
    """

    names: Sequence[Name]
    words: Sequence[Collection[str]]
    seeds: Integers
    most: int
    limit: int


def hub_size(visible: int) -> int:
    """Return in how many of the visible chunks a name may be and still link them."""
    share = min(HUB_SHARE * visible, HUB_MOST)
    return max(HUB_LEAST, int(share))


def find_links(view: CollectionView, visible: Selection, wanted: LinkQuery) -> Links:
    """Return the links of names among the visible rows of a view that counts words."""
    found = [_rows_of_name(view, visible, name, wanted.most) for name in wanted.names]
    counts = np.array([len(rows) for rows in found], dtype=np.int64)
    rows = _rarest(found, counts, wanted.limit)
    says = [np.isin(rows, one, assume_unique=True) for one in found]
    seeds, live = view.places(wanted.seeds)
    covers, seed_covers, rarity = [], [], []
    for group in wanted.words:
        having = _inside(visible, _rows_of_word(view, group))
        covers.append(np.isin(rows, having))
        seed_covers.append(np.isin(seeds, having) & live)
        rarity.append(np.log1p(visible.count / (1 + len(having))))
    groups = len(wanted.words)
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
    """Keep the selected of ascending rows."""
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
