"""Measure search through a tree that is kept up beside search through one that is built afresh.

    python -m benchmarks.tree_upkeep DATASET_DIR [--documents N] [--sequences N] [--steps N] ...

A sequence begins with half of the documents, and adds, changes or forgets one at random in each
step, by an ingest that keeps the tree up. Then the questions whose documents are there are
searched for, and again after a build with `--fresh`. `search_tree` is the tool, `tree` its
passages without those of hybrid search; the figure is the evidence recall of `benchmarks.tree` in
ten passages. The interval is over sequences.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

from app.session import Session
from benchmarks.tree import PASSAGES, SECONDS, read_gold, recall
from core.language.analysis import content_terms
from core.settings import load_settings
from evals.corpus import AUTH
from evals.dataset import JudgedQuery, find_file, read_dataset, read_objects
from evals.summary import differences
from retrievers.tree.search import TreeQuery, TreeSearch
from retrievers.tree.view import open_view
from retrievers.types import Index
from tools.toolbox import Toolbox

CHANGED = 0.7  # of its lines, that a changed document has
WAYS = ("search_tree", "tree")
Texts = dict[str, str]


def main() -> None:
    """Run the sequences and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--documents", type=int, default=60)
    parser.add_argument("--sequences", type=int, default=30)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--questions", type=int, default=50, help="of a sequence at most")
    given = parser.parse_args()
    queries = read_dataset(given.dataset, allow_missing=True, judged_only=True).queries
    gold = read_gold(given.dataset)
    texts = read_texts(given.dataset, queries, given.documents)
    kept: list[list[float]] = []
    fresh: list[list[float]] = []
    with TemporaryDirectory() as place:
        settings, _ = load_settings({"data": Path(place, "data")})
        with Session(settings, create=True, needs_embedder=True) as session:
            for number in range(given.sequences):
                folder = Path(place, f"s{number}")
                folder.mkdir()
                chance = random.Random(number)
                present = change(session, folder, texts, given.steps, chance)
                asked = [one for one in queries if set(one.grades) <= present]
                asked = chance.sample(asked, min(len(asked), given.questions))
                found = [score(session, folder.name, asked, gold, again) for again in (False, True)]
                kept.append(found[0])
                fresh.append(found[1])
                print(number, len(present), len(asked), found, file=sys.stderr)
    first, second = ([list(one) for one in zip(*side, strict=True)] for side in (kept, fresh))
    print("| passages of | kept up | fresh | difference |\n|---|--:|--:|---|")
    for name, one, other, gap in zip(
        WAYS, first, second, differences(first, second, settings), strict=True
    ):
        low, high = gap.interval or (gap.mean, gap.mean)
        shown = f"{gap.mean:+.3f} ({low:+.3f}, {high:+.3f})"
        print(f"| `{name}` | {mean(one):.3f} | {mean(other):.3f} | {shown} |")


def read_texts(folder: Path, queries: Sequence[JudgedQuery], most: int) -> Texts:
    """Return documents by id, those that questions need first."""
    needed = {name for one in queries for name in one.grades}
    rows = read_objects(find_file(folder, "corpus.jsonl", "corpus.jsonl.gz"), "{}")
    texts = {str(row["_id"]): row["text"] for _, row in rows}
    names = sorted(texts, key=lambda name: name not in needed)[:most]
    return {name: texts[name] for name in names}


def change(
    session: Session, folder: Path, texts: Texts, steps: int, chance: random.Random
) -> set[str]:
    """Bring a collection through a sequence; return the ids of the documents that are left."""
    present = set(chance.sample(sorted(texts), len(texts) // 2))
    for name in present:
        (folder / f"{name}.txt").write_text(texts[name], encoding="utf-8")
    target = session.intake.open_collection(AUTH.tenant, folder.name, None)
    session.ingest(target, [folder])
    session.build_tree(AUTH, target)
    for _ in range(steps):
        step = chance.choice(("add", "change", "forget"))
        name = chance.choice(sorted(texts.keys() - present if step == "add" else present))
        file = folder / f"{name}.txt"
        if step == "forget":
            present.remove(name)
            file.unlink()
        else:
            present.add(name)
            lines = texts[name].splitlines()
            lines = [one for one in lines if step == "add" or chance.random() < CHANGED] or lines
            file.write_text("\n".join(lines), encoding="utf-8")
        session.ingest(target, [folder], prune=True)
    return present


def score(
    session: Session,
    collection: str,
    asked: Sequence[JudgedQuery],
    gold: dict[str, list[str]],
    again: bool,
) -> list[float]:
    """Return the mean evidence recall of each way, `again` after a fresh build."""
    target = session.catalogue.collection(AUTH.tenant, collection)
    if again:
        session.build_tree(AUTH, target, fresh=True)
    index = session.index(target)
    rows = []
    for one in asked:
        language = one.language or "en"
        found = (set(passages) for passages in words(index, one, language))
        rows.append([recall(gold[one.query_id], one.answers, own, language) for own in found])
    return [mean(column) for column in zip(*rows, strict=True)]


def words(index: Index, query: JudgedQuery, language: str) -> Iterator[list[str]]:
    """Yield the words of the first passages that each way finds."""
    arguments = {"query": query.text, "language": language}
    result = Toolbox(index).run(WAYS[0], arguments, AUTH, time.monotonic() + SECONDS)
    view = open_view(index, AUTH)
    assert view is not None and index.embedder is not None  # it was built
    wish = TreeQuery(query.text, index.embedder.embed_query(query.text), language)
    hits = sorted(TreeSearch(view, wish).hits(), key=lambda one: -one.score)
    near = list({hit.item.chunk_id: hit.item for hit in hits}.values())
    for found in (result.evidence, near):
        yield [term for one in found[:PASSAGES] for term in content_terms(one.text, language)]


if __name__ == "__main__":
    main()
