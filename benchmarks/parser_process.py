"""What it costs to parse in a process of its own: time for small folders, memory for long files.

    python -m benchmarks.parser_process FOLDER... [--mb 500] [--rounds 3] [--most 50]

Exit code 1 when memory on either side grows with the length of a file of records, or a file
costs more than --most ms over parsing it in one process, once the process has started.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.corpus import example_sentences
from core.settings import load_settings
from ingest.clean import clean_document
from ingest.discover import SourceFile, discover
from ingest.loaders.limits import LoadLimits
from ingest.loaders.parse import parse
from ingest.sandbox.pool import Sandbox
from ingest.types import Loaded, LoadFailure
from ingest.usable import load

_MAX_MB = 300


def main() -> int:
    """Print both tables; return 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folders", nargs="*", type=Path, help="folders of small files")
    parser.add_argument("--mb", type=int, default=200, help="size of the long files (default 200)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of the small files")
    parser.add_argument("--most", type=float, default=50, help="ms a file may cost more")
    arguments = parser.parse_args()
    limits = LoadLimits.of(load_settings()[0])
    missed = _long(arguments.mb, limits) if arguments.mb else 0
    for folder in arguments.folders:
        missed += _small(folder, limits, arguments.rounds, arguments.most)
    return 1 if missed else 0


def _small(folder: Path, limits: LoadLimits, rounds: int, most_ms: float) -> int:
    files, _ = discover([folder])
    here, there = [], []
    started = time.monotonic()
    with Sandbox() as sandbox:
        for file in files:
            _used(load(file, limits, sandbox))
        cold = time.monotonic() - started
        for _ in range(rounds):
            started = time.monotonic()
            for file in files:
                _used(load(file, limits, sandbox))
            there.append(time.monotonic() - started)
    for _ in range(rounds + 1):
        started = time.monotonic()
        for file in files:
            _used(parse(file.path, file.relative, limits))
        here.append(time.monotonic() - started)
    first = here.pop(0)
    more = 1000 * (statistics.median(there) - statistics.median(here)) / len(files)
    print(
        f"{folder}: {len(files)} files, in this process {statistics.median(here):.2f} s, in its own"
        f" {statistics.median(there):.2f} s ({more:+.0f} ms per file); with imports {first:.2f} s"
        f" and {cold:.2f} s"
    )
    return int(more > most_ms)


def _long(size_mb: int, limits: LoadLimits) -> int:
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in ("long.jsonl", "long.csv"):
            path = Path(folder, name)
            _write(path, size_mb)
            with Sandbox() as sandbox:
                started = time.monotonic()
                documents, failures = _used(load(SourceFile(path, name), limits, sandbox))
                seconds = time.monotonic() - started
                child = _peak_of(sandbox._idle[0].pid) if sandbox._idle else 0.0
            parent = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(
                f"{name}: {path.stat().st_size / 2**20:.0f} MB, {documents} records, {failures}"
                f" failures, {seconds:.1f} s ({size_mb / seconds:.1f} MB/s), peak memory"
                f" {parent:.0f} MB here, {child:.0f} MB in the parser"
            )
            missed += failures > 0 or not documents or max(parent, child) > _MAX_MB
    return missed


def _write(path: Path, size_mb: int) -> None:
    draw = random.Random(7)
    sentences = example_sentences()
    number = 0
    with path.open("w", encoding="utf-8") as handle:
        if path.suffix == ".csv":
            handle.write("id,title,year,note\n")
        while handle.tell() < size_mb * 2**20:
            number += 1
            text = " ".join(draw.sample(sentences, 8)).replace('"', "'")
            if path.suffix == ".csv":
                handle.write(f'{number},Title {number},{1900 + number % 120},"{text}"\n')
            else:
                handle.write(json.dumps({"_id": f"d{number}", "title": "T", "text": text}) + "\n")


def _used(items: Iterator[Loaded]) -> tuple[int, int]:
    """Clean the documents, as an ingest does; return how many there are, and failures."""
    documents = failures = 0
    for item in items:
        if isinstance(item, LoadFailure):
            failures += 1
        else:
            clean_document(item)
            documents += 1
    return documents, failures


def _peak_of(process: int) -> float:
    status = Path(f"/proc/{process}/status")
    if not status.exists():
        return 0.0
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    sys.exit(main())
