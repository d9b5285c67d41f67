"""Measure search through the tree beside hybrid search: what is found, what is answered, how fast.

    python -m benchmarks.tree DATASET_DIR... [--limit N] [--seed N] [--no-answers] [--json FILE]

Each question is searched for by `search` and `search_tree`, and asked before the tree of its
collection is built and after it, as the rules plan it. `evidence_recall` is
the share of the gold sentences whose words stand in the first passages, of a data set without
such sentences the share of the words of the gold answer. `contained` tells whether a gold answer
stands in the answer or in what it cites; `f1` and `rouge_l` compare words with the gold answer.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

from app.session import Session
from core.language.analysis import content_terms
from core.language.detect import detect_language
from core.settings import Settings, load_settings
from evals.answers import ask_one, contains_answer, folded, judged_answers
from evals.corpus import AUTH, COLLECTION, build_corpus, open_corpus
from evals.dataset import JudgedQuery, find_file, read_dataset, read_objects
from evals.summary import differences
from retrievers.types import Index
from tools.toolbox import Toolbox

PASSAGES = 10  # first ones that are compared
WHOLE = 0.9  # of a gold sentence's words: it is there, whatever its punctuation
SECONDS = 60.0  # for one search
Scores = dict[str, float]


def main() -> None:
    """Measure the data sets and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--limit", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-answers", action="store_true")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    settings, _ = load_settings({})
    measured = {
        folder.name: measure(folder, settings, given.limit, given.seed, not given.no_answers)
        for folder in given.folders
    }
    print(table(measured, settings))
    if given.json:
        given.json.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")


def measure(
    folder: Path, settings: Settings, limit: int, seed: int, answers: bool
) -> dict[str, Any]:
    """Return the figures of each question without and with the tree."""
    dataset = read_dataset(folder, allow_missing=True, judged_only=False)
    corpus = build_corpus(dataset, settings, lambda *_: None)
    queries = [one for one in dataset.queries if judged_answers(one.answers)]
    random.Random(seed).shuffle(queries)
    gold = read_gold(folder)
    found: dict[str, list[Scores]] = {}
    with open_corpus(corpus.settings) as session:
        collection = session.catalogue.collection(AUTH.tenant, COLLECTION)
        session.index(collection).trees.clear(collection.id)
        for name, tool in (("hybrid", "search"), ("tree", "search_tree")):
            seconds = session.build_tree(AUTH, collection)["seconds"] if name == "tree" else 0.0
            index = session.index(collection)
            found[name] = [
                score(session, index, one, gold.get(one.query_id, []), tool, answers)
                for one in queries[:limit]
            ]
            print(folder.name, name, f"built in {seconds:.0f} s", file=sys.stderr)
    return {**found, "types": [one.type for one in queries[:limit]], "seconds": seconds}


def read_gold(folder: Path) -> dict[str, list[str]]:
    """Return the sentences that a good answer rests on, by query, where the data set has them."""
    path = find_file(folder, "queries.jsonl", "queries.jsonl.gz")
    rows = (found for _, found in read_objects(path, "{}"))
    return {row["_id"]: row.get("metadata", {}).get("references") or [] for row in rows}


def score(
    session: Session,
    index: Index,
    query: JudgedQuery,
    gold: Sequence[str],
    tool: str,
    answers: bool,
) -> Scores:
    """Search by a tool, and ask as the rules plan it now."""
    tools = Toolbox(index)
    language = query.language or detect_language(query.text)
    arguments = {"query": query.text, "language": language}
    started = time.perf_counter()
    found = tools.run(tool, arguments, AUTH, time.monotonic() + SECONDS).evidence[:PASSAGES]
    ms = 1000 * (time.perf_counter() - started)
    words = {term for one in found for term in content_terms(one.text, language)}
    scores = {"ms": ms, "evidence_recall": recall(gold, query.answers, words, language)}
    if answers:
        asked = ask_one(session, query, "auto")
        text = " ".join(claim["text"] for claim in asked.result.get("claims", []))
        scores["f1"] = max(f1(one, text) for one in query.answers)
        scores["rouge_l"] = max(rouge_l(one, text) for one in query.answers)
        scores["contained"] = float(contains_answer(judged_answers(query.answers), asked.texts))
    return scores


def recall(gold: Sequence[str], answers: Sequence[str], words: set[str], language: str) -> float:
    """Return the share of gold sentences that the words hold, else of the words of an answer."""

    def share(text: str) -> float:
        own = set(content_terms(text, language))
        return len(own & words) / len(own) if own else 0.0

    if gold:
        return mean(float(share(one) >= WHOLE) for one in gold)
    return max(map(share, answers))


def f1(gold: str, given: str) -> float:
    """Return the F1 of words, each as often as it stands there (SQuAD)."""
    wanted, found = folded(gold).split(), folded(given).split()
    shared = sum((Counter(wanted) & Counter(found)).values())
    return 2 * shared / (len(wanted) + len(found)) if shared else 0.0


def rouge_l(gold: str, given: str) -> float:
    """Return the F-measure of the longest common subsequence of words (Lin 2004)."""
    wanted, found = folded(gold).split(), folded(given).split()
    row = [0] * (len(found) + 1)
    for word in wanted:
        before = 0
        for place, other in enumerate(found, start=1):
            kept = row[place]
            row[place] = before + 1 if word == other else max(row[place], row[place - 1])
            before = kept
    return 2 * row[-1] / (len(wanted) + len(found)) if row[-1] else 0.0


def table(measured: dict[str, Any], settings: Settings) -> str:
    """Return the means without the tree, and what the tree adds with its interval, by data set."""
    lines = ["| set | n | figure | hybrid | with tree | difference |"]
    lines.append("|---|--:|---|--:|--:|---|")
    pooled: dict[str, list[Any]] = {"hybrid": [], "tree": []}
    for name, found in measured.items():
        lines += rows_of(name, found, settings)
        for side, own in pooled.items():
            own.extend(found[side])
    return "\n".join([*lines, *(rows_of("all", pooled, settings) if len(measured) > 1 else [])])


def rows_of(name: str, found: dict[str, list[Scores]], settings: Settings) -> list[str]:
    """Return the lines of one data set; `ms` is a median and has no interval."""
    first, second = found["hybrid"], found["tree"]
    lead = f"| {name} | {len(first)} |"
    lines = []
    for figure in first[0]:
        columns = [[one[figure] for one in side] for side in (first, second)]
        middle: Callable[[list[float]], float] = median if figure == "ms" else mean
        digits = 0 if figure == "ms" else 3
        shown = " | ".join(f"{middle(one):.{digits}f}" for one in columns)
        gap = differences([columns[1]], [columns[0]], settings)[0]
        low, high = gap.interval or (gap.mean, gap.mean)
        text = "" if figure == "ms" else f"{gap.mean:+.3f} ({low:+.3f} to {high:+.3f})"
        lines.append(f"{lead} {figure} | {shown} | {text} |")
    return lines


if __name__ == "__main__":
    main()
