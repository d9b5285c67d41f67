"""What every clusterer does, with principal components or with UMAP."""

from __future__ import annotations

import numpy as np
import pytest

from retrievers.tree.clustering import Clusterer, NumpyClusterer, UmapClusterer, soft_clusters

BLOBS = 4


@pytest.fixture(
    params=[NumpyClusterer, pytest.param(UmapClusterer, marks=pytest.mark.slow)], scope="module"
)
def clusterer(request: pytest.FixtureRequest) -> Clusterer:
    made: Clusterer = request.param()
    return made


def blobs(each: int, seed: int = 1) -> np.ndarray:
    chance = np.random.default_rng(seed)
    middles = np.eye(32)[:BLOBS]
    rows = np.concatenate([one + 0.05 * chance.normal(size=(each, 32)) for one in middles])
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def test_what_lies_together_is_together(clusterer: Clusterer) -> None:
    rows = blobs(20)
    parts = soft_clusters(clusterer, rows, np.full(len(rows), 100))
    assert len(parts) >= BLOBS
    for part in parts:
        assert len({place // 20 for place in part.tolist()}) == 1
    assert set(np.concatenate(parts).tolist()) == set(range(len(rows)))


def test_the_same_rows_give_the_same_clusters(clusterer: Clusterer) -> None:
    rows, tokens = blobs(15, 3), np.full(60, 100)
    first, second = (soft_clusters(clusterer, rows, tokens) for _ in range(2))
    assert [one.tolist() for one in first] == [one.tolist() for one in second]


def test_a_cluster_has_no_more_than_the_tokens_it_may_have(clusterer: Clusterer) -> None:
    rows = np.random.default_rng(2).normal(size=(90, 16)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    tokens = np.random.default_rng(3).integers(1, 400, size=90)
    for most in (500, 3500):
        parts = soft_clusters(clusterer, rows, tokens, most)
        assert all(tokens[part].sum() <= most for part in parts)
        assert set(np.concatenate(parts).tolist()) == set(range(90))


@pytest.mark.parametrize("count", [1, 2, 3, 12, 100])
def test_equal_rows_are_cut_in_their_order(clusterer: Clusterer, count: int) -> None:
    rows = np.tile(np.eye(8, dtype=np.float32)[:1], (count, 1))
    parts = soft_clusters(clusterer, rows, np.full(count, 100), 1000)
    assert set(np.concatenate(parts).tolist()) == set(range(count))
    assert all(len(part) <= 10 for part in parts)


def test_a_row_larger_than_a_cluster_may_be_stands_alone(clusterer: Clusterer) -> None:
    parts = soft_clusters(clusterer, blobs(2), np.full(8, 9000))
    assert sorted(part.tolist() for part in parts) == [[n] for n in range(8)]


def test_probabilities_are_of_each_row(clusterer: Clusterer) -> None:
    shares = clusterer.assign(clusterer.reduce(blobs(10), 6))
    assert shares.shape[0] == 40 and np.allclose(shares.sum(axis=1), 1)
    assert (shares >= 0).all()
