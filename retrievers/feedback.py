"""Pseudo-relevance feedback: move the query's vector towards its best hits (Rocchio 1971)."""

from __future__ import annotations

from core.settings import Settings
from retrievers.channels import Asked
from retrievers.ranking import Ranked
from retrievers.trust import Trust
from retrievers.types import Index, Vector


def wants_feedback(trust: Trust, settings: Settings) -> bool:
    """Open the gate: the channels agree, and no hit stands out so far that it is the answer.

    Measured: without a gate feedback gains on collections of many relevant documents a query and
    loses where a question needs several different ones.
    """
    if settings.feedback != "gated":
        return settings.feedback == "always"
    agreeing = trust.agreement >= settings.feedback_agreement
    return agreeing and 0 < trust.peak <= settings.feedback_peak


def feed_back(index: Index, asked: Asked, ranked: Ranked) -> Vector | None:
    """Return q + weight · mean(best hits), of length 1; None when the hits have no vectors."""
    import numpy as np

    settings = index.settings
    best = [key for key, _ in ranked.ranking[: settings.feedback_hits]]
    if asked.vector is None or not best:
        return None
    rows = index.store.hot.vectors(index.collection.id, best)
    rows = rows[np.isfinite(rows).all(axis=1)]
    if not len(rows):
        return None
    moved = asked.vector + settings.feedback_weight * rows.mean(axis=0)
    return np.asarray(moved / np.linalg.norm(moved), dtype=np.float32)
