"""Damage every file of a data directory in every way, and see what becomes of the answers.

python -m benchmarks.damage [--seeds 5] [--corpus PATH …] [--only TEXT]. Each case is a fresh copy
of one small data directory with one file truncated, with flipped bytes, deleted or filled with
zeros. A process of its own runs `carrel doctor` on one copy, another asks the questions of another.
Bars: no answer differs without a word, no process dies, hangs or shows a traceback.
"""

from __future__ import annotations

import argparse
import collections
import json
import random
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.damage_child import Seen, asked, examined, forked

WAYS = ("truncate", "flip", "delete", "zero")
UNTOUCHED = ("owner.lock", "owner.json")
WORDS = 9
LIMIT_S = 180.0
BASE = {"reasoner": "rules", "segment_min_rows": 50}
# Once with vectors from segments, once with Chroma answering for them.
SETTINGS: dict[str, dict[str, Any]] = {"segments": {}, "chroma": {"vector_exact_limit": 0}}
BAD = ("SILENT", "DIED", "TRACEBACK")


def damage(path: Path, way: str, seed: int) -> None:
    """Damage one file; the seed decides where."""
    draw = random.Random(f"{path.name}{way}{seed}")
    size = path.stat().st_size
    if way == "delete":
        path.unlink()
    elif way == "truncate":
        with path.open("r+b") as file:
            file.truncate(draw.randrange(size) if size else 0)
    elif size:
        with path.open("r+b") as file:
            if way == "zero":
                start = draw.randrange(size)
                length = min(4096, size - start)
                file.seek(start)
                file.write(bytes(length))
                return
            for _ in range(draw.choice((1, 8, 64))):
                place = draw.randrange(size)
                file.seek(place)
                byte = file.read(1)[0]
                file.seek(place)
                file.write(bytes([byte ^ (1 << draw.randrange(8))]))


def verdict(whole: Seen, answers: Seen, doctor: Seen) -> str:
    """Return in one word what became of a case."""
    both = (answers, doctor)
    if any(seen.end for seen in both):
        return "DIED"
    if any(seen.error.startswith("TRACEBACK") for seen in both):
        return "TRACEBACK"
    told = bool(answers.error) or answers.said != whole.said
    if not answers.error and answers.results == whole.results:
        return "same, told" if told or doctor.problems or doctor.error else "same"
    return "differs, told" if told else "SILENT"


def questions_of(folder: Path, count: int, seed: int) -> list[str]:
    """Take the beginnings of chunks spread over the catalogue as questions."""
    connection = sqlite3.connect(folder / "catalogue.sqlite3")
    texts = [row[0] for row in connection.execute("SELECT text FROM chunks ORDER BY id")]
    connection.close()
    draw = random.Random(seed)
    return [" ".join(text.split()[:WORDS]) for text in draw.sample(texts, count)]


def ingest(folder: Path, corpus: Sequence[Path]) -> None:
    """Make the data directory that is damaged: open documents, and one in three for a role."""
    from cli.options import opened
    from core.settings import load_settings
    from ingest.pipeline import Pipeline

    settings = load_settings({"data": folder, **BASE})[0]
    with opened(settings, create=True, needs_embedder=True) as session:
        target = session.store.writer.open_collection("default", "main", None)
        for number, path in enumerate(corpus):
            acl = frozenset({"staff"}) if number % 3 == 2 else frozenset()
            assert session.embedder is not None  # needs_embedder says so
            Pipeline(session.store, session.embedder, settings, target, acl=acl).run([path])


def main() -> int:
    """Run all cases, print a line for each that is not well, and a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_AsWritten)
    parser.add_argument("--seeds", type=int, default=5, help="places of damage per way")
    parser.add_argument("--corpus", type=Path, nargs="+", default=[Path("docs"), Path("examples")])
    parser.add_argument("--questions", type=int, default=12)
    parser.add_argument("--only", default="", help="part of a file's path, or of a way")
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--json", type=Path, help="write every case here")
    parser.add_argument("--verbose", action="store_true", help="a line for every case")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        base = Path(work) / "base"
        made = forked(lambda: ingest(base, given.corpus) or {}, 600)
        if made.error or made.end:
            sys.exit(f"the corpus could not be ingested: {made.error or made.end}")
        questions = questions_of(base, given.questions, 1)
        cases = [case for name in given.settings for case in _cases(base, name, questions, given)]
    if given.json:
        given.json.write_text(json.dumps(cases, indent=1), encoding="utf-8")
    return _report(cases)


def _cases(
    base: Path, name: str, questions: Sequence[str], given: argparse.Namespace
) -> list[dict[str, Any]]:
    settings = {**BASE, **SETTINGS[name]}
    copy = base.parent / "copy"

    def fresh(relative: str = "", way: str = "", seed: int = 0) -> None:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(base, copy)
        if way:
            damage(copy / relative, way, seed)

    fresh()
    whole = forked(lambda: asked(copy, questions, settings), LIMIT_S)
    if whole.error or whole.end:
        sys.exit(f"the whole copy gave no answers: {whole.error or whole.end}")
    found = []
    for path in sorted(item for item in base.rglob("*") if item.is_file()):
        relative = path.relative_to(base).as_posix()
        for way in WAYS:
            if path.name in UNTOUCHED or given.only not in f"{relative}:{way}":
                continue
            for seed in range(1 if way == "delete" else given.seeds):
                fresh(relative, way, seed)
                doctor = forked(lambda: examined(copy, settings), LIMIT_S)
                fresh(relative, way, seed)
                answers = forked(lambda: asked(copy, questions, settings), LIMIT_S)
                word = verdict(whole, answers, doctor)
                case = {
                    "settings": name,
                    "file": relative,
                    "way": way,
                    "seed": seed,
                    "verdict": word,
                    "answers": answers.error or answers.end or answers.said,
                    "doctor": doctor.error or doctor.end or doctor.problems,
                    "seconds": round(answers.seconds, 2),
                }
                found.append(case)
                if word in BAD or given.verbose:
                    print(json.dumps(case), flush=True)
    return found


def _report(cases: list[dict[str, Any]]) -> int:
    words = sorted({case["verdict"] for case in cases})
    print(f"\n{'files':34}{'n':>5}" + "".join(f"{word:>16}" for word in words))
    groups = collections.defaultdict(list)
    for case in cases:
        groups[f"{_kind(case['file'])} ({case['settings']})"].append(case["verdict"])
    groups["all"] = [case["verdict"] for case in cases]
    for group, verdicts in groups.items():
        counts = "".join(f"{verdicts.count(word):>16}" for word in words)
        print(f"{group:34}{len(verdicts):>5}{counts}")
    slowest = max(case["seconds"] for case in cases)
    print(f"slowest case: {slowest} s")
    bad = [case for case in cases if case["verdict"] in BAD]
    return 1 if bad else 0


def _kind(relative: str) -> str:
    first = relative.split("/")[0]
    return first if "/" in relative else relative


class _AsWritten(argparse.RawDescriptionHelpFormatter):
    """Keep the lines of the description."""


if __name__ == "__main__":
    sys.exit(main())
