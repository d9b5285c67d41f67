"""Score documents by what their fields say, and choose different ones of the best."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from math import log10
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.types import Evidence
from reasoning.recommend.audience import is_for
from reasoning.recommend.need import SMALL, TEXT, Constraint, Need
from reasoning.recommend.roles import (
    class_of_licence,
    cue,
    is_denied,
    licences,
    maturity_of,
    tables,
    value_of,
    values_of,
)

if TYPE_CHECKING:
    Rows = NDArray[np.float32]
else:
    Rows = Any

# What factors of 1 add to a score, of which the fit has 1: they order what fits alike. With whole
# lists of projects left out larger ones find less of what fits (docs/evals/recommend.md).
WEIGHTS = {
    "activity": 0.01,
    "maturity": 0.01,
    "licence": 0.04,
    "community": 0.01,
    "documentation": 0.01,
    "rating": 0.01,
}
NOVELTY = 0.3  # weight of being little known, where that is asked for; chosen, not measured
TASTE = 0.2  # the most that opinions add or take away; chosen, not measured
UNLIKE = 0.5  # likeness up to which liking a document says nothing of the other; chosen
DIVERSITY, VARIED = 0.1, 0.3  # weight of being unlike what is listed already, and where asked for
HALF_LIFE = 365.0  # days after which activity is half; chosen, not measured
# A document fits that stands out so far in its collection; or that is so like the need, 0..1, where
# it shares words with it, and where it shares none: docs/evals/recommend.md.
STANDS_OUT, WORDED, ALIKE = 0.15, 0.2, 0.4
NEIGHBOURS = 5  # nearest candidates that share their fit; docs/evals/recommend.md
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}")
_TRUE = ("true", "1", "yes", "да", "так", "是")


@dataclass
class Suggestion:
    """Hold a document with its best passage, its card and its scores, each 0..1."""

    passage: Evidence
    card: Evidence | None = None
    collection: str = ""
    factors: dict[str, float] = field(default_factory=dict)
    taste: float = 0.0  # -1..1, from what the user liked and disliked
    disliked: bool = False
    because: Opinion | None = None  # that speaks for it most
    score: float = 0.0

    @property
    def key(self) -> str:
        """Return the key of the document."""
        return self.passage.document_key


def is_fitting(one: Suggestion, likeness: float, standing: float | None) -> bool:
    """Tell whether a document fits a need at all.

    `standing` is the score that it has among all of its collection, None where others have more.
    One that could not be compared stays.
    """
    scores = one.passage.scores
    worded = scores.get("text", 0) > 0
    if not scores or (worded and "vector" not in scores):
        return True
    return likeness >= (WORDED if worded else ALIKE) or (standing or 0.0) >= STANDS_OUT


def share_fit(candidates: Sequence[Suggestion], rows: Rows) -> None:
    """Let the score of each passage be half its own, half the mean of the nearest NEIGHBOURS.

    What fits a need is alike (van Rijsbergen 1979): one found among others that fit does so more
    surely than one alone. `rows` are the unit vectors of the passages.
    """
    scores = np.array([one.passage.score for one in candidates])
    if len(candidates) <= NEIGHBOURS:
        return
    alike = rows @ rows.T
    np.fill_diagonal(alike, -np.inf)
    nearest = np.argpartition(-alike, NEIGHBOURS, axis=1)[:, :NEIGHBOURS]
    shared = (scores + scores[nearest].mean(axis=1)) / 2
    for one, score in zip(candidates, shared.tolist(), strict=True):
        one.passage = one.passage.model_copy(update={"score": score})


def score_candidates(candidates: Sequence[Suggestion], need: Need, today: date) -> list[Suggestion]:
    """Return the candidates that meet the limits of factors, scored, best first."""
    best = max([1.0, *(one.passage.score for one in candidates)])
    kept = []
    for one in candidates:
        fit = min(1.0, max(0.0, one.passage.score / best))
        one.factors = {"fit": fit, **read_factors(one.passage.metadata, today)}
        if not all(is_met(limits, one.factors.get(name)) and is_stated(limits, one)
                   for name, limits in need.constraints.items()):  # fmt: skip
            continue
        # What is not known counts as nothing: the licence of an abandoned list is not known either.
        extra = sum(weight * one.factors.get(name, 0.0) for name, weight in WEIGHTS.items())
        novelty = (
            NOVELTY * one.factors["novelty"]
            if need.has("little_known") and "novelty" in one.factors
            else 0
        )
        # Who dislikes a document has it at the end of the list, and others as before.
        one.score = fit + extra + novelty + TASTE * one.taste - one.disliked
        kept.append(one)
    return sorted(kept, key=lambda one: (-one.score, one.passage.source))


# What an opinion says for a document: to look at one says little. Chosen, not measured.
OPINIONS = {"up": 1.0, "adopted": 1.0, "viewed": 0.3, "down": -1.0}


class Opinion(NamedTuple):
    """Say what a user thinks of a document, by its key and title: a name of OPINIONS."""

    key: str
    title: str
    rating: str


def add_taste(
    suggestions: Sequence[Suggestion], likeness: Rows, opinions: Sequence[Opinion]
) -> None:
    """Say how like suggestions are to what a user likes, and how like to what they dislike.

    `likeness`, 0..1, has a row for each suggestion and a column for each opinion. However many of
    them there are, `taste` stays within −1..1; one on the document itself is all of it.
    """
    # Of several on one document what was said of it goes before that it was looked at.
    ordered = sorted(opinions, key=lambda one: abs(OPINIONS[one.rating]))
    own = {one.key: OPINIONS[one.rating] for one in ordered}
    counts, best = tastes(likeness, [one.rating for one in opinions])
    for one, taste, place in zip(suggestions, counts, best, strict=True):
        one.disliked = own.get(one.key) == -1
        one.taste = own.get(one.key, float(taste))
        if one.taste > 0:
            stated = (known for known in opinions if known.key == one.key)
            one.because = next(stated, opinions[int(place)])


def tastes(likeness: Rows, ratings: Sequence[str]) -> tuple[Rows, Rows]:
    """Return for each row what the nearest opinions for and against it make of it, −1..1.

    And the column of the nearest one that speaks for it.
    """
    weights = np.array([OPINIONS[one] for one in ratings])
    alike = np.clip((likeness - UNLIKE) / (1 - UNLIKE), 0.0, 1.0) * weights
    return alike.max(axis=1).clip(min=0) + alike.min(axis=1).clip(max=0), alike.argmax(axis=1)


def is_met(constraint: Constraint, value: float | None) -> bool:
    """Tell whether a factor is within the limits of a constraint; one unknown is within none."""
    if constraint.least is None and constraint.most is None:
        return True
    if value is None:
        return False
    least, most = constraint.least or 0.0, 1.0 if constraint.most is None else constraint.most
    return least <= value <= most


def is_stated(constraint: Constraint, one: Suggestion) -> bool:
    """Tell whether a document says by a field, or else in its text, what a constraint's cue asks.

    What it says by the field goes before its text.
    """
    if not constraint.cue:
        return True
    stated = values_of(constraint.field or "", one.passage.metadata)
    if stated and constraint.field != TEXT:
        return (not {*stated}.isdisjoint(constraint.values)) != constraint.denied
    texts = [item.text for item in (one.passage, one.card) if item is not None]
    if constraint.cue != SMALL:
        return not constraint.denied and any(is_for(constraint.cue, text) for text in texts)
    return any(
        not is_denied(text, match.start()) for text in texts for match in cue(SMALL).finditer(text)
    )


def read_factors(metadata: Mapping[str, Any], today: date) -> dict[str, float]:
    """Return what the fields of a document are worth, each 0..1; what they lack is left out."""
    archived = str(value_of("archived", metadata)).casefold() in _TRUE
    community = _community(metadata)
    rated = _numeric(value_of("rating", metadata))
    licence = value_of("licence", metadata)
    kind = class_of_licence(_joined(licence)) if licence else None
    found: dict[str, float | None] = {
        "activity": 0.0 if archived else _activity(metadata, today),
        "maturity": 0.0 if archived else _maturity(metadata),
        "licence": licences()["compatibility"][kind] if kind else None,
        "community": community,
        "documentation": _documentation(metadata),
        "rating": None if rated is None else min(1.0, rated / (5 if rated <= 5 else 10)),  # noqa: PLR2004
        "novelty": None if community is None else 1.0 - community,
    }
    return {name: round(min(1.0, max(0.0, v)), 4) for name, v in found.items() if v is not None}


def _joined(value: object) -> str:
    return " / ".join(map(str, value)) if isinstance(value, list) else str(value)


def _numeric(value: object) -> float | None:
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if np.isfinite(number) and number >= 0 else None


def _activity(metadata: Mapping[str, Any], today: date) -> float | None:
    """Return 1 for a change of today, half of it for each HALF_LIFE before."""
    match = _ISO.match(str(value_of("updated", metadata)))
    if match is None:
        return None
    try:
        days = (today - date.fromisoformat(match[0])).days
    except ValueError:
        return None
    return float(0.5 ** (max(0, days) / HALF_LIFE))


def _maturity(metadata: Mapping[str, Any]) -> float | None:
    """Return what the document says, else how many stars it has: 1,000 count 0.6."""
    stated = value_of("maturity", metadata)
    degree = maturity_of(_joined(stated)) if stated is not None else None
    return _scaled("stars", metadata) if degree is None else degree


def _scaled(role: str, metadata: Mapping[str, Any]) -> float | None:
    number = _numeric(value_of(role, metadata))
    if number is None:
        return None
    return min(1.0, log10(1 + number) / log10(1 + tables()["scales"][role]))


def _community(metadata: Mapping[str, Any]) -> float | None:
    """Return the mean of what is known of stars, forks, contributors, downloads and ratings."""
    known = [one for role in tables()["scales"] if (one := _scaled(role, metadata)) is not None]
    return sum(known) / len(known) if known else None


def _documentation(metadata: Mapping[str, Any]) -> float | None:
    """Return 1 for documentation of its own, half of it for a page of its own.

    What has a licence or stars and names neither has none that it tells of.
    """
    if value_of("documentation", metadata):
        return 1.0
    if value_of("homepage", metadata):
        return 0.5
    return 0.0 if any(value_of(role, metadata) for role in ("licence", "stars")) else None


def choose_different(
    ranked: Sequence[Suggestion], likeness: Rows, most: int, weight: float
) -> list[Suggestion]:
    """Choose by maximal marginal relevance (Carbonell and Goldstein 1998), in the order given.

    Greedily the best of (1 − weight)·score − weight·the largest likeness with one that is chosen;
    `likeness`, 0..1, has a row and a column for each.
    """
    scores = np.array([one.score for one in ranked])
    nearest = np.zeros(len(ranked))
    left = list(range(len(ranked)))
    chosen: list[int] = []
    while left and len(chosen) < most:
        values = (1 - weight) * scores[left] - weight * nearest[left]
        place = left.pop(int(np.argmax(values)))
        chosen.append(place)
        nearest = np.maximum(nearest, likeness[place])
    return [ranked[place] for place in sorted(chosen)]
