"""Measure answers and refusals on a folder in the BEIR layout, without a language model.

python -m benchmarks.answers DATASET [--foreign DATASET] [--limit 60]: asks questions of the set
over its own corpus, and questions of a foreign set, which should be refused. `answer` in a query's
metadata is the gold answer, type "unanswerable" marks questions whose passage lacks it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import tempfile
from pathlib import Path
from typing import Any

from cli.ingest import run_ingest
from core.auth import AuthContext
from core.settings import load_settings
from graph.session import Session

UNANSWERABLE = "unanswerable"


def read_rows(folder: Path, name: str) -> list[dict[str, Any]]:
    """Read a JSONL file, compressed or not."""
    plain = folder / f"{name}.jsonl"
    if plain.exists():
        lines = plain.read_text(encoding="utf-8").splitlines()
    else:
        with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as handle:
            lines = handle.read().splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def gold_documents(folder: Path) -> dict[str, set[str]]:
    """Return the relevant document ids of each query."""
    gold: dict[str, set[str]] = {}
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, document, score = line.split("\t")[:3]
        if float(score) > 0:
            gold.setdefault(query, set()).add(document)
    return gold


def folded(text: object) -> str:
    """Return letters and digits only, without case, for comparing answers."""
    return "".join(character for character in str(text).casefold() if character.isalnum())


def contains_answer(answer: object, said: str) -> bool:
    """Tell whether any accepted answer stands within what was said."""
    accepted = answer if isinstance(answer, list) else [answer]
    return any(folded(text) and folded(text) in folded(said) for text in accepted)


def ask_all(
    session: Session, rows: list[dict[str, Any]], gold: dict[str, set[str]]
) -> dict[str, Any]:
    """Ask every question and return the shares."""
    auth = AuthContext(tenant="default")
    answered = cited = contained = 0
    for row in rows:
        result = session.ask(row["text"], auth, "default").result
        answered += not result["refused"]
        documents = {c["document_id"] for claim in result["claims"] for c in claim["citations"]}
        cited += bool(documents & gold.get(row["_id"], set()))
        said = " ".join(claim["text"] for claim in result["claims"])
        answer = row.get("metadata", {}).get("answer")
        contained += answer is not None and contains_answer(answer, said)
    count = max(1, len(rows))
    return {
        "n": len(rows),
        "answered": round(answered / count, 3),
        "gold_document_cited": round(cited / count, 3),
        "gold_answer_contained": round(contained / count, 3),
    }


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--foreign", type=Path, help="a set whose questions should be refused")
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--seed", type=int, default=5)
    given = parser.parse_args()
    draw = random.Random(given.seed)

    def sample(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return draw.sample(rows, min(given.limit, len(rows)))

    corpus = next(given.dataset.glob("corpus.jsonl*"))
    gold = gold_documents(given.dataset)
    queries = read_rows(given.dataset, "queries")
    own = [row for row in queries if row["_id"] in gold]
    without = [row for row in queries if row.get("metadata", {}).get("type") == UNANSWERABLE]
    with tempfile.TemporaryDirectory() as scratch:
        flags = {"data": Path(scratch) / "data", "reasoner": "rules"}
        run_ingest(
            [corpus],
            "default",
            profile=None,
            tenant="default",
            acl="",
            prune=False,
            flags=flags,
            quiet=True,
        )
        with Session(load_settings(flags)[0]) as session:
            report = {"dataset": given.dataset.name, "own": ask_all(session, sample(own), gold)}
            if without:
                report["unanswerable"] = ask_all(session, sample(without), {})
            if given.foreign:
                foreign = sample(read_rows(given.foreign, "queries"))
                report["foreign"] = ask_all(session, foreign, {})
                report["foreign"]["dataset"] = given.foreign.name
    print(json.dumps(report, ensure_ascii=False))


if __name__ == "__main__":
    main()
