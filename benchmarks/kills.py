"""Kill ingests at every named stage and at random moments, and compare with an oracle.

python -m benchmarks.kills DATA [--files FOLDER] [--kills 200] [--real] [--limit 30]. DATA holds
jax_docs, scifact and books_described; `--files` adds a folder of other real files. A process
that runs `carrel ingest` (or `carrel reindex`) is killed with SIGKILL; then another process checks
that nothing is doubled or without an owner, that every document is one of the versions that an
uninterrupted run writes, and that none which was acknowledged is lost. When a run comes to its end,
the truth must be that of a fresh, uninterrupted run of the same files, byte for byte. After the
first ingest files are changed, removed, renamed and added, and the rest is killed likewise.

Processes are forked from one that has imported everything, so a kill costs little; without --real
texts get made-up vectors. The bar: 0 lost, 0 doubled, 0 without an owner, 0 other truths.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.forked import Forked, chosen_model, forked
from benchmarks.ingest_corpus import write_copies
from benchmarks.truth import canonical, differences, documents, faults, open_truth
from core.faults import STAGES, VARIABLE

FIRST = (
    "parsed",
    "chunked",
    "embedded",
    "indexed",
    "verified",
    "sweep",
    "segment",
)
SECOND = (*FIRST, "rename", "prune")
REBUILD = ("rebuild", "segment")
SETTINGS = ("ingest_batch=48", "vector_batch=40", "segment_min_rows=50")


@dataclass(frozen=True)
class Kill:
    """Say when to kill: the n-th time a stage is reached, or after a share of the usual time."""

    stage: str = ""
    number: int = 1
    share: float = 0.0


@dataclass
class Tally:
    """Count what happened."""

    kills: Counter[str] = field(default_factory=Counter)
    completed: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{sum(self.kills.values())} kills, {self.completed} runs to the end,"
            f" {len(self.problems)} problems"
        )


class Harness:
    """Run one phase of kills after the other on the same files."""

    def __init__(self, base: Path, work: Path, *, real: bool, draw: random.Random) -> None:
        """Take the real files from `base` and write below `work`."""
        self._base, self._work, self._real, self._draw = base, work, real, draw
        self._corpus = work / "corpus"
        self._model = chosen_model(real=real)
        self.tally = Tally()

    def run(self, kills: int) -> None:
        """Kill so often, a part of it at the named stages."""
        shutil.copytree(self._base, self._corpus)
        empty, before = self._work / "empty", self._work / "before"
        empty.mkdir()
        first = self._reference(before)
        self._phase(self._stages(FIRST, (1, 2, 5)), kills // 3, empty, ({}, first), "ingest")
        known = self._documents(before)
        self._change()
        after = self._work / "after"
        second = self._reference(after)
        missing = kills - sum(self.tally.kills.values())
        reached = self._stages(SECOND, (1, 2))
        self._phase(reached, max(kills // 4, missing - 40), before, (known, second), "ingest")
        self._phase(self._stages(REBUILD, (1,)), 5, after, (second, second), "reindex")

    def _stages(self, steps: tuple[str, ...], numbers: tuple[int, ...]) -> list[Kill]:
        named = [stage for stage in STAGES if stage.split(".")[0] in steps]
        return [Kill(stage, number) for stage, number in itertools.product(named, numbers)]

    def _plan(self, stages: list[Kill]) -> Iterator[Kill | None]:
        """Yield the stages among random moments, and at last a run that is not killed."""
        waiting = self._draw.sample(stages, len(stages))
        while waiting or self._left > 0:
            if waiting and self._draw.random() < len(waiting) / (len(waiting) + self._left):
                yield waiting.pop()
            else:
                yield Kill(share=self._draw.random())
        yield None

    def _reference(self, data: Path) -> dict[str, str]:
        """Ingest everything without a kill and return the truth."""
        began = time.monotonic()
        code = self._carrel("ingest", data).wait()
        self._usual_s = time.monotonic() - began
        if code:
            raise SystemExit(f"an uninterrupted ingest ended with {code}")
        self._report(self._check(data), "uninterrupted")
        return canonical(data)

    def _phase(
        self,
        stages: list[Kill],
        moments: int,
        start: Path,
        truths: tuple[dict[str, str], dict[str, str]],
        command: str,
    ) -> None:
        """Kill at the stages and so often at random, with a fresh `start` when a run has ended.

        `truths` are what was there at the start and what is there at the end.
        """
        known, wanted = truths
        self._left = moments
        data, fresh = self._work / "data", True
        for kill in self._plan(stages):
            if fresh:
                shutil.rmtree(data, ignore_errors=True)
                shutil.copytree(start, data)
                fresh = False
            killed = self._killed(command, data, kill)
            where = f"{command} {kill.stage or 'at random'}:{kill.number}" if kill else command
            if killed and kill:
                self.tally.kills[kill.stage or "at random"] += 1
                self._left -= not kill.stage
                if not self._began(data):
                    continue
                problems = self._check(data)
                self._report(problems, where)
                self._compare(data, known, wanted, where)
                print(f"\r{self.tally}", end="", file=sys.stderr, flush=True)
            else:
                self.tally.completed += 1
                self._report(self._check(data), f"{where}, completed")
                lines = differences(canonical(data), wanted)
                self._report([f"another truth: {line}" for line in lines], f"{where}, completed")
                fresh = True

    def _killed(self, command: str, data: Path, kill: Kill | None) -> bool:
        stage = f"{kill.stage}:{kill.number}" if kill and kill.stage else ""
        child = self._carrel(command, data, fault=stage)
        if kill and not kill.stage:
            time.sleep(kill.share * self._usual_s)
            child.kill()
        code = child.wait()
        if code not in (0, -signal.SIGKILL):
            self._report([f"it ended with {code}"], f"{command} {kill}")
        return code != 0

    def _compare(
        self, data: Path, known: dict[str, str], wanted: dict[str, str], where: str
    ) -> None:
        """Check that no acknowledged document is lost, and that each is the old or the new one.

        `known` was acknowledged by an earlier run; what the new files no longer have may go.
        """
        found = self._documents(data)
        acknowledged = [name for name in known if not name.startswith("table ")]
        lost = [name for name in acknowledged if name not in found and name in wanted]
        self._report([f"lost: {name}" for name in lost], where)
        versions = {name: {known.get(name), wanted.get(name)} for name in found}
        torn = [name for name, value in found.items() if value not in versions[name]]
        self._report([f"neither old nor new: {name}" for name in torn], where)

    def _check(self, data: Path) -> list[str]:
        """Look at the directory from another process."""
        answer = self._work / "answer.json"

        def look() -> int:
            found = faults(data, self._model)
            answer.write_text(json.dumps(found), encoding="utf-8")
            return 0

        answer.unlink(missing_ok=True)
        code = forked(look).wait()
        if not answer.exists():
            return [f"it cannot be opened (exit code {code})"]
        problems: list[str] = json.loads(answer.read_text(encoding="utf-8"))
        return problems

    def _report(self, problems: list[str], where: str) -> None:
        for problem in problems:
            self.tally.problems.append(f"{where}: {problem}")
            print("PROBLEM", self.tally.problems[-1], flush=True)

    def _carrel(self, command: str, data: Path, fault: str = "") -> Forked:
        arguments = [command]
        if command == "ingest":
            arguments += [str(self._corpus), "--prune"]
        arguments += ["--json", "--data", str(data)]
        for change in SETTINGS:
            arguments += ["--set", change]
        env = {VARIABLE: fault} if fault else {}

        def run() -> int:
            from benchmarks.forked import run_carrel

            return run_carrel(arguments, real=self._real)

        return forked(run, env)

    def _began(self, data: Path) -> bool:
        """Tell whether the catalogue has been made."""
        catalogue = data / "catalogue.sqlite3"
        if not catalogue.exists() or not catalogue.stat().st_size:
            return False
        with closing(open_truth(data)) as connection:
            query = "SELECT count(*) FROM sqlite_schema WHERE name = 'journal'"
            return bool(connection.execute(query).fetchone()[0])

    def _documents(self, data: Path) -> dict[str, str]:
        with closing(open_truth(data)) as connection:
            return documents(connection)

    def _change(self) -> None:
        """Change, remove, rename and add files."""
        records = sorted(self._corpus.rglob("*.jsonl"))
        for number, path in enumerate(records):  # the ids of records may be in one file only
            if number % 2:
                path.rename(path.with_stem(f"{path.stem}-renamed"))
            else:
                _replace(path, path)
        for number, path in enumerate(self._some_files()):
            if number % 4 == 0:
                _replace(path, path)
            elif number % 4 == 1:
                path.unlink()
            elif number % 4 == 2:
                path.rename(path.with_stem(f"{path.stem}-renamed"))
            else:
                _replace(path, path.with_stem(f"{path.stem}-added"))

    def _some_files(self) -> Iterator[Path]:
        plain = sorted(p for p in self._corpus.rglob("*") if p.suffix in {".md", ".rst", ".txt"})
        yield from plain[:: max(1, len(plain) // 24)]


def _replace(source: Path, target: Path) -> None:
    """Write a text with other words and an end of its own."""
    text = source.read_text(encoding="utf-8").replace(" the ", " this ")
    target.write_text(
        text + ("" if target.suffix == ".jsonl" else "\n\nOne more line.\n"), encoding="utf-8"
    )


def main() -> None:
    """Run the kills and print a table; end with 1 when something was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--files", type=Path, help="a folder of other real files")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--limit", type=int, default=30, help="documents of each data set")
    parser.add_argument("--real", action="store_true", help="embed with the embedder that is set")
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "base"
        write_copies(arguments.data, base, 1, limit=arguments.limit)
        if arguments.files is not None:
            shutil.copytree(arguments.files, base / "files")
            os.system(f"chmod -R u+w {base}")
        draw = random.Random(arguments.seed)
        harness = Harness(base, Path(folder), real=arguments.real, draw=draw)
        harness.run(arguments.kills)
    tally = harness.tally
    print("| stage | kills |\n|---|---|")
    for stage, count in sorted(tally.kills.items()):
        print(f"| {stage} | {count} |")
    print(f"\n{tally}")
    if tally.problems or sum(tally.kills.values()) < arguments.kills:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
