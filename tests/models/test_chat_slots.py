"""Who gets which slot of a server, and when its cache may be used."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.chat.turns import Lease, SlotPool

STEPS = st.lists(st.tuples(st.sampled_from(["ann", "bob", "eve", ""]), st.booleans()), max_size=40)


def test_an_owner_comes_back_to_a_warm_slot() -> None:
    pool = SlotPool(2)
    with pool.lease("ann") as first:
        pass
    with pool.lease("bob") as second:
        pass
    with pool.lease("ann") as third:
        pass
    assert (first.use_cache, second.use_cache, third.use_cache) == (False, False, True)
    assert first.slot == third.slot != second.slot


def test_the_slot_unused_for_longest_is_taken_from_another() -> None:
    pool = SlotPool(2)
    for owner in ("ann", "bob", "ann"):
        with pool.lease(owner):
            pass
    with pool.lease("eve") as lease:
        assert not lease.use_cache
    with pool.lease("ann") as lease:
        assert lease.use_cache
    with pool.lease("bob") as lease:
        assert not lease.use_cache


def test_a_failed_call_leaves_a_cold_slot() -> None:
    pool = SlotPool(1)
    with pool.lease("ann"):
        pass
    with pytest.raises(ValueError), pool.lease("ann") as lease:
        assert lease.use_cache
        raise ValueError
    with pool.lease("ann") as lease:
        assert not lease.use_cache


def test_more_calls_than_slots_go_without_one_and_without_a_cache() -> None:
    pool = SlotPool(1)
    with pool.lease("ann"), pool.lease("bob") as second, pool.lease("") as third:
        assert second == Lease(None, use_cache=False)
        assert third == Lease(None, use_cache=True)
    with pool.lease("ann") as lease:
        assert not lease.use_cache  # the server may have put bob's request into ann's slot


@given(st.integers(0, 3), STEPS)
def test_two_owners_never_share_a_warm_slot(count: int, steps: list[tuple[str, bool]]) -> None:
    """Follow what each slot really holds; a request without a slot may land in any of them."""
    pool = SlotPool(count)
    holds: dict[int, set[str]] = {number: {"before"} for number in range(count)}
    with ExitStack() as open_leases:
        running: set[int] = set()
        for owner, finishes in steps:
            lease = pool.lease(owner)
            granted = lease.__enter__()
            if granted.slot is None:
                assert not (granted.use_cache and owner)
                for slot in holds:
                    holds[slot] = holds[slot] | {owner}
            else:
                assert granted.slot not in running
                assert not granted.use_cache or holds[granted.slot] == {owner}
                holds[granted.slot] = {owner}
            if finishes:
                lease.__exit__(None, None, None)
            else:
                open_leases.push(lease)
                running |= {granted.slot} - {None}  # type: ignore[operator]
