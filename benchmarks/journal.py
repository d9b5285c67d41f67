"""Measure what the journal and reading back cost: python -m benchmarks.journal DATA [--repeat 5].

The same files are ingested with and without them, in turns, with made-up vectors, so that nothing
hides the cost; the share of a real ingest is smaller by what its embedder takes. Processor time is
compared, since it depends less on what else the machine does.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from unittest import mock

from benchmarks.ingest_corpus import InstantEmbedder, write_copies
from core.settings import load_settings
from ingest.pipeline import Pipeline
from stores.sqlite.files import Files
from stores.store import Store


def ingest(corpus: Path, folder: Path, *, journal: bool) -> tuple[float, float, int]:
    """Return processor seconds, seconds on the clock, and chunks."""
    settings, _ = load_settings({"data": folder, "reasoner": "rules"})
    with Store(settings, InstantEmbedder.model_id, create=True) as store:
        target = store.intake.open_collection("default", "default", None)
        pipeline = Pipeline(store, InstantEmbedder(), settings, target)
        used, began = time.process_time(), time.perf_counter()
        if journal:
            summary = pipeline.run([corpus])
        else:
            with (
                mock.patch.object(Files, "reach_stage"),
                mock.patch("stores.sqlite.files._note"),
                mock.patch("ingest.steps.confirm"),
            ):
                summary = pipeline.run([corpus])
        return time.process_time() - used, time.perf_counter() - began, summary.chunks


def main() -> None:
    """Ingest in turns and print the ratios of the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--limit", type=int, default=100, help="documents of each data set")
    arguments = parser.parse_args()
    found: dict[bool, list[tuple[float, float, int]]] = {True: [], False: []}
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "corpus"
        write_copies(arguments.data, corpus, 1, limit=arguments.limit)
        for number in range(arguments.repeat):
            for journal in (True, False) if number % 2 else (False, True):
                data = Path(folder) / f"{number}-{journal}"
                found[journal].append(ingest(corpus, data, journal=journal))
    for place, name in enumerate(("processor", "clock")):
        both = [statistics.median(row[place] for row in found[kind]) for kind in (True, False)]
        print(
            f"{name}: {both[0]:.2f} s with, {both[1]:.2f} s without: {both[0] / both[1]:.3f} times"
            f" (n = {arguments.repeat} each, {found[True][0][2]} chunks)"
        )


if __name__ == "__main__":
    main()
