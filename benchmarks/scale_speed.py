"""Measure what a second worker and a second server of one PostgreSQL catalogue bring.

python -m benchmarks.scale_speed [--real] [--model-ms 50]. Each worker and each server has one
processor, so that two stand for two machines; PostgreSQL and the clients take what they find.
Without --real texts get made-up vectors, so that what remains is reading, cutting and writing; with
--model-ms each text takes so long without a processor, as with a model on another machine.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path

from benchmarks.forked import forked
from benchmarks.ingest_corpus import InstantEmbedder
from benchmarks.scale_cluster import TENANTS, Cluster, ask, cluster

SECONDS, CLIENTS, JOBS, STARTING_S = 15, 4, 4, 12


def documents_per_second(cluster: Cluster, workers: int, mark: str, files: int) -> float:
    """Ingest jobs of so many files into an empty collection of each tenant."""
    cluster.enqueue(mark, JOBS, files, mark)
    cluster.sql(  # until the workers are ready
        "INSERT INTO shared_values SELECT 'lease', id, '{}', 'infinity' FROM jobs"
        " WHERE state = 'waiting'"
    )
    running = [cluster.carrel("worker", core=number) for number in range(workers)]
    time.sleep(STARTING_S)
    cluster.sql("DELETE FROM shared_values WHERE kind = 'lease' AND until = 'infinity'")
    seconds = cluster.settle()
    for one in running:
        one.kill()
        one.wait()
    return len(TENANTS) * JOBS * files / seconds


def search(urls: list[str], key: str, out: Path, number: int) -> int:
    """Search in turn at these servers; write how often."""
    count, until = 0, time.monotonic() + SECONDS
    while time.monotonic() < until:
        query = f"heron {number} {count} nests"
        ask(urls[(number + count) % len(urls)], key, query, "one1")
        count += 1
    out.write_text(str(count))
    return 0


def searches_per_second(cluster: Cluster, urls: list[str], mark: str) -> float:
    """Let clients search, each without a pause."""
    outs = [cluster.work / f"{mark}{number}" for number in range(CLIENTS)]
    key = cluster.keys["alpha"]
    for one in [forked(partial(search, urls, key, out, n)) for n, out in enumerate(outs)]:
        one.wait()
    return sum(int(out.read_text()) for out in outs) / SECONDS


def main() -> None:
    """Measure both twice, and print them with their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--real", action="store_true", help="embed with the embedder that is set")
    parser.add_argument("--files", type=int, default=25, help="of each of eight jobs")
    parser.add_argument("--model-ms", type=float, default=0)
    arguments = parser.parse_args()
    InstantEmbedder.seconds = arguments.model_ms / 1000
    with cluster(real=arguments.real) as made:
        for again in (1, 2):
            one = documents_per_second(made, 1, f"one{again}", arguments.files)
            two = documents_per_second(made, 2, f"two{again}", arguments.files)
            print(f"documents/s: {one:.1f}, {two:.1f}; ratio {two / one:.2f}", flush=True)
        running = [made.start(number, core=number - 2) for number in (2, 3)]
        made.listening()
        for again in (1, 2):
            one = searches_per_second(made, made.urls[:1], f"a{again}")
            two = searches_per_second(made, made.urls, f"b{again}")
            print(f"searches/s: {one:.1f}, {two:.1f}; ratio {two / one:.2f}", flush=True)
        for server in running:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()
