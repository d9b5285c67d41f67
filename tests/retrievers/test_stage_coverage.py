"""Coverage-aware selection: the formula, its bounds, and the order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fakes import FakeEmbedder
from hypothesis import given
from hypothesis import strategies as st
from stage_builders import WithVectors, hit, ids, searched

from core.auth import AuthContext
from retrievers.fusion import VECTOR
from retrievers.stages import adapt_count, choose, coverage
from retrievers.types import Query

Q = np.array([1.0, 0.0, 0.0])
BOUNDS = {"alpha": 0.5, "min_gain": 0.001, "most": 10, "budget": 1000}


def unit(*values: float) -> np.ndarray:
    return np.array(values) / np.linalg.norm(values)


def value(chosen, vectors, alpha: float) -> float:
    """Compute the formula of the specification as it stands there."""
    picked = vectors[sorted(chosen)]
    mean = picked.mean(axis=0)
    length = np.linalg.norm(mean)
    cosine = float(mean @ Q / length) if length else 0.0
    return alpha * cosine + (1 - alpha) * float((picked @ Q).max())


def test_the_other_side_is_chosen_before_the_same_again() -> None:
    """Two hits that stray in opposite directions have a mean that points at the question."""
    vectors = np.array([unit(1, 0.5, 0), unit(1, 0.51, 0), unit(1, -0.6, 0)])
    chosen = choose(Q, vectors, [1, 1, 1], **BOUNDS)
    assert list(chosen)[:2] == [0, 2]
    assert chosen[0] == pytest.approx(vectors[0] @ Q)


@pytest.mark.parametrize(
    ("bounds", "chosen"),
    [
        ({"min_gain": 0.5}, [0]),
        ({"most": 1}, [0]),
        ({"budget": 10}, [0]),
        ({"budget": 20}, [0, 2]),
        ({"budget": 1}, [0]),
        ({"alpha": 0.0}, [0]),
    ],
)
def test_it_stops(bounds, chosen) -> None:
    vectors = np.array([unit(1, 0.5, 0), unit(1, 0.51, 0), unit(1, -0.6, 0)])
    assert list(choose(Q, vectors, [10, 10, 10], **{**BOUNDS, **bounds})) == chosen


def test_ties_go_to_the_earlier_and_missing_vectors_do_no_harm() -> None:
    same = np.array([[0.0, 0.0, 0.0], unit(1, 1, 0), unit(1, 1, 0)])
    assert next(iter(choose(Q, same, [1, 1, 1], **BOUNDS))) == 1


NUMBERS = st.floats(-1, 1).map(lambda x: round(x, 3))
VECTORS = st.lists(st.tuples(NUMBERS, NUMBERS, st.just(0.5)), min_size=1, max_size=8)


@given(VECTORS, st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from([0.0, 0.01, 0.1]))
def test_gains_add_up_to_the_formula(rows, alpha, min_gain) -> None:
    vectors = np.array([unit(*row) for row in rows])
    tokens = [1] * len(rows)
    chosen = choose(Q, vectors, tokens, alpha=alpha, min_gain=min_gain, most=8, budget=100)
    assert sum(chosen.values()) == pytest.approx(value(chosen, vectors, alpha))
    assert all(gain >= min_gain for gain in list(chosen.values())[1:])
    rest = set(range(len(rows))) - set(chosen)
    covered = value(chosen, vectors, alpha)
    assert all(value([*chosen, r], vectors, alpha) - covered < min_gain + 1e-9 for r in rest)


@pytest.mark.parametrize(("cosine", "kept"), [(0.9, 3), (0.5, 5), (0.4, 6)])
def test_the_number_of_hits_follows_the_best_distance(index, cosine: float, kept: int) -> None:
    given = replace(index(), embedder=FakeEmbedder())
    search = searched(given, "harbour", vector=FakeEmbedder().embed_query("harbour"))
    steps = (0.0, 0.0, 0.0, 0.0, 0.0, 0.05, 0.2, 0.3, 0.3)  # behind the best
    evidence = [
        hit(name).model_copy(update={"scores": {VECTOR: cosine - step}})
        for name, step in zip("abcdefghi", steps, strict=True)
    ]
    found, note = adapt_count(search, evidence)
    assert ids(found) == ids(evidence[:kept]) and f"{kept} of 9" in note
    assert adapt_count(searched(given), evidence) == (evidence, "")


def test_without_vectors_all_is_kept_and_said(index) -> None:
    search = WithVectors(index(), Query("harbour", AuthContext(tenant="acme")))
    evidence = [hit("a"), hit("b")]
    assert coverage(search, evidence) == (evidence, "not chosen by coverage: there are no vectors")
    assert coverage(search, []) == ([], "")
    assert searched(index()).vector is None
