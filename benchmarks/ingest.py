"""Measure ingest: chunks per second, the embedder's share of the time, memory, and a rebuild.

python -m benchmarks.ingest DATA [--times 1 4 16] [--real 1] [--limit N]. DATA holds the data sets
jax_docs, scifact and books_described, which are ingested together, so many times over with other
ids and texts. Sizes in --real are embedded by the embedder that is set, others by one that takes no
time, which shows what all the rest costs. Every size is a process of its own. The bars: the
embedder is at work for 85 % of the time at the sizes in --real, and vectors of 20,000 chunks are
rebuilt in 60 s.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.ingest_corpus import InstantEmbedder, counted, write_copies
from core.settings import load_settings
from ingest.pipeline import Pipeline
from models.embeddings import Embedder
from models.loading import open_embedder
from stores.store import Store

BUSY_BAR = 0.85
REBUILD_CHUNKS, REBUILD_S = 20_000, 60.0


def measure(corpus: Path, folder: Path, *, real: bool, changes: dict[str, Any]) -> dict[str, Any]:
    """Ingest a folder, read its vectors into Chroma again, and say what that took."""
    settings, _ = load_settings(
        {"data": folder, "reasoner": "rules", "max_file_mb": 512, **changes}
    )
    chosen: Embedder = open_embedder(settings) if real else InstantEmbedder()
    chosen.embed_documents(["warm up"] * 8)
    embedder = counted(chosen)
    marks: dict[str, float] = {}
    memory: dict[str, float] = {}
    before = peak_mb()
    with Store(settings, embedder.model_id, create=True) as store:
        collection = store.intake.open_collection("default", "default", None)

        def progress(stage: str, done: int, total: int) -> None:
            marks[stage] = time.perf_counter()
            memory[stage] = peak_mb()

        pipeline = Pipeline(store, embedder, settings, collection, progress=progress)
        began = time.perf_counter()
        summary = pipeline.run([corpus])
        ended = time.perf_counter()
        during = peak_mb()
        vectors = store.rebuild_vectors()
        rebuild = time.perf_counter() - ended
    return {
        "documents": summary.documents,
        "chunks": summary.chunks,
        "failed": len(summary.failed),
        "wall_s": ended - began,
        "busy_s": embedder.busy_s,
        "after_files_s": ended - marks["files"],
        "before_mb": before,
        "files_mb": memory["files"],
        "peak_mb": during,
        "vectors": vectors,
        "rebuild_s": rebuild,
    }


def peak_mb() -> float:
    """Return the most memory this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run_size(
    data: Path, times: int, *, real: bool, arguments: argparse.Namespace
) -> dict[str, Any]:
    """Measure one size in a process of its own."""
    with tempfile.TemporaryDirectory(dir=arguments.work) as folder:
        corpus = Path(folder) / "corpus"
        write_copies(data, corpus, times, limit=arguments.limit)
        command = [sys.executable, "-m", "benchmarks.ingest", str(data), "--child", folder]
        command += ["--real", "1"] if real else ["--real"]
        for change in arguments.set:
            command += ["--set", change]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Measure all sizes and print a table; end with 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--times", type=int, nargs="*", default=[1, 4, 16])
    parser.add_argument("--real", type=int, nargs="*", default=[1], help="sizes really embedded")
    parser.add_argument("--limit", type=int, help="documents of each data set")
    parser.add_argument("--set", action="append", default=[], help="NAME=VALUE of a setting")
    parser.add_argument("--work", type=Path, help="where to write; default the system's folder")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child is not None:
        changes = dict(change.split("=", 1) for change in arguments.set)
        corpus, folder = arguments.child / "corpus", arguments.child / "data"
        print(json.dumps(measure(corpus, folder, real=bool(arguments.real), changes=changes)))
        return
    rows = [
        (times, real, run_size(arguments.data, times, real=real, arguments=arguments))
        for times in arguments.times
        for real in ((False, True) if times in arguments.real else (False,))
    ]
    if not report(rows):
        raise SystemExit(1)


def report(rows: list[tuple[int, bool, dict[str, Any]]]) -> bool:
    """Print a row per size; return whether all bars are met."""
    print(
        "| size | embedder | documents | chunks | s | chunks/s | embedder busy | s after the last"
        " file | MB until then | peak MB | rebuild s per 20,000 |\n|" + "---|" * 11
    )
    met = True
    for times, real, row in rows:
        busy = row["busy_s"] / row["wall_s"]
        rebuild = row["rebuild_s"] * REBUILD_CHUNKS / max(1, row["vectors"])
        met &= rebuild <= REBUILD_S and (not real or busy >= BUSY_BAR)
        print(
            f"| {times}× | {'set' if real else 'instant'} | {row['documents']} | {row['chunks']}"
            f" | {row['wall_s']:.1f} | {row['chunks'] / row['wall_s']:.0f} | {busy:.1%}"
            f" | {row['after_files_s']:.1f} | {row['files_mb']:.0f}"
            f" | {row['peak_mb']:.0f} | {rebuild:.1f} |"
        )
    same = [row for _, real, row in rows if not real]
    for less, more in zip(same, same[1:], strict=False):
        chunks = (more["chunks"] - less["chunks"]) / 10_000
        for kind, name in (("files_mb", "until the last file"), ("peak_mb", "in all")):
            print(
                f"\n{less['documents']} → {more['documents']} documents, {name}:"
                f" {(more[kind] - less[kind]) / chunks:.1f} MB per 10,000 chunks"
            )
    return met


if __name__ == "__main__":
    main()
