"""Choose evidence that together covers the question (SPEC M5)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.language.scan import estimate_tokens
from core.settings import Settings
from core.types import Evidence
from retrievers.types import Searched, Vector

ALPHA = 0.5  # weight of the mean of the chosen against the best of them
LEAST_GAIN = 0.005  # coverage that another piece of evidence must add
CHOSEN = 10  # pieces of evidence chosen at most


def token_budget(searched: Searched, evidence: list[Evidence]) -> tuple[list[Evidence], str]:
    """Keep the longest beginning of the ranking that fits the budget, at least the first."""
    budget = context_budget(searched.index.settings)
    used = 0
    for place, item in enumerate(evidence):
        used += estimate_tokens(item.text)
        if place and used > budget:
            return evidence[:place], f"{len(evidence) - place} beyond {budget} tokens dropped"
    return evidence, ""


def context_budget(settings: Settings) -> int:
    """Return the tokens evidence may fill: `context_tokens`, within a share of the window."""
    if not settings.selection.context_window:
        return settings.selection.context_tokens
    share = int(settings.selection.context_share * settings.selection.context_window)
    return min(settings.selection.context_tokens, share)


COVERAGE = "coverage"
_ROUNDING = 1e-9  # two ways of adding up one gain may differ by less


def coverage(searched: Searched, evidence: list[Evidence]) -> tuple[list[Evidence], str]:
    """Keep what adds to the coverage of the question, in the order of the ranking.

    Bounded by `coverage_k` and the token budget; without vectors all is kept.
    """
    if searched.vector is None or not evidence:
        return evidence, "" if not evidence else "not chosen by coverage: there are no vectors"
    settings = searched.index.settings
    chosen = choose(
        searched.vector,
        searched.vectors([item.chunk_id for item in evidence]),
        [estimate_tokens(item.text) for item in evidence],
        alpha=ALPHA,
        min_gain=LEAST_GAIN,
        most=CHOSEN,
        budget=context_budget(settings),
    )
    kept = [
        item.model_copy(update={"scores": {**item.scores, COVERAGE: chosen[place]}})
        for place, item in enumerate(evidence)
        if place in chosen
    ]
    return kept, f"{len(kept)} of {len(evidence)} cover the question ({sum(chosen.values()):.2f})"


def choose(
    question: Vector,
    vectors: Vector,
    tokens: Sequence[int],
    *,
    alpha: float,
    min_gain: float,
    most: int,
    budget: int,
) -> dict[int, float]:
    """Pick rows greedily for α·cos(q, mean(C)) + (1−α)·max cos(q, c); return row → its gain.

    The first row is always picked; ties go to the earlier row. Rows whose tokens do not fit the
    rest of the budget are passed over.
    """
    rows = np.asarray(vectors, dtype=np.float64)
    target = np.asarray(question, dtype=np.float64)
    cosines = rows @ target
    total = np.zeros(rows.shape[1])
    best, covered, used = -1.0, 0.0, 0
    chosen: dict[int, float] = {}
    while len(chosen) < min(most, len(rows)):
        sums = total + rows
        lengths = np.linalg.norm(sums, axis=1)
        # The cosine of a mean is that of the sum.
        means = np.divide(sums @ target, lengths, out=np.zeros(len(rows)), where=lengths > 0)
        values = alpha * means + (1 - alpha) * np.maximum(cosines, best)
        free = [r for r in range(len(rows)) if r not in chosen and _fits(tokens[r], used, budget)]
        if not free:
            break
        top = max(values[row] for row in free)
        row = next(row for row in free if values[row] >= top - _ROUNDING)
        gain = float(values[row]) - covered
        if chosen and gain < min_gain:
            break
        chosen[row], covered, used = gain, float(values[row]), used + tokens[row]
        total, best = sums[row], max(best, float(cosines[row]))
    return chosen


def _fits(tokens: int, used: int, budget: int) -> bool:
    return used == 0 or used + tokens <= budget
