"""Do opinions tell what else their users like? Each like is left out, and looked for again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from app.session import Session
from reasoning.recommend.factors import tastes
from tools.toolbox import Toolbox

LIKES = ("up", "adopted")
MOST = 200  # newest documents of one user that are compared; chosen, not measured
EVEN = 0.5  # what chance gives
DIGITS = 4
CONFIDENCE = 95  # per cent


def evaluate_opinions(session: Session, tenant: str) -> dict[str, Any]:
    """Return how often a like that was left out goes before what was listed and not liked.

    That is the area under the ROC curve by what the user's other opinions make of both, the mean
    over the users who have likes beside other documents, with its interval over users.
    """
    found: list[float] = []
    likes = 0
    for collection in session.catalogue.collections(tenant):
        rows: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        for user, passage, opinion in session.runs.opinions_of_all(tenant, collection.id):
            rows[user].append((passage, opinion))
        if not rows:
            continue
        box = Toolbox(session.index(collection))
        for own in rows.values():
            shares = _shares(box, own[-MOST:])
            likes += len(shares)
            found += [sum(shares) / len(shares)] if shares else []
    bound = _interval(found, session) if len(found) > 1 else None
    return {
        "users": len(found),
        "likes": likes,
        "auc": round(sum(found) / len(found), DIGITS) if found else None,
        "interval": [round(one, DIGITS) for one in bound] if bound else None,
        "confidence": CONFIDENCE / 100,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _interval(values: Sequence[float], session: Session) -> tuple[float, float]:
    """Return the percentile bootstrap interval of a mean (Efron 1979)."""
    settings = session.settings.evaluation
    random = np.random.default_rng(settings.seed)
    means = [random.choice(values, len(values)).mean() for _ in range(settings.resamples)]
    tail = (100 - CONFIDENCE) / 2
    low, high = np.percentile(means, [tail, 100 - tail])
    return float(low), float(high)


def _shares(box: Toolbox, own: Sequence[tuple[str, str]]) -> list[float]:
    """Return for each like of one user which share of the others it goes before, ties half."""
    opinions: dict[str, str] = {}
    for passage, opinion in own:
        if opinion != "listed" or passage not in opinions:
            opinions[passage] = opinion
    passages = list(opinions)
    liked = [place for place, one in enumerate(passages) if opinions[one] in LIKES]
    others = [place for place, one in enumerate(passages) if opinions[one] not in LIKES]
    if len(liked) < 2 or not others:  # nothing to tell it by, or from
        return []
    rows = box.vectors(passages)
    alike = box.scale(rows @ rows.T)
    stated = [place for place, one in enumerate(passages) if opinions[one] != "listed"]
    shares = []
    for place in liked:
        counted = []
        for one in (place, *others):
            columns = [column for column in stated if column not in (place, one)]
            ratings = [opinions[passages[column]] for column in columns]
            value = tastes(alike[[one]][:, columns], ratings)[0][0] if columns else 0.0
            counted.append(float(value))
        less = sum(counted[0] > one for one in counted[1:])
        same = sum(counted[0] == one for one in counted[1:])
        shares.append((less + EVEN * same) / len(others))
    return shares
