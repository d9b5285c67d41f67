"""Measure what is recommended: projects for judged needs, limits that needs state, opinions, books.

    python -m benchmarks.recommend --corpora FOLDER [--data DIR] [--books N] [--limit N]

Needs are the categories of `oss_projects`, which its field `topics` names too: it is left out. The
same search without any factor, one hit for each document, stands beside. A stated limit is broken
by a project that does not say that it meets it. `liked` is nDCG@10 of the other relevant projects
after some were liked. An entry of a reading list is on its theme as in `benchmarks.reading_lists`.
Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from math import log2
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from app.session import Session
from benchmarks.answers import BESIDE
from benchmarks.reading_lists import BOOKS, QUESTIONS, is_about
from core.language.detect import detect_language
from core.settings import load_settings
from evals.corpus import AUTH, COLLECTION, build_corpus, open_corpus
from evals.dataset import Dataset, read_objects
from evals.summary import differences, intervals
from serve.recommending import recommended

PERMISSIVE = {"MIT", "Apache-2.0", "BSD-3-Clause", "BSD-2-Clause", "ISC", "Unlicense", "Zlib"}
# What is added to a need, and whether the fields of a project say that they meet it.
STATED: dict[str, Callable[[dict[str, Any]], bool]] = {
    "{} in Python": lambda m: m.get("language") == "Python",
    "{}, written in Go": lambda m: m.get("language") == "Go",
    "{} with at least 1000 stars": lambda m: m.get("stars", 0) >= 1000,
    "{} under the MIT licence": lambda m: m.get("license") == "MIT",
    "{}, not GPL": lambda m: "GPL" not in m.get("license", "GPL"),
    "{} that runs on Docker": lambda m: "Docker" in m.get("platforms", ()),
    "graduated CNCF project for {}": lambda m: m.get("cncf") == "graduated",
    "{} на Python, больше 500 звёзд": lambda m: (
        m.get("language") == "Python" and m.get("stars", 0) > 500
    ),
    "{} мовою Rust": lambda m: m.get("language") == "Rust",
    "用 Java 写的 {}": lambda m: m.get("language") == "Java",
    "{}, permissive licence": lambda m: any(x in m.get("license", "") for x in PERMISSIVE),
    "{}, свободная лицензия": lambda m: m.get("license", "⊘")[0] != "⊘",
}


def ndcg(found: Sequence[str], relevant: set[str]) -> float:
    """Return nDCG@10 of a ranking, relevant or not."""
    gains = sum(1 / log2(place + 2) for place, one in enumerate(found[:10]) if one in relevant)
    return gains / sum(1 / log2(place + 2) for place in range(min(10, len(relevant))))


def listed(session: Session, need: str, k: int = 10) -> list[dict[str, Any]]:
    """Return what is recommended."""
    items: list[dict[str, Any]] = recommended(session, AUTH, need, COLLECTION, k)["items"]
    return items


def searched(session: Session, need: str) -> list[str]:
    """Return the documents of hybrid search, best first."""
    arguments = {"query": need, "language": detect_language(need)}
    tools = session.tools(AUTH, COLLECTION)
    found = tools.run("find_candidates", arguments, AUTH, time.monotonic() + 60)
    return list(dict.fromkeys(one.document_id for one in found.evidence))[:10]


def likeness(session: Session, texts: Sequence[str]) -> float:
    """Return how alike the texts of a list are on average, 0..1."""
    assert session.embedder is not None
    rows = session.embedder.embed_documents(texts)
    scaled = session.tools(AUTH, COLLECTION).scale(rows @ rows.T)
    return float(scaled[np.triu_indices(len(texts), 1)].mean()) if len(texts) > 1 else 0.0


def measure_projects(session: Session, folder: Path, limit: int) -> dict[str, Any]:
    """Compare with hybrid search over judged needs, and count limits that are broken."""
    texts = {row["_id"]: f"{row['title']}. {row['text']}" for row in rows_of(folder)}
    relevant: dict[str, set[str]] = {}
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, document, score = line.split("\t")
        relevant.setdefault(query, set()).update({document} if float(score) > 0 else ())
    needs = [row for _, row in read_objects(folder / "queries.jsonl", "a need")][:limit]
    columns: dict[str, list[float]] = {}
    for need in needs:
        gold, started = relevant[need["_id"]], time.perf_counter()
        found = [item["document_id"] for item in listed(session, need["text"])]
        columns.setdefault("seconds", []).append(time.perf_counter() - started)
        for name, ids in (("recommend", found), ("hybrid", searched(session, need["text"]))):
            columns.setdefault(f"{name} ndcg@10", []).append(ndcg(ids, gold))
            columns.setdefault(f"{name} p@5", []).append(len(gold.intersection(ids[:5])) / 5)
            columns.setdefault(f"{name} likeness", []).append(
                likeness(session, [texts[one] for one in ids])
            )
    result: dict[str, Any] = {"n": len(needs)}
    for name, column in columns.items():
        result[name] = [fmean(column), intervals([column], session.settings)[0]]
    for name in ("ndcg@10", "p@5", "likeness"):
        pair = columns[f"recommend {name}"], columns[f"hybrid {name}"]
        result[f"gain {name}"] = vars(differences([pair[0]], [pair[1]], session.settings)[0])
    asked = [need["text"].split(" - ")[-1].split(" / ")[-1] for need in needs[::9]]
    lists = [(meets, listed(session, form.format(one))) for form, meets in STATED.items()
             for one in asked]  # fmt: skip
    items = [(meets, item) for meets, found in lists for item in found]
    result["stated"] = {
        "lists": len(lists),
        "empty": sum(not found for _, found in lists),
        "items": len(items),
        "broken": sum(not meets(item["metadata"]) for meets, item in items),
    }
    return result | {"liked": measure_likes(session, needs, relevant)}


def measure_likes(
    session: Session, needs: Sequence[dict[str, Any]], relevant: dict[str, set[str]]
) -> dict[int, float]:
    """Return nDCG@10 of what was not liked, by how many relevant projects were."""
    chance, collection = random.Random(0), session.catalogue.visible_collection(AUTH, COLLECTION)
    curve: dict[int, list[float]] = {0: [], 1: [], 2: [], 4: []}
    for need in needs:
        gold = sorted(relevant[need["_id"]])
        if len(gold) < 8:
            continue
        likes = chance.sample(gold, 4)
        for count in curve:
            for one in likes[:count]:
                session.runs.rate_document(AUTH, collection.id, one, "up")
            ids = [item["document_id"] for item in listed(session, need["text"], 14)]
            session.runs.delete_ratings(AUTH)
            left = set(gold) - set(likes)
            curve[count].append(ndcg([one for one in ids if one not in likes], left))
    return {count: fmean(column or [0.0]) for count, column in curve.items()}


def measure_books(session: Session, books: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the share of the first five that are on the theme of a reading list, by language."""
    shares: dict[str, dict[str, list[float]]] = {}
    for line in QUESTIONS.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        on_theme = [one for one in books if row["about"] and is_about(books[one], row["about"])]
        if len(on_theme) < 5:
            continue
        language = shares.setdefault(detect_language(row["question"]), {})
        found = [item["document_id"] for item in listed(session, row["question"])]
        for name, ids in (("recommend", found), ("hybrid", searched(session, row["question"]))):
            language.setdefault(name, []).append(len({*ids[:5]} & {*on_theme}) / 5)
    return {
        language: {"n": len(both["hybrid"])} | {name: fmean(both[name]) for name in both}
        for language, both in shares.items()
    }


