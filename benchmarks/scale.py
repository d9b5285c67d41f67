"""Measure what opening, checking, repairing, keeping and erasing cost at 5,000 and 50,000 chunks.

python -m benchmarks.scale DATA [--work DIR] [--repeat 3] [--only PART …] [--sizes small large]

DATA holds the data sets jax_docs, scifact and books_described, which are ingested once, and twice
over, with made-up vectors of the embedder's name (with --work they are kept for the next run). Each
figure is of a process of its own, n times: the quickest and the slowest run on the clock, the
processor's seconds (median), the most memory. A directory is opened in three states: closed
well; after `kill -9` of a server that had answered; without a seal, when all is checked.

Other work on the machine stretches the clock but not the processor's seconds, so the bars are for
those: ready and the first answer within 5 s (within 8 s where all is checked without a seal), and
restored at 5 minutes per 50,000 chunks. The exit code is 1 when one is missed. Searches are timed
beside self-checks 600 times as often as usual, which says what one costs, and has no bar.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.ingest_corpus import InstantEmbedder, write_copies
from benchmarks.scale_tools import (
    QUESTIONS,
    Server,
    Spent,
    asking,
    command,
    middle,
    percentile,
    serving,
)
from core.settings import load_settings
from ingest.pipeline import Pipeline
from models.embeddings import Vectors
from models.loading import open_embedder
from models.onnx_runtime import Span
from stores.store import Store

FEW = 175  # documents of each data set in the small directory


class InstantSpanEmbedder(InstantEmbedder):
    """Give texts and their sentences random unit vectors under another model's name."""

    def __init__(self, model_id: str, dimension: int) -> None:
        """Stand in for a model."""
        self.model_id = model_id
        self.dimension = dimension

    def embed_passages(
        self, texts: Sequence[str], spans: Sequence[Sequence[Span]]
    ) -> tuple[Vectors, list[Vectors]]:
        """Return a row per text, and per text a row per span."""
        parts = [
            self.embed_documents([f"{start} {text[start:end]}" for start, end in wanted])
            for text, wanted in zip(texts, spans, strict=True)
        ]
        return self.embed_documents(texts), [np.ascontiguousarray(part) for part in parts]


def fill(data: Path, folder: Path, corpus: Path, *, copies: int, limit: int | None) -> int:
    """Ingest the data sets into a new directory; return the number of chunks."""
    write_copies(data, corpus, copies, limit=limit)
    settings, _ = load_settings({"data": folder, "reasoner": "rules", "max_file_mb": 512})
    real = open_embedder(settings)
    embedder = InstantSpanEmbedder(real.model_id, real.dimension)
    with Store(settings, real.model_id, create=True) as store:
        target = store.intake.open_collection("default", "default", None)
        return Pipeline(store, embedder, settings, target).run([corpus]).chunks


SIZES: dict[str, dict[str, Any]] = {
    "small": {"copies": 1, "limit": FEW},
    "large": {"copies": 2, "limit": None},
}
READY_S, UNSEALED_S = 5.0, 8.0
RESTORE_S, RESTORE_CHUNKS = 300.0, 50_000
REFUSED = 3  # the exit code of an answer that says that nothing was found
STATES = ("closed well", "killed", "no seal")
PARTS = ("start", "ask", "checks", "selfcheck", "doctor", "backup", "restore", "forget")


@dataclass(frozen=True)
class Line:
    """Hold one line of the table; `bar` is for the processor's seconds, or for milliseconds."""

    what: str
    runs: list[Spent]
    bar: float | None = None
    note: str = ""

    @property
    def met(self) -> bool:
        """Tell whether the bar is met."""
        return self.bar is None or middle(self.runs, lambda one: one.busy) <= self.bar

    def __str__(self) -> str:
        clock = [one.seconds for one in self.runs]
        busy, memory = middle(self.runs, lambda one: one.busy), max(o.memory for o in self.runs)
        bar = "" if self.bar is None else f"{self.bar:.1f}" + ("" if self.met else " MISSED")
        return (
            f"| {self.what} | {len(self.runs)} | {min(clock):.2f} to {max(clock):.2f} | {busy:.2f}"
            f" | {bar} | {memory:.0f} | {self.note} |"
        )


