"""Answers of several pipelines on one sheet, for people who rate them without knowing whose.

The expert relevance score (ERS) of a pipeline is the mean of two raters' scores from 1 to 5.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from core.auth import AuthContext
from core.errors import CallerError
from core.question import checked_question
from evals.corpus import Progress
from evals.lines import read_lines, read_objects
from evals.sheets import sheet_text
from graph.session import Session
from stores.rows import digest

Answering = Literal["agentic", "classic"]
PIPELINES: tuple[Answering, ...] = ("agentic", "classic")
SHEET = ("item", "question", "answer", "sources", "score")
KEY = ("item", "pipeline", "query")
QUESTION = '{"_id": "q1", "text": "…"}'


@dataclass(frozen=True)
class Question:
    """Hold one question; `name` is its id in the data set, or its line."""

    name: str
    text: str


@dataclass(frozen=True)
class Answered:
    """Hold what one pipeline answered to one question."""

    question: Question
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


def read_questions(path: Path, limit: int | None) -> list[Question]:
    """Read the first `limit` questions: JSON Lines with a "text", or one question per line."""
    questions = []
    if path.name.endswith((".jsonl", ".jsonl.gz")):
        for place, found in read_objects(path, QUESTION):
            text = found.get("text")
            if not isinstance(text, str) or not text.strip():
                raise CallerError(
                    f"{place}: the question needs a text", value=text, hint=f"a line is {QUESTION}"
                )
            questions.append(Question(str(found.get("_id", place)), text.strip()))
    else:
        questions = [Question(f"line {number}", line) for number, line in read_lines(path)]
    if not questions:
        raise CallerError("the file must hold questions", value=str(path), hint="one on each line")
    return questions[:limit]


def answer_all(
    session: Session,
    auth: AuthContext,
    collection: str,
    questions: Sequence[Question],
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
            result = run.result
            answered.append(Answered(question, pipeline, _shown(result), _sources(result)))
            progress("answers", len(answered), total)
    return answered


def _shown(result: dict[str, Any]) -> str:
    """Return the answer; of a refusal its first line, since the others name the tools it used."""
    text = str(result["answer"])
    return text.split("\n", 1)[0] if result["refused"] else text


def _sources(result: dict[str, Any]) -> str:
    cited = (citation["source"] for claim in result["claims"] for citation in claim["citations"])
    return "; ".join(dict.fromkeys(cited))


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
