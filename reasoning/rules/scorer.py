"""How likely each sentence answers: a linear model of its features.

The odds of a sentence are against the null option "nothing here answers" (a conditional logit:
McFadden 1974). `scripts/train_scorer.py` fits the numbers by leaving whole data sets out.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import yaml

from core.errors import OperatorError
from models.embeddings import Vectors
from reasoning.rules.features import FEATURES

FILE = Path(__file__).with_name("scorer.yaml")
# The rows: with similarities, which are calibrated by embedder, and for what none serves.
MEANING, WORDS = "meaning", "words"
BIAS = "bias"
MOST_ODDS = 30.0  # beyond it exp() adds nothing


class Scorer:
    """Score the features of sentences; immutable."""

    def __init__(self, weights: dict[str, float]) -> None:
        """Take a weight for each feature and the bias."""
        import numpy as np

        if set(weights) != {*FEATURES, BIAS}:
            odd = sorted({*FEATURES, BIAS} ^ set(weights))
            raise OperatorError(
                f"{FILE.name} must have one weight for each feature",
                value=", ".join(odd),
                hint="install Carrel again, or run scripts/train_scorer.py",
            )
        self._weights = np.array([weights[name] for name in FEATURES], dtype=np.float32)
        self._bias = weights[BIAS]

    def odds(self, rows: Vectors) -> Vectors:
        """Return the log odds of each sentence against "nothing answers", shape (n,)."""
        import numpy as np

        return np.asarray(np.clip(rows @ self._weights + self._bias, -MOST_ODDS, MOST_ODDS))


@lru_cache(maxsize=2)
def scorer(*, meaning: bool) -> Scorer:
    """Return the scorer of sentences whose similarities are known, or of words alone."""
    rows = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return Scorer(rows[MEANING if meaning else WORDS])