def chunks_of(data: Path) -> int:
    """Count the chunks of a directory."""
    with closing(sqlite3.connect(data / "catalogue.sqlite3")) as connection:
        return int(connection.execute("SELECT count(*) FROM chunks").fetchone()[0])


def prepare(data: Path, state: str) -> None:
    """Bring a closed directory into a state."""
    if state == "no seal":
        (data / "seal.json").unlink()
    elif state == "killed":
        server = Server(data)
        server.ask(QUESTIONS[0])
        server.stop(signal.SIGKILL)


def start(data: Path, given: argparse.Namespace) -> Iterator[Line]:
    """Time `carrel serve` until it is ready."""
    for state in STATES:
        runs = []
        for _ in range(given.repeat):
            prepare(data, state)
            with serving(data) as server:
                runs.append(server.ready)
        bar = UNSEALED_S if state == "no seal" else READY_S
        yield Line(f"`serve` until ready, {state}", runs, bar)


def ask(data: Path, given: argparse.Namespace) -> Iterator[Line]:
    """Time the first answer of a process."""
    for state in STATES:
        runs = []
        for number in range(given.repeat):
            prepare(data, state)
            question = QUESTIONS[number % len(QUESTIONS)]
            runs.append(command(data, "ask", question, "--json", codes=(0, REFUSED)))
        bar = UNSEALED_S if state == "no seal" else READY_S
        yield Line(f"`ask --json`, {state}", runs, bar)


def checks(data: Path, given: argparse.Namespace) -> Iterator[Line]:
    """Time the parts of the full check."""
    found: dict[str, list[Spent]] = {}
    for _ in range(given.repeat):
        child = [sys.executable, "-m", "benchmarks.scale_checks", str(data)]
        done = subprocess.run(child, capture_output=True, text=True, check=True)
        for name, spent in json.loads(done.stdout).items():
            found.setdefault(name, []).append(Spent(*spent))
    for name, runs in found.items():
        yield Line(f"check: {name}", runs)


def selfcheck(data: Path, given: argparse.Namespace) -> Iterator[Line]:
    """Time searches beside self-checks that come every second, and without any."""
    p95 = {}
    for interval in (86_400, 1):
        runs: list[Spent] = []
        spent: list[float] = []
        for _ in range(given.repeat):
            with serving(data, check_interval_s=interval) as server:
                server.search(QUESTIONS[0])
                before = server.busy()
                times = [
                    server.search(f"{QUESTIONS[n % len(QUESTIONS)]} {n}") / 1000
                    for n in range(given.searches)
                ]
                spent += times
                busy = server.busy() - before
                runs.append(Spent(percentile(times, 0.95), busy / len(times), server.memory()))
        p95[interval] = percentile(spent, 0.95)
        name = "beside a self-check a second" if interval == 1 else "without self-checks"
        note = f"p50 {percentile(spent, 0.5):.3f} s, longest {max(spent):.3f} s, of {len(spent)}"
        yield Line(f"a search, p95, {name}", runs, note=note)
    yield Line("the one p95 to the other", [Spent(p95[1] / p95[86_400], 0)])


def doctor(data: Path, given: argparse.Namespace) -> Iterator[Line]:
    """Time the doctor, and the repair of a search segment that was deleted."""
    yield Line("`doctor`", [command(data, "doctor") for _ in range(given.repeat)])
    runs = []
    for _ in range(given.repeat):
        shutil.rmtree(data / "segments")
        runs.append(command(data, "doctor", "--repair"))
    yield Line("`doctor --repair`, segments deleted", runs)