def rows_of(folder: Path) -> Iterable[dict[str, Any]]:
    """Yield the projects without the field that names their categories."""
    for _, row in read_objects(folder / "corpus.jsonl.gz", "a project"):
        row["metadata"].pop("topics", None)
        yield row


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=BESIDE)
    parser.add_argument("--corpora", type=Path, required=True)
    parser.add_argument("--books", type=int, default=600)
    parser.add_argument("--limit", type=int, default=1000)
    given = parser.parse_args()
    settings, _ = load_settings({"reasoner": "rules", "cache": str(given.corpora)})
    projects = rows_of(given.data / "oss_projects")
    books = [row for _, row in islice(read_objects(given.data / BOOKS, "a book"), given.books)]
    result = {}
    for name, rows in (("projects", projects), ("books", books)):
        path = given.corpora / "recommend" / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        dataset = Dataset(f"recommend-{name}", path, frozenset(), [])
        corpus = build_corpus(dataset, settings, lambda *_: None)
        with open_corpus(corpus.settings) as session:
            result[name] = (
                measure_projects(session, given.data / "oss_projects", given.limit)
                if name == "projects"
                else measure_books(session, {book["_id"]: book for book in books})
            )
    sys.stdout.write(json.dumps(result, ensure_ascii=False, default=str) + "\n")


if __name__ == "__main__":
    main()
