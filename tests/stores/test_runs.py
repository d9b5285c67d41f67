"""A run is found by its id, by a clear beginning of it, or as the last, by its own user only."""

from __future__ import annotations

import pytest

from core.auth import AuthContext
from core.errors import CallerError
from core.trace import RunRecord, Step
from stores.store import Store

ANN = AuthContext(tenant="acme", user="ann")
EVE = AuthContext(tenant="acme", user="eve")


def run(run_id: str, created_at: str, user: str = "ann", tenant: str = "acme") -> RunRecord:
    return RunRecord(
        run_id=run_id,
        tenant=tenant,
        user=user,
        collection="main",
        question="Why?",
        pipeline="agentic",
        created_at=created_at,
        index_version=1,
        result={"answer": "Because… 因为"},
        trail=[Step(node="retrieve", tool="search", ms=0.5)],
    )


@pytest.fixture
def kept(store: Store) -> Store:
    for record in (
        run("abc1", "2026-01-01"),
        run("abd2", "2026-01-02"),
        run("a%_3", "2026-01-03"),
        run("zzz9", "2026-01-09", user="bob"),
        run("yyy8", "2026-01-08", tenant="rival"),
    ):
        store.runs.save(record)
    return store


@pytest.mark.parametrize(
    ("asked", "found"), [("abc1", "abc1"), ("abc", "abc1"), ("a%", "a%_3"), ("last", "a%_3")]
)
def test_a_run_is_found(kept: Store, asked: str, found: str) -> None:
    assert kept.runs.load(ANN, asked).run_id == found


@pytest.mark.parametrize("asked", ["ab", "a", "%", "_bc1", "zzz9", "yyy8", "nothing", "'"])
def test_an_unclear_or_foreign_name_is_refused(kept: Store, asked: str) -> None:
    with pytest.raises(CallerError, match="a run is named by"):
        kept.runs.load(ANN, asked)


def test_a_run_comes_back_as_it_was_kept(kept: Store) -> None:
    assert kept.runs.load(ANN, "abc1") == run("abc1", "2026-01-01")


def test_the_newest_runs_of_the_user_are_listed(kept: Store) -> None:
    assert [r.run_id for r in kept.runs.newest(ANN, 2)] == ["a%_3", "abd2"]
    assert kept.runs.newest(EVE, 5) == []