def backup(data: Path, given: argparse.Namespace) -> Iterator[Line]:
    """Time a backup by the server while it answers."""
    runs: list[Spent] = []
    quiet: list[float] = []
    beside: list[float] = []
    with serving(data) as server:
        for _ in range(given.repeat):
            quiet += [server.search(f"{question} {len(runs)}") for question in QUESTIONS * 5]
            before = server.busy()
            with asking(server, beside):
                spent = command(data, "backup", str(given.work / "backup"), "--force")
            runs.append(Spent(spent.seconds, server.busy() - before, server.memory()))
    note = (
        f"{(given.work / 'backup').stat().st_size / 1e6:.0f} MB; searches p95"
        f" {percentile(quiet, 0.95):.0f} ms before, {percentile(beside, 0.95):.0f} ms beside it"
        f" (n = {len(quiet)}, {len(beside)})"
    )
    yield Line("`backup` through a server, under searches", runs, note=note)
    alone = [command(data, "backup", str(given.work / "backup"), "--force")]
    alone += [
        command(data, "backup", str(given.work / "backup"), "--force")
        for _ in range(given.repeat - 1)
    ]
    yield Line("`backup`, alone", alone)


def restore(data: Path, given: argparse.Namespace) -> Iterator[Line]:
    """Time restoring."""
    file, target, runs = given.work / "backup", given.work / "restored", []
    command(data, "backup", str(file), "--force")
    for _ in range(given.repeat):
        shutil.rmtree(target, ignore_errors=True)
        runs.append(command(target, "restore", str(file)))
    if chunks_of(target) != chunks_of(data):
        raise SystemExit("what was restored is not what was backed up")
    shutil.rmtree(target)
    yield Line("`restore`", runs, RESTORE_S * chunks_of(data) / RESTORE_CHUNKS)


def forget(data: Path, given: argparse.Namespace) -> Iterator[Line]:
    """Time the erasure of one document after the other."""
    with closing(sqlite3.connect(data / "catalogue.sqlite3")) as connection:
        names = connection.execute(
            "SELECT document_id FROM documents ORDER BY id DESC LIMIT ?", (given.repeat,)
        ).fetchall()
    yield Line(
        "`forget` one document", [command(data, "forget", name, "--yes") for (name,) in names]
    )


def made(data: Path, work: Path, size: str) -> Path:
    """Return the directory of a size, made when it is not there yet."""
    folder, whole = work / size, work / f"{size}.made"
    if not whole.exists():
        shutil.rmtree(folder, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=work) as corpus:
            fill(data, folder, Path(corpus), **SIZES[size])
        whole.touch()
    return folder


def main() -> None:
    """Make the directories, measure, print a table for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, help="keep the directories here")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--searches", type=int, default=100)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--sizes", nargs="+", choices=list(SIZES), default=list(SIZES))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        given.work = given.work or Path(scratch)
        given.work.mkdir(parents=True, exist_ok=True)
        met = all([measure(given, size) for size in given.sizes])
    sys.exit(0 if met else 1)


def measure(given: argparse.Namespace, size: str) -> bool:
    """Print the table of one size; return whether all bars are met."""
    data = made(given.data, given.work, size)
    command(data, "search", QUESTIONS[0], "--json")  # the files are in the system's memory
    print(f"\n{chunks_of(data)} chunks, load {os.getloadavg()[0]:.1f}\n")
    print("| what | n | s | processor s | bar | MB | |\n|---|--:|--:|--:|--:|--:|---|")
    steps = {
        "start": start,
        "ask": ask,
        "checks": checks,
        "selfcheck": selfcheck,
        "doctor": doctor,
        "backup": backup,
        "restore": restore,
        "forget": forget,
    }
    met = True
    for name in given.only:
        for line in steps[name](data, given):
            print(line, flush=True)
            met &= line.met
    return met


if __name__ == "__main__":
    main()
