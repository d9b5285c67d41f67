"""Damage every file of a data directory in every way, and see what becomes of what is read back.

python -m benchmarks.damage --work FOLDER [--seeds 5] [--settings …] [--only TEXT …] [--limit-s S].
Each case is a fresh copy of one small data directory as a server leaves it, with one file
truncated, with flipped bytes, deleted or filled with zeros, opened in a process of its own: the
questions are asked, conversations, runs, keys, jobs, opinions and the audit log are read back, the
conversations go on, and in the first case of each way `carrel doctor` looks. Bars: nothing differs
without a word, no key is accepted that was not, no process dies, hangs or shows a traceback. Cases
are kept in FOLDER/cases.jsonl: run it again and it goes on.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import shutil
import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.damage_child import TRACEBACK, Seen, forked, preload, with_modules
from benchmarks.damage_served import ingest, read_back, serve

BAD = ("SILENT", "DIED", "TRACEBACK", "ACCEPTED")


def report(cases: list[dict[str, Any]], planned: int) -> int:
    """Print the table; return 1 when a case is bad, else 0."""
    if not cases:
        print("no case was run")
        return 0
    words = sorted({case["verdict"] for case in cases})
    print(f"\n{'files':38}{'n':>5}" + "".join(f"{word:>16}" for word in words))
    groups = collections.defaultdict(list)
    for case in cases:
        groups[f"{_kind(case['file'])} ({case['settings']})"].append(case["verdict"])
    groups["all"] = [case["verdict"] for case in cases]
    for group, verdicts in groups.items():
        counts = "".join(f"{verdicts.count(word):>16}" for word in words)
        print(f"{group:38}{len(verdicts):>5}{counts}")
    seconds = sorted(case["seconds"] for case in cases)
    print(f"a case took {seconds[len(seconds) // 2]} s, the slowest {seconds[-1]} s")
    print(f"{len(cases)} of {planned} cases were run")
    return 1 if any(case["verdict"] in BAD for case in cases) else 0


def _kind(relative: str) -> str:
    """Name a file: Chroma's SQLite file apart from its vectors', segments together."""
    parts = relative.split("/")
    if parts[0] == "chroma":
        return "chroma.sqlite3" if len(parts) == 2 else "chroma vectors"
    return parts[0]


WAYS = ("truncate", "flip", "delete", "zero")
UNTOUCHED = ("owner.lock", "owner.json")
WORDS = 9
LIMIT_S = 240.0
INGEST_S = 900.0
BASE = {"reasoner": "rules", "segment_min_rows": 50, "sql_timeout_s": 30}
# With vectors from segments, and with Chroma answering for them; both also after a crash, where the
# seal cannot tell what was damaged from what was written.
SETTINGS: dict[str, dict[str, Any]] = {
    "segments": {},
    "chroma": {"index": "chroma"},
    "crash": {},
    "crash chroma": {"index": "chroma"},
}


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


def verdict(whole: Seen, found: Seen) -> str:
    """Return in one word what became of a case."""
    if found.end:
        return "DIED"
    if any(text.startswith(TRACEBACK) for text in (found.error, *found.refused.values())):
        return "TRACEBACK"
    if found.error:
        return "refused"
    changed = [name for name in whole.parts if found.parts.get(name) != whole.parts[name]]
    if any(name.startswith("key ") and found.parts.get(name) for name in changed):
        return "ACCEPTED"
    told = found.said != whole.said
    named = {name.split(" ")[0] for name in found.refused}
    if not changed:
        return "same, told" if told or found.refused or found.problems else "same"
    if told or all(name.split(" ")[0] in named for name in changed):
        return "differs, told"
    return "SILENT"


def questions_of(folder: Path, count: int, seed: int) -> list[str]:
    """Take the beginnings of chunks spread over the catalogue as questions."""
    connection = sqlite3.connect(folder / "catalogue.sqlite3")
    texts = [row[0] for row in connection.execute("SELECT text FROM chunks ORDER BY id")]
    connection.close()
    draw = random.Random(seed)
    return [" ".join(text.split()[:WORDS]) for text in draw.sample(texts, count)]


def base_of(given: argparse.Namespace) -> tuple[Path, list[str], dict[str, Any]]:
    """Make the data directory that is damaged, or take the one of an earlier run."""
    base, notes = given.work / "base", given.work / "base.json"
    if not notes.exists():
        shutil.rmtree(base, ignore_errors=True)
        made = forked(lambda: ingest(base, given.corpus, BASE) or {}, INGEST_S)
        if made.error or made.end:
            sys.exit(f"the corpus could not be ingested: {made.error or made.end}")
        questions = questions_of(base, given.questions, 1)
        made = forked(lambda: {"parts": serve(base, questions, BASE)}, LIMIT_S)
        if made.error or made.end:
            sys.exit(f"the directory could not be served: {made.error or made.end}")
        notes.write_text(json.dumps({"questions": questions, "served": made.parts}))
    kept = json.loads(notes.read_text())
    return base, kept["questions"], kept["served"]


def planned(base: Path, given: argparse.Namespace) -> Iterator[tuple[str, str, str, int]]:
    """Yield the cases as (settings, file, way, seed)."""
    for name in given.settings:
        for path in sorted(item for item in base.rglob("*") if item.is_file()):
            relative = path.relative_to(base).as_posix()
            if path.name in UNTOUCHED or not any(text in relative for text in given.only):
                continue
            if name.startswith("crash") and relative == "seal.json":
                continue
            for way in WAYS:
                for seed in range(1 if way == "delete" else given.seeds):
                    yield name, relative, way, seed


class Runner:
    """Run cases on copies of one directory; what the whole copy gives is asked for once."""

    def __init__(self, base: Path, questions: Sequence[str], served: dict[str, Any]) -> None:
        """Use `base` as it is; copies lie beside it."""
        self.base, self.copy = base, base.parent / "copy"
        self.questions, self.served = questions, served
        self.whole: dict[str, Seen] = {}

    def seen(
        self, name: str, damaged: tuple[str, str, int] | None = None, *, loaded: bool = False
    ) -> Seen:
        """Return what a copy gives, damaged at (file, way, seed) or whole.

        With `loaded` its problems are the names of the modules that the child has loaded.
        """
        shutil.rmtree(self.copy, ignore_errors=True)
        shutil.copytree(self.base, self.copy)
        if name.startswith("crash"):
            os.replace(self.copy / "seal.json", self.copy / "seal.open.json")
        if damaged is not None:
            damage(self.copy / damaged[0], damaged[1], damaged[2])
        settings = {**BASE, **SETTINGS[name]}

        doctor = damaged is None or damaged[2] == 0  # it takes as long as all the rest

        def work() -> dict[str, Any]:
            return read_back(self.copy, self.questions, self.served, settings, doctor=doctor)

        return forked(lambda: with_modules(work) if loaded else work(), LIMIT_S)

    def case(self, name: str, relative: str, way: str, seed: int) -> dict[str, Any]:
        """Run one case."""
        if name not in self.whole:
            self.whole[name] = whole = self.seen(name)
            if whole.error or whole.end or whole.refused or whole.problems:
                sys.exit(f"the whole copy is not well: {whole}")
        whole, found = self.whole[name], self.seen(name, (relative, way, seed))
        return {
            "settings": name,
            "file": relative,
            "way": way,
            "seed": seed,
            "verdict": verdict(whole, found),
            "changed": [one for one in whole.parts if found.parts.get(one) != whole.parts[one]],
            "said": found.error
            or found.end
            or [one for one in found.said if one not in whole.said],
            "refused": found.refused,
            "doctor": found.problems,
            "seconds": round(found.seconds, 2),
        }


def main() -> int:
    """Run the cases that are left, print a line for each that is not well, and a table."""
    given = _given()
    given.work.mkdir(parents=True, exist_ok=True)
    log = given.work / "cases.jsonl"
    done = {}
    for line in log.read_text().splitlines() if log.exists() else ():
        case = json.loads(line)
        done[case["settings"], case["file"], case["way"], case["seed"]] = case
    base, questions, served = base_of(given)
    cases = list(planned(base, given))
    left = [one for one in cases if one not in done]
    print(f"{len(cases)} cases, {len(left)} of them to run", flush=True)
    runner = Runner(base, questions, served)
    if left:
        preload(runner.seen("chroma", loaded=True).problems)
    until = time.monotonic() + given.limit_s
    for number, one in enumerate(left, 1):
        if time.monotonic() > until:
            break
        case = done[one] = runner.case(*one)
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(case) + "\n")
        if case["verdict"] in BAD or given.verbose:
            print(json.dumps(case), flush=True)
        if number % 10 == 0:
            print(f"{number} of {len(left)}", flush=True)
    return report([done[one] for one in cases if one in done], len(cases))


def _given() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_AsWritten)
    parser.add_argument("--work", type=Path, required=True, help="folder of base, copies and cases")
    parser.add_argument("--seeds", type=int, default=5, help="places of damage per way")
    parser.add_argument("--corpus", type=Path, nargs="+", default=[Path("docs"), Path("examples")])
    parser.add_argument("--questions", type=int, default=12)
    parser.add_argument("--only", nargs="+", default=[""], help="parts of files' paths")
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--limit-s", type=float, default=1e9, help="begin no case after so long")
    parser.add_argument("--verbose", action="store_true", help="a line for every case")
    return parser.parse_args()


class _AsWritten(argparse.RawDescriptionHelpFormatter):
    """Keep the lines of the description."""


if __name__ == "__main__":
    sys.exit(main())
