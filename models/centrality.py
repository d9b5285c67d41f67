"""Choose the few vectors that stand for all: each next one makes the rest better represented."""

from __future__ import annotations

from collections.abc import Sequence

from models.vectors import Vectors

# Beyond this many, every n-th one is asked whom it is like: their similarities take 4 MB.
MOST_COMPARED = 1000


def central(vectors: Vectors, most: int, begin: Sequence[int] = ()) -> list[int]:
    """Return the places of up to `most` unit vectors: those of `begin`, then the most central.

    Greedy facility location: the sum over all of their similarity to the nearest one chosen grows
    by as much as it can, so what says the same as a chosen one is not chosen. Where there are no
    vectors, only zeros, the first ones are as good as any.
    """
    import numpy as np

    if not vectors.any():
        return list(range(min(most, len(vectors))))
    step = -(-len(vectors) // MOST_COMPARED)
    similarities = vectors @ vectors[::step].T
    reached = np.full(similarities.shape[1], -1.0, dtype=np.float32)
    chosen = list(begin)
    for place in chosen:
        reached = np.maximum(reached, similarities[place])
    while len(chosen) < min(most, len(vectors)):
        gains = np.maximum(similarities - reached, 0).sum(axis=1)
        gains[chosen] = -1
        best = int(gains.argmax())
        if chosen and gains[best] <= 0:
            break
        chosen.append(best)
        reached = np.maximum(reached, similarities[best])
    return chosen
