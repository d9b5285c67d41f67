"""Equal chunks: each caller finds exactly the first of them that he may see, at any time."""

from __future__ import annotations

import numpy as np
from behind import change
from fakes import Shelf
from hypothesis import given
from hypothesis import strategies as st

from core.auth import AuthContext
from ingest.pipeline import print_of
from stores.segments.view import hide_repeats


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=30), st.randoms())
def test_the_first_kept_row_of_each_group_stays(
    rows: list[tuple[int, bool]], shuffled: object
) -> None:
    order = list(range(len(rows)))
    shuffled.shuffle(order)  # type: ignore[attr-defined]
    order.sort(key=lambda row: rows[row][0])  # groups one after the other, in any order within
    keep = np.array([kept for _, kept in rows], dtype=np.bool_)
    groups = np.array([rows[row][0] for row in order], dtype=np.int64)
    expected = np.zeros(len(rows), dtype=np.bool_)
    seen: set[int] = set()
    for row in order:
        group, kept = rows[row]
        if kept and group not in seen:
            seen.add(group)
            expected[row] = True
    hide_repeats(keep, np.array(order, dtype=np.int64), groups)
    assert keep.tolist() == expected.tolist()


def test_a_repeat_comes_back_the_moment_the_first_is_gone(shelf: Shelf) -> None:
    rows = [shelf.row(name, "Harbour lights!") for name in ("c", "a", "b")]
    rows.append(shelf.row("d", "harbour", "lights"))
    shelf.write(*rows)

    def found() -> list[str]:
        auth = AuthContext(tenant="acme")
        hits = shelf.search.candidates(
            auth, shelf.id, terms=[{"harbour"}], vector=None, pool=10
        ).chunk_ids
        evidence = shelf.catalogue.evidence(auth, shelf.id, hits)
        return sorted(item.document_id for item in evidence.values())

    assert found() == ["a", "b", "c", "d"]
    assert shelf.intake.number_duplicates(shelf.collection, print_of) == 3
    change(shelf.store, "UPDATE meta SET value = value + 1 WHERE key = 'index_version'")
    assert found() == ["a", "d"] and shelf.intake.count_duplicates(shelf.collection) == (0, 2)
    assert shelf.intake.number_duplicates(shelf.collection, print_of) == 0
    shelf.remove(["a"])
    assert found() == ["b", "d"]
    shelf.remove(["b"])
    assert found() == ["c", "d"]
    assert shelf.intake.number_duplicates(shelf.collection, print_of) == 1
    assert found() == ["c", "d"] and shelf.intake.count_duplicates(shelf.collection) == (0, 0)
