"""Two raters' scores: checked, compared with each other, and averaged per pipeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from core.errors import CallerError
from core.settings import Settings
from evals.ers import KEY
from evals.sheets import read_sheet
from evals.statistics import intervals
from evals.summary import DIGITS, rounded

SCORES = (1, 2, 3, 4, 5)

Scores = dict[str, int]


def rate(sheets: tuple[Path, Path], key: Path, settings: Settings) -> dict[str, Any]:
    """Return the agreement of two raters and the mean scores, as `--json` prints them.

    Raises CallerError, naming the row, on any score that is missing or not 1 to 5, and on items
    that are not the key's.
    """
    if sheets[0].resolve() == sheets[1].resolve():
        raise CallerError(
            "two raters have two sheets", value=str(sheets[0]), hint="name both rated copies"
        )
    pipelines = _read_key(key)
    first, second = (_read_scores(path, pipelines) for path in sheets)
    items = list(pipelines)
    left, right = [first[item] for item in items], [second[item] for item in items]
    kappa, warnings = _kappas(left, right)
    return {
        "n": len(items),
        "raters": [path.name for path in sheets],
        "agreement": round(fmean(a == b for a, b in zip(left, right, strict=True)), DIGITS),
        "kappa": kappa,
        "mean": _means(left, right, settings),
        "pipelines": {
            name: _means(
                [first[item] for item in items if pipelines[item] == name],
                [second[item] for item in items if pipelines[item] == name],
                settings,
            )
            for name in sorted(set(pipelines.values()))
        },
        "warnings": warnings,
    }


def _read_key(path: Path) -> dict[str, str]:
    pipelines: dict[str, str] = {}
    for number, cells in read_sheet(path, KEY):
        if not cells["item"] or not cells["pipeline"] or cells["item"] in pipelines:
            raise CallerError(
                f"{path.name}, row {number}: a key names each item once, with its pipeline",
                value=cells["item"],
                hint="use the key as it was exported",
            )
        pipelines[cells["item"]] = cells["pipeline"]
    if not pipelines:
        raise CallerError("the key must name items", value=str(path), hint="export it again")
    return pipelines


def _read_scores(path: Path, pipelines: Mapping[str, str]) -> Scores:
    scores: Scores = {}
    for number, cells in read_sheet(path, ("item", "score")):
        item, place = cells["item"], f"{path.name}, row {number}"
        if item not in pipelines:
            raise CallerError(
                f"{place}: the key does not have this item",
                value=item,
                hint="use the key that was exported with the sheet",
            )
        if item in scores:
            raise CallerError(f"{place}: the item is rated twice", value=item, hint="keep one row")
        if cells["score"] not in map(str, SCORES):
            raise CallerError(
                f"{place} (item {item}): the score must be a whole number from 1 to 5",
                value=cells["score"] or "nothing",
                hint="every item needs a score of both raters",
            )
        scores[item] = int(cells["score"])
    missing = [item for item in pipelines if item not in scores]
    if missing:
        raise CallerError(
            f"{path.name} lacks {len(missing)} of the key's items",
            value=missing[0],
            hint="every item needs a score of both raters",
        )
    return scores


def _kappas(left: Sequence[int], right: Sequence[int]) -> tuple[dict[str, float | None], list[str]]:
    """Return Cohen's kappa (1960) and the quadratically weighted one (1968)."""
    from sklearn.metrics import cohen_kappa_score

    if len({*left, *right}) == 1:
        said = "all scores are equal, so that agreement beyond chance cannot be told"
        return {"plain": None, "quadratic": None}, [said]
    plain, quadratic = (
        float(cohen_kappa_score(left, right, labels=list(SCORES), weights=weights))
        for weights in (None, "quadratic")
    )
    return {"plain": round(plain, DIGITS), "quadratic": round(quadratic, DIGITS)}, []


def _means(left: Sequence[int], right: Sequence[int], settings: Settings) -> dict[str, Any]:
    both = [(a + b) / 2 for a, b in zip(left, right, strict=True)]
    return {
        "n": len(both),
        "rater1": round(fmean(left), DIGITS),
        "rater2": round(fmean(right), DIGITS),
        "ers": round(fmean(both), DIGITS),
        "ci": rounded(intervals([both], settings)[0]),
    }
