"""Soft clusters of vectors: reduced in dimension, a mixture of Gaussians, their number by BIC."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import NDArray

from core.distribution import require_extra
from retrievers.tree.shape import DIMENSION, MOST_TOKENS
from retrievers.types import Vector

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
MEMBERSHIP = 0.1  # probability from which a cluster has a member, as in RAPTOR
LOCAL_NEIGHBOURS = 10  # of UMAP within a cluster, as in RAPTOR; globally the root of the number
MOST_CLUSTERS = 50  # of one mixture, as in RAPTOR
FITTED = 4000  # vectors that a reduction and a mixture are fitted to; others are only assigned
ROUNDS = 50  # of expectation and maximisation; chosen, not measured
SHRINKS = 0.8  # of a cluster at most is a part that is divided again; chosen, not measured
SEED = 224  # any number; with it the same vectors give the same clusters
LEAST_VARIANCE = 1e-6  # as scikit-learn's `reg_covar`


class Clusterer(Protocol):
    """Reduce vectors and divide them softly; the same input gives the same output."""

    def reduce(self, vectors: Vector, neighbours: int) -> Floats:
        """Return unit vectors, shape (n, d), in at most 10 dimensions."""

    def assign(self, points: Floats) -> Floats:
        """Return the probability of each cluster for each point, shape (n, k), k by BIC."""


def candidate_numbers(count: int) -> Iterator[int]:
    """Yield the numbers of clusters to try for so many points: 1, 2, 3 and on, ever further."""
    number = 1
    while number <= min(MOST_CLUSTERS, max(1, count // 2)):
        yield number
        number = max(number + 1, int(number * 1.4))


def fewest(count: int, fit: Callable[[int], tuple[float, Any]]) -> Any:  # noqa: ANN401 - a model
    """Return the mixture with the lowest BIC; a number that is worse twice ends the search."""
    best: tuple[float, Any] | None = None
    worse = 0
    for number in candidate_numbers(count):
        found = fit(number)
        if best is None or found[0] < best[0]:
            best, worse = found, 0
        else:
            worse += 1
        if worse == 3:
            break
    assert best is not None  # one cluster is always tried
    return best[1]


class NumpyClusterer:
    """Cluster with principal components and a mixture of axis-parallel Gaussians."""

    def reduce(self, vectors: Vector, neighbours: int) -> Floats:
        """Return the coordinates along the directions of largest variance.

        They are found by subspace iteration (Halko et al., arXiv:0909.4061, algorithm 4.4), which
        takes a hundredth of the time of all eigenvectors.
        """
        rows = np.asarray(vectors, dtype=np.float64)
        centred = rows - rows.mean(axis=0)
        start = np.random.default_rng(SEED).normal(size=(rows.shape[1], 2 * DIMENSION))
        basis = start[:, : min(start.shape[1], rows.shape[1])]
        for _ in range(4):
            basis, _ = np.linalg.qr(centred.T @ (centred @ basis))
        _, _, axes = np.linalg.svd(centred @ basis, full_matrices=False)
        return np.asarray(centred @ basis @ axes.T[:, : min(DIMENSION, len(rows) - 1)])

    def assign(self, points: Floats) -> Floats:
        """Return the probabilities under the mixture with the lowest BIC."""
        sample = points[:: -(-len(points) // FITTED)]
        mixture = fewest(len(np.unique(sample, axis=0)), lambda k: _fit(sample, k))
        return _probabilities(_log_densities(points, *mixture))[0]


Mixture = tuple[Floats, Floats, Floats]  # weights (k), means (k, d), variances (k, d)


def _fit(points: Floats, number: int) -> tuple[float, Mixture]:
    """Return the BIC of a mixture of so many Gaussians, and the mixture."""
    count, dimension = points.shape
    spread = points.var(axis=0) + LEAST_VARIANCE
    means = points[_seeds(points, number)]
    mixture = np.full(number, 1 / number), means, np.tile(spread / number, (number, 1))
    before = -np.inf
    for _ in range(ROUNDS):
        shares, total = _probabilities(_log_densities(points, *mixture))
        if total - before < 1e-3 * count:
            break
        before = total
        sizes = shares.sum(axis=0) + 1e-9
        means = shares.T @ points / sizes[:, None]
        squares = shares.T @ points**2 / sizes[:, None] - means**2
        mixture = sizes / count, means, np.maximum(squares, 0) + LEAST_VARIANCE
    parameters = number * (2 * dimension + 1) - 1
    return parameters * np.log(count) - 2 * total, mixture


def _seeds(points: Floats, number: int) -> list[int]:
    """Return points that lie apart, by k-means++ with its own chances."""
    chance = np.random.default_rng(SEED)
    chosen = [int(chance.integers(len(points)))]
    near = ((points - points[chosen[0]]) ** 2).sum(axis=1)
    while len(chosen) < number and near.sum() > 0:
        chosen.append(int(chance.choice(len(points), p=near / near.sum())))
        near = np.minimum(near, ((points - points[chosen[-1]]) ** 2).sum(axis=1))
    return (chosen * number)[:number]


def _log_densities(points: Floats, weights: Floats, means: Floats, variances: Floats) -> Floats:
    precisions = 1 / variances
    distances = (
        points**2 @ precisions.T
        - 2 * points @ (means * precisions).T
        + (means**2 * precisions).sum(axis=1)
    )
    logs = np.log(2 * np.pi * variances).sum(axis=1)
    return np.asarray(np.log(weights) - 0.5 * (distances + logs))


def _probabilities(logs: Floats) -> tuple[Floats, float]:
    """Return shares of each row that sum to 1, and the logarithm of the likelihood of all."""
    highest = logs.max(axis=1, keepdims=True)
    shares = np.exp(logs - highest)
    sums = shares.sum(axis=1, keepdims=True)
    return shares / sums, float((np.log(sums) + highest).sum())


@contextmanager
def _quiet() -> Iterator[None]:
    """Leave out what the libraries warn of: missing TensorFlow, one job, slow convergence."""
    with catch_warnings():
        simplefilter("ignore")
        yield


class UmapClusterer:
    """Cluster with UMAP and scikit-learn's mixtures, of the extra `tree`."""

    def __init__(self) -> None:
        """Load the libraries, which takes seconds; raises OperatorError without the extra."""
        require_extra("tree", "UMAP", otherwise="set ingest.tree_reducer=pca")
        with _quiet():
            import umap
            from sklearn.mixture import GaussianMixture

        self._umap, self._mixture = umap.UMAP, GaussianMixture
        self._instead = NumpyClusterer()

    def reduce(self, vectors: Vector, neighbours: int) -> Floats:
        """Return UMAP's coordinates; of fewer points than it can lay out, principal components."""
        if len(vectors) <= DIMENSION + 2:
            return self._instead.reduce(vectors, neighbours)
        layout = self._umap(
            n_neighbors=max(2, min(neighbours, len(vectors) - 1)),
            n_components=DIMENSION,
            metric="cosine",
            random_state=SEED,
            n_jobs=1,
        )
        sample = vectors[:: -(-len(vectors) // FITTED)]
        with _quiet():
            placed = layout.fit_transform(sample)
            found = placed if len(sample) == len(vectors) else layout.transform(vectors)
        return np.nan_to_num(np.asarray(found, dtype=np.float64))

    def assign(self, points: Floats) -> Floats:
        """Return the probabilities under the mixture with the lowest BIC."""
        sample = points[:: -(-len(points) // FITTED)]

        def fit(number: int) -> tuple[float, Any]:
            made = self._mixture(number, covariance_type="diag", random_state=SEED)
            with _quiet():
                made.fit(sample)
            return float(made.bic(sample)), made

        mixture = fewest(len(np.unique(sample, axis=0)), fit)
        return np.asarray(mixture.predict_proba(points))


def soft_clusters(
    clusterer: Clusterer, vectors: Vector, tokens: Places, most: int = MOST_TOKENS
) -> list[Places]:
    """Return clusters of at most `most` tokens as sorted places; a vector is in one or more.

    All are divided, then each cluster within itself, and once more while it is too large. A single
    vector may be larger. What cannot be divided is cut in its order.
    """
    neighbours = max(2, int((len(vectors) - 1) ** 0.5))
    found: dict[bytes, Places] = {}
    for coarse in _divide(clusterer, vectors, neighbours):
        for part in _fine(clusterer, vectors, tokens, coarse, most):
            found.setdefault(part.tobytes(), part)
    return sorted(found.values(), key=lambda part: (int(part[0]), len(part)))


def _fine(
    clusterer: Clusterer, vectors: Vector, tokens: Places, coarse: Places, most: int
) -> Iterator[Places]:
    """Yield the parts of a cluster, divided as long as one is too large."""
    fits = tokens[coarse].sum() <= most
    if len(coarse) == 1 or (fits and len(coarse) <= DIMENSION + 1):
        yield coarse
        return
    for part in _divide(clusterer, vectors[coarse], LOCAL_NEIGHBOURS):
        own = coarse[part]
        if tokens[own].sum() <= most or len(own) == 1:
            yield own
        elif len(part) > SHRINKS * len(coarse):  # divided again it would hardly be smaller
            yield from (own[run] for run in _cut(tokens[own], most))
        else:
            yield from _fine(clusterer, vectors, tokens, own, most)


def _divide(clusterer: Clusterer, vectors: Vector, neighbours: int) -> list[Places]:
    if len(vectors) < 3:  # too few to tell apart
        return [np.arange(len(vectors))]
    shares = clusterer.assign(clusterer.reduce(vectors, neighbours))
    member = shares >= MEMBERSHIP
    member[np.arange(len(shares)), shares.argmax(axis=1)] = True
    return [np.flatnonzero(column) for column in member.T if column.any()]


def _cut(tokens: Places, most: int) -> Iterator[Places]:
    """Cut all places in their order into runs of at most `most` tokens, or of one place."""
    first = total = 0
    for place, count in enumerate(tokens.tolist()):
        if total + count > most and place > first:
            yield np.arange(first, place)
            first, total = place, 0
        total += count
    yield np.arange(first, len(tokens))
