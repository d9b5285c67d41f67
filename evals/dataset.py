"""A BEIR-like data set: documents, queries and judgments, read and checked before any work."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

from core.errors import CallerError


def find_file(folder: Path, *names: str) -> Path:
    """Return the first of these files that the folder has; a missing one is a CallerError."""
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise CallerError(
        f"a data set needs {' or '.join(names)}",
        value=str(folder),
        hint="`carrel eval retrieval --help` names the three files of a data set",
    )


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (number from 1, text) of all lines with text; a file ending in .gz is unpacked."""
    number = 0
    try:
        with cast(BinaryIO, gzip.open(path)) if path.suffix == ".gz" else path.open("rb") as handle:
            # Bytes, since a JSON string may hold characters at which a text file would split.
            for number, raw in enumerate(handle, start=1):
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip()
                if line:
                    yield number, line
    except UnicodeDecodeError:
        raise CallerError(
            f"{path.name}:{number}: the line is not UTF-8", hint="save the file as UTF-8"
        ) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise CallerError(
            "the gzip file must be whole",
            value=f"{path} ({error})",
            hint="copy or download it again",
        ) from None
    except OSError as error:
        raise CallerError(
            "the file must be readable",
            value=f"{path} ({error.strerror or error})",
            hint="correct its permissions",
        ) from None


