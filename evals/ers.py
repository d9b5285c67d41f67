"""Answers of several pipelines on one sheet, for people who rate them without knowing whose.

The expert relevance score (ERS) of a pipeline is the mean of two raters' scores from 1 to 5.
"""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from app.session import Session
from core.auth import AuthContext
from core.distribution import require_extra
from core.errors import CallerError
from core.question import checked_question
from core.settings import Settings
from evals.corpus import Progress
from evals.dataset import read_lines, read_objects
from evals.summary import DIGITS, intervals, round_interval
from stores.sqlite.rows import digest

# What a spreadsheet takes for a formula, also in the full width of East Asian keyboards.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
BYTE_ORDER_MARK = "\ufeff"  # without it some spreadsheets read UTF-8 as another encoding


def sheet_text(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return CSV; a cell that looks like a formula gets an apostrophe in front."""
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerow(headers)
    writer.writerows([[neutral(cell) for cell in row] for row in rows])
    return BYTE_ORDER_MARK + written.getvalue()


def neutral(cell: str) -> str:
    """Return a cell that no spreadsheet calculates."""
    return f"'{cell}" if cell.startswith(FORMULA) else cell


def read_sheet(path: Path, columns: Sequence[str]) -> list[tuple[int, dict[str, str]]]:
    """Return (row as a spreadsheet counts it, cells by column) of all rows with any text.

    Commas or semicolons may stand between the cells. A missing column is a CallerError.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise CallerError(
            "the sheet must be UTF-8", value=str(path), hint="save it as CSV UTF-8"
        ) from None
    except OSError as error:
        raise CallerError(
            "the sheet must be a readable file",
            value=f"{path} ({error.strerror or error})",
            hint="check the path",
        ) from None
    header = text.split("\n", 1)[0]
    delimiter = ";" if header.count(";") > header.count(",") else ","
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise CallerError(
            f"{path.name} is not valid CSV ({error})", hint="save it as CSV UTF-8 again"
        ) from None
    names = [name.strip().lower() for name in rows[0]] if rows else []
    for column in columns:
        if names.count(column) != 1:
            raise CallerError(
                f"{path.name} must have one column named '{column}'",
                value=", ".join(names),
                hint="keep the first row of the exported sheet as it is",
            )
    places = {column: names.index(column) for column in columns}
    return [
        (number, {name: (row[at].strip() if at < len(row) else "") for name, at in places.items()})
        for number, row in enumerate(rows[1:], start=2)
        if any(cell.strip() for cell in row)
    ]


Answering = Literal["agentic", "classic"]
PIPELINES: tuple[Answering, ...] = ("agentic", "classic")
SHEET = ("item", "question", "answer", "sources", "score")
KEY = ("item", "pipeline", "query")
QUESTION = '{"_id": "q1", "text": "…"}'


@dataclass(frozen=True)
class SheetQuestion:
    """Hold one question; `name` is its id in the data set, or its line."""

    name: str
    text: str


@dataclass(frozen=True)
class Answered:
    """Hold what one pipeline answered to one question."""

    question: SheetQuestion
    pipeline: str
    answer: str
    sources: str


def checked_answering(text: str) -> list[Answering]:
    """Return the pipelines that answer, from a list with commas between."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    known = [name for name in PIPELINES if name in names]
    if not names or len(known) < len(names):
        raise CallerError(
            "the pipelines that answer are agentic and classic, each named once", value=text
        )
    return known


def read_questions(path: Path, limit: int | None) -> list[SheetQuestion]:
    """Read the first `limit` questions: JSON Lines with a "text", or one question per line."""
    questions = []
    if path.name.endswith((".jsonl", ".jsonl.gz")):
        for place, found in read_objects(path, QUESTION):
            text = found.get("text")
            if not isinstance(text, str) or not text.strip():
                raise CallerError(
                    f"{place}: the question needs a text", value=text, hint=f"a line is {QUESTION}"
                )
            questions.append(SheetQuestion(str(found.get("_id", place)), text.strip()))
    else:
        questions = [SheetQuestion(f"line {number}", line) for number, line in read_lines(path)]
    if not questions:
        raise CallerError("the file must hold questions", value=str(path), hint="one on each line")
    return questions[:limit]


def answer_all(
    session: Session,
    auth: AuthContext,
    collection: str,
    questions: Sequence[SheetQuestion],
    pipelines: Sequence[Answering],
    progress: Progress,
) -> list[Answered]:
    """Answer every question with every pipeline.

    Raises CallerError before the first answer when a question is not one that can be asked.
    """
    for question in questions:
        checked_question(question.text, session.settings)
    answered: list[Answered] = []
    total = len(questions) * len(pipelines)
    for question in questions:
        for pipeline in pipelines:
            run = session.ask(question.text, auth, collection, pipeline=pipeline)
            text = str(run.result["answer"])
            if run.result["refused"]:
                text = text.split("\n", 1)[0]  # the other lines name the tools it used
            cited = [one["source"] for claim in run.result["claims"] for one in claim["citations"]]
            answered.append(Answered(question, pipeline, text, "; ".join(dict.fromkeys(cited))))
            progress("answers", len(answered), total)
    return answered


def blind_sheet(answered: Sequence[Answered], seed: int) -> tuple[str, str]:
    """Return the raters' sheet and its key as CSV; `seed` decides the order of the items.

    An item's name holds a piece of a hash of its texts, so that a sheet fits its own key alone.
    """
    shuffled = list(answered)
    random.Random(seed).shuffle(shuffled)
    sheet, key = [], []
    for number, one in enumerate(shuffled, start=1):
        item = f"{number:03d}-{digest(one.question.text, one.answer, length=6)}"
        sheet.append([item, one.question.text, one.answer, one.sources, ""])
        key.append([item, one.pipeline, one.question.name])
    return sheet_text(SHEET, sheet), sheet_text(KEY, key)


SCORES = (1, 2, 3, 4, 5)

Scores = dict[str, int]


def rate(sheets: tuple[Path, Path], key: Path, settings: Settings) -> dict[str, Any]:
    """Return the agreement of two raters and the mean scores, as `--json` prints them.

    Raises CallerError, naming the row, on any score that is missing or not 1 to 5, and on items
    that are not the key's.
    """
    require_extra("eval", "the agreement of raters")
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
        note = "all scores are equal, so that agreement beyond chance cannot be told"
        return {"plain": None, "quadratic": None}, [note]
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
        "ci": round_interval(intervals([both], settings)[0]),
    }
