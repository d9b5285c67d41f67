"""How likely each sentence answers: a linear model of its features.

The odds of a sentence are against the null option "nothing here answers" (a conditional logit:
McFadden 1974). `scripts/train_scorer.py` fits the numbers by leaving whole data sets out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import yaml

from core.errors import OperatorError
from models.embeddings import Vectors
from reasoning.rules.answering.features import FEATURES

FILE = Path(__file__).with_name("scorer.yaml")
# The rows: with similarities, which are calibrated by embedder, with the reader's odds as well,
# and for what no embedder serves.
MEANING, READING, WORDS = "meaning", "reading", "words"
READER = "reader"
BIAS = "bias"
MOST_ODDS = 30.0  # beyond it exp() adds nothing


class Scorer:
    """Score the features of sentences; immutable."""

    def __init__(self, weights: dict[str, float], names: Sequence[str] = FEATURES) -> None:
        """Take a weight for each of the named features and the bias."""
        if set(weights) != {*names, BIAS}:
            odd = sorted({*names, BIAS} ^ set(weights))
            raise OperatorError(
                f"{FILE.name} must have one weight for each feature",
                value=", ".join(odd),
                hint="install Carrel again, or run scripts/train_scorer.py",
            )
        self._weights = np.array([weights[name] for name in names], dtype=np.float32)
        self._bias = weights[BIAS]

    def odds(self, rows: Vectors) -> Vectors:
        """Return the log odds of each sentence against "nothing answers", shape (n,)."""
        return np.asarray(np.clip(rows @ self._weights + self._bias, -MOST_ODDS, MOST_ODDS))


@lru_cache(maxsize=3)
def scorer(kind: str) -> Scorer:
    """Return the scorer of MEANING, of READING, whose last feature is the reader's, or of WORDS."""
    rows = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return Scorer(rows[kind], (*FEATURES, READER) if kind == READING else FEATURES)