def read_objects(path: Path, shape: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield ("file:line", object) of JSON Lines; `shape` shows a right line in error messages."""
    for number, line in read_lines(path):
        place = f"{path.name}:{number}"
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            why = error.msg if isinstance(error, json.JSONDecodeError) else type(error).__name__
            raise CallerError(
                f"{place}: not valid JSON ({why})", value=line, hint=f"a line is {shape}"
            ) from None
        if not isinstance(found, dict):
            raise CallerError(
                f"{place}: each line must be one JSON object", value=line, hint=f"a line is {shape}"
            )
        yield place, found


def object_id(place: str, found: dict[str, Any], shape: str) -> str:
    """Return the `_id` of an object as text; it must be a text with letters or a whole number."""
    value = found.get("_id")
    if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
        name = str(value)
        if name == name.encode("utf-8", "replace").decode("utf-8"):
            return name
    raise CallerError(f"{place}: the line needs an '_id'", value=value, hint=f"a line is {shape}")


GRADE = re.compile(r"[+-]?[0-9]{1,6}")
HEADER = ("query-id", "query_id", "qid", "query")
SHAPE = "a line is: query id, tab, document id, tab, grade; TREC's four columns are read as well"
SHOWN = 5  # names that a message lists, chosen

Judgments = dict[str, dict[str, int]]


def read_qrels(path: Path) -> Judgments:
    """Return document grades by query id; grades are whole numbers, below 1 means not relevant."""
    judgments: Judgments = {}
    first = True
    for number, line in read_lines(path):
        place = f"{path.name}:{number}"
        by_tab = [column.strip() for column in line.split("\t")]
        columns = by_tab if len(by_tab) > 1 else line.split()
        is_header = first and columns[0].lower() in HEADER and not GRADE.fullmatch(columns[-1])
        first = False
        if is_header:
            continue
        query, document, text = _row(place, line, columns)
        if not GRADE.fullmatch(text):
            raise CallerError(f"{place}: the grade must be a whole number", value=text, hint=SHAPE)
        grade = int(text)
        grades = judgments.setdefault(query, {})
        if grades.setdefault(document, grade) != grade:
            raise CallerError(
                f"{place}: this document is already judged {grades[document]} for this query",
                value=line,
                hint="keep one grade for each pair of query and document",
            )
    return judgments


def _row(place: str, line: str, columns: list[str]) -> tuple[str, str, str]:
    if len(columns) == 4:  # TREC has an iteration that nobody uses in the second column
        columns = [columns[0], *columns[2:]]
    if len(columns) != 3 or not all(columns):
        raise CallerError(f"{place}: a judgment has three columns", value=line, hint=SHAPE)
    return columns[0], columns[1], columns[2]


def listed(names: list[str]) -> str:
    """Return how many names there are, and the first of them."""
    more = ", …" if len(names) > SHOWN else ""
    return f"{len(names)} ({', '.join(names[:SHOWN])}{more})"


DOCUMENT = '{"_id": "d1", "title": "…", "text": "…"}'
QUERY = '{"_id": "q1", "text": "…"}'
RELEVANT = 1  # the lowest grade that counts as relevant
TYPE_KEYS = ("type", "category")
LANGUAGE_KEYS = ("language", "lang")
ANSWER_KEY = "answer"
PASSAGE_KEYS = ("passage",)


@dataclass(frozen=True)
class JudgedQuery:
    """Hold one query with the grades of its documents; `type` and `language` are "" if unknown.

    A document that `grades` does not name is not relevant. `answers` are the accepted answers,
    none where the data set gives no text or number for one. `passage` is the document it is asked
    about, also where that has no answer.
    """

    query_id: str
    text: str
    grades: dict[str, int] = field(default_factory=dict)
    type: str = ""
    language: str = ""
    answers: tuple[str, ...] = ()
    passage: str = ""

    @property
    def relevant(self) -> frozenset[str]:
        """Return the ids of the relevant documents."""
        return frozenset(name for name, grade in self.grades.items() if grade >= RELEVANT)


@dataclass(frozen=True)
class Dataset:
    """Hold what is evaluated; `unused` are queries without a relevant document or over the limit.

    `corpus` is the file of documents and `document_ids` the ids in it.
    """

    name: str
    corpus: Path
    document_ids: frozenset[str]
    queries: list[JudgedQuery]
    unused: list[JudgedQuery] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def read_dataset(
    folder: Path,
    *,
    limit: int | None = None,
    allow_missing: bool = False,
    judged_only: bool = True,
) -> Dataset:
    """Read a folder; the first `limit` queries with a relevant document are evaluated.

    Without `judged_only` those that have none are evaluated as well. Raises CallerError on anything
    malformed, and on judged documents that the corpus lacks unless `allow_missing`, under which
    nothing can find them.
    """
    if limit is not None and limit < 1:
        raise CallerError("--limit must be at least 1", value=limit, hint="leave it out for all")
    if not folder.is_dir():
        raise CallerError(
            "a data set is a folder", value=str(folder), hint="check the path and name it again"
        )
    corpus = find_file(folder, "corpus.jsonl", "corpus.jsonl.gz")
    query_file = find_file(folder, "queries.jsonl", "queries.jsonl.gz")
    qrels_file = find_file(folder, "qrels.tsv", "qrels/test.tsv")
    judgments = read_qrels(qrels_file)
    queries = _read_queries(query_file, judgments)
    document_ids = _read_documents(corpus)
    warnings = _unknown_queries(judgments, queries)
    warnings += _unknown_documents(judgments, document_ids, allow_missing)
    judged = [query for query in queries if query.relevant]
    if not judged:
        raise CallerError(
            "no query has a judged relevant document",
            value=str(qrels_file),
            hint="compare the query ids of the two files; a relevant document has a grade above 0",
        )
    chosen = (judged if judged_only else queries)[:limit]
    names = {query.query_id for query in chosen}
    unused = [query for query in queries if query.query_id not in names]
    return Dataset(folder.resolve().name, corpus, document_ids, chosen, unused, warnings)


def _read_documents(path: Path) -> frozenset[str]:
    places: dict[str, str] = {}
    for place, found in read_objects(path, DOCUMENT):
        _new_id(places, object_id(place, found, DOCUMENT), place)
    if not places:
        raise CallerError("the corpus must hold documents", value=str(path), hint=DOCUMENT)
    return frozenset(places)


def read_queries(folder: Path) -> list[JudgedQuery]:
    """Read the queries of a folder alone, without their judgments."""
    return _read_queries(find_file(folder, "queries.jsonl", "queries.jsonl.gz"), {})


def _read_queries(path: Path, judgments: Judgments) -> list[JudgedQuery]:
    places: dict[str, str] = {}
    queries = []
    for place, found in read_objects(path, QUERY):
        query_id = object_id(place, found, QUERY)
        _new_id(places, query_id, place)
        text = found.get("text")
        if not isinstance(text, str) or not text.strip():
            raise CallerError(
                f"{place}: the query needs a text", value=text, hint=f"a line is {QUERY}"
            )
        queries.append(
            JudgedQuery(
                query_id=query_id,
                text=text.encode("utf-8", "replace").decode("utf-8").strip(),
                grades=judgments.get(query_id, {}),
                type=_described(found, TYPE_KEYS),
                language=_described(found, LANGUAGE_KEYS),
                answers=_answers(found),
                passage=_described(found, PASSAGE_KEYS),
            )
        )
    return queries


def _new_id(places: dict[str, str], name: str, place: str) -> None:
    earlier = places.setdefault(name, place)
    if earlier != place:
        raise CallerError(
            f"{place}: the id is already used at {earlier}",
            value=name,
            hint="give every line an id of its own",
        )


def _described(found: dict[str, Any], keys: tuple[str, ...]) -> str:
    metadata = found.get("metadata")
    places = [metadata if isinstance(metadata, dict) else {}, found]
    for key in keys:
        for place in places:
            value = place.get(key)
            if isinstance(value, str | int) and str(value).strip():
                return " ".join(str(value).split())
    return ""


def _answers(found: dict[str, Any]) -> tuple[str, ...]:
    metadata = found.get("metadata")
    value = metadata.get(ANSWER_KEY) if isinstance(metadata, dict) else None
    accepted = value if isinstance(value, list) else [value]
    # A whole table, or nothing, is no answer that a sentence could contain.
    plain = [one for one in accepted if isinstance(one, str | int | float)]
    written = [str(one) for one in plain if not isinstance(one, bool)]
    return tuple(dict.fromkeys(text.strip() for text in written if text.strip()))


def _unknown_queries(judgments: Judgments, queries: list[JudgedQuery]) -> list[str]:
    known = {query.query_id for query in queries}
    unknown = [name for name in judgments if name not in known]
    if not unknown:
        return []
    return [f"judged queries that are not in the queries file: {listed(unknown)}"]


def _unknown_documents(judgments: Judgments, documents: frozenset[str], allowed: bool) -> list[str]:
    judged = dict.fromkeys(document for grades in judgments.values() for document in grades)
    unknown = [document for document in judged if document not in documents]
    if not unknown:
        return []
    if not allowed:
        raise CallerError(
            "every judged document must be in the corpus",
            value=f"not there: {listed(unknown)}",
            hint="complete the corpus, or count them as not found with --allow-missing",
        )
    return [f"judged documents that the corpus lacks count as not found: {listed(unknown)}"]
