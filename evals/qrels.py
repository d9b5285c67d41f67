"""Relevance judgments: which document answers which query, and how well."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from core.errors import CallerError
from evals.lines import read_lines

GRADE = re.compile(r"[+-]?[0-9]{1,6}")
HEADER = ("query-id", "query_id", "qid", "query")
SHAPE = "a line is: query id, tab, document id, tab, grade; TREC's four columns are read as well"
SHOWN = 5

Judgments = dict[str, dict[str, int]]


def read_qrels(path: Path) -> Judgments:
    """Return document grades by query id; grades are whole numbers, below 1 means not relevant."""
    judgments: Judgments = {}
    first = True
    for number, line in read_lines(path):
        place = f"{path.name}:{number}"
        columns = _columns(line)
        is_header = first and columns[0].lower() in HEADER and not GRADE.fullmatch(columns[-1])
        first = False
        if is_header:
            continue
        query, document, text = _row(place, line, columns)
        grade = _grade(place, text)
        grades = judgments.setdefault(query, {})
        if grades.setdefault(document, grade) != grade:
            raise CallerError(
                f"{place}: this document is already judged {grades[document]} for this query",
                value=line,
                hint="keep one grade for each pair of query and document",
            )
    return judgments


def _columns(line: str) -> list[str]:
    by_tab = [column.strip() for column in line.split("\t")]
    return by_tab if len(by_tab) > 1 else line.split()


def _row(place: str, line: str, columns: list[str]) -> tuple[str, str, str]:
    if len(columns) == 4:  # TREC has an iteration that nobody uses in the second column
        columns = [columns[0], *columns[2:]]
    if len(columns) != 3 or not all(columns):
        raise CallerError(f"{place}: a judgment has three columns", value=line, hint=SHAPE)
    return columns[0], columns[1], columns[2]


def _grade(place: str, text: str) -> int:
    if not GRADE.fullmatch(text):
        raise CallerError(f"{place}: the grade must be a whole number", value=text, hint=SHAPE)
    return int(text)


def unknown_documents(judgments: Judgments, documents: Collection[str]) -> list[str]:
    """Return the judged documents that are not among `documents`, in the order of the file."""
    judged = dict.fromkeys(document for grades in judgments.values() for document in grades)
    return [document for document in judged if document not in documents]


def listed(names: list[str]) -> str:
    """Return how many names there are, and the first of them."""
    more = ", …" if len(names) > SHOWN else ""
    return f"{len(names)} ({', '.join(names[:SHOWN])}{more})"
