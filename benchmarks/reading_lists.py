"""Ask for reading lists about a theme, in four languages, over a catalogue of described books.

    python -m benchmarks.reading_lists [--split dev] [--corpora FOLDER] [--show]

An entry is about its theme when the title, the subjects or the description of the book have a word
of the theme (`about`, a pattern in `theme_questions.jsonl`); a question without one has no book
in the catalogue, and nothing is to be listed. Each split has 400 books of its own. Prints one JSON
object: of the questions with books the share that was answered, the mean share of entries that are
about the theme and that show a title, the mean number of entries; how many without were refused.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.answers import BESIDE
from core.profile import load_profile
from core.settings import load_settings
from evals.answers import ask_one
from evals.corpus import build_corpus, open_corpus
from evals.dataset import Dataset, JudgedQuery, read_objects

QUESTIONS = Path(__file__).with_name("theme_questions.jsonl")
BOOKS, EACH = "books_described/books.jsonl.gz", 400
FIRST = {"dev": 0, "test": 1000}


def measure(split: str, data: Path, cache: Path, *, show: bool) -> dict[str, Any]:
    """Ask the questions of a split and say what came of them."""
    first = FIRST[split]
    books = [row for _, row in islice(read_objects(data / BOOKS, "a book"), first, first + EACH)]
    path = cache / "reading" / f"{split}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(book) + "\n" for book in books), encoding="utf-8")
    known = {book["_id"]: book for book in books}
    settings, _ = load_settings({"reasoner": "rules", "cache": str(cache)})
    dataset = Dataset(f"reading-{split}", path, frozenset(), [])
    corpus = build_corpus(
        dataset, settings, lambda stage, done, total: None, load_profile("library")
    )
    shares, titled, sizes, refused, answered = [], [], [], [], []
    with open_corpus(corpus.settings) as session:
        for line in QUESTIONS.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row["split"] != split:
                continue
            asked = ask_one(session, JudgedQuery(row["id"], row["question"], {}), "auto")
            entries = [
                (known[cited["document_id"]], claim["text"])
                for claim in asked.result["claims"]
                for cited in claim["citations"][:1]
                if cited["document_id"] in known
            ]
            if show:
                said = " | ".join(text[:90] for _, text in entries)
                sys.stderr.write(f"{row['id']} {row['question']} → {said}\n")
            if not row["about"]:
                refused.append(not asked.result["claims"])
                continue
            answered.append(bool(entries))
            if entries:
                about = [is_about(book, row["about"]) for book, _ in entries]
                shares.append(fmean(about))
                titled.append(fmean(book["title"] in text for book, text in entries))
                sizes.append(len(entries))
    return {
        "n": len(answered),
        "answered": fmean(answered),
        "about": fmean(shares or [0]),
        "titled": fmean(titled or [0]),
        "entries": fmean(sizes or [0]),
        "without": len(refused),
        "refused": sum(refused),
    }


def is_about(book: dict[str, Any], pattern: str) -> bool:
    """Tell whether a book's title, subjects or description have a word of a theme."""
    said = [book["title"], book["text"], *book["metadata"].get("subjects", ())]
    return re.search(pattern, " ".join(said).casefold()) is not None


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--split", choices=FIRST, default="dev")
    parser.add_argument("--data", type=Path, default=BESIDE)
    parser.add_argument("--corpora", type=Path, required=True)
    parser.add_argument("--show", action="store_true", help="what was listed, to stderr")
    given = parser.parse_args()
    found = measure(given.split, given.data, given.corpora, show=given.show)
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
