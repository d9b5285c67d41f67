"""Measure what a person waits for: start-up, search, ask and ingest, each beside its floor.

Run on a quiet machine: python -m benchmarks.speed [--chunks 5000] [--corpus PATH]. Timings on a
shared machine are noisy, so compare only figures of one run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from app.session import Session, open_embedder
from benchmarks.corpus import write_corpus
from core.auth import AuthContext
from core.settings import load_settings
from ingest.enrich import embedded_text
from ingest.pipeline import Pipeline
from stores.store import parts

# Nothing in the examples answers these, so they are searched, rewritten twice, and refused.
FOREIGN = (
    "How deep is the lake under the ice of the southern glacier?",
    "Which vaccine protects cattle against foot and mouth disease?",
    "When did the railway across the northern desert open?",
    "What is the melting point of tungsten carbide?",
    "Who won the chess tournament held in Buenos Aires?",
    "How many violins did the workshop in Cremona sell last spring?",
    "What wing loading is typical of a supersonic glider?",
    "Which enzymes break down cellulose in termites?",
    "How is the salinity of the Baltic changing?",
    "What did the tax reform of the Song dynasty change?",
)
CARREL = [str(Path(sys.executable).with_name("carrel"))]


def percentiles(milliseconds: list[float]) -> dict[str, float]:
    """Return p50, p95 and n."""
    ordered = sorted(milliseconds)
    p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    return {
        "p50_ms": round(statistics.median(ordered), 1),
        "p95_ms": round(p95, 1),
        "n": len(ordered),
    }


def timed(function: Callable[[], Any]) -> float:
    """Return the milliseconds one call takes."""
    began = time.perf_counter()
    function()
    return (time.perf_counter() - began) * 1000


def command(*arguments: str, repeat: int) -> dict[str, float]:
    """Time a whole process, start to end."""
    return percentiles(
        [
            timed(lambda: subprocess.run([*CARREL, *arguments], capture_output=True, check=False))
            for _ in range(repeat)
        ]
    )


def ingest_speed(source: Path, folder: Path) -> dict[str, Any]:
    """Ingest, then embed the same texts with the bare embedder; return both and their ratio."""
    settings, _ = load_settings({"data": folder, "reasoner": "rules"})
    with Session(settings, create=True, needs_embedder=True) as session:
        assert session.embedder is not None
        session.embedder.embed_documents(["warm up"] * 8)
        collection = session.store.intake.open_collection("default", "default", None)
        pipeline = Pipeline(session.store, session.embedder, settings, collection)
        ingest = timed(lambda: pipeline.run([source])) / 1000
        rows = (
            parts(session.store)
            .database.read()
            .execute(
                "SELECT DISTINCT c.content_hash, d.title, c.section, c.text FROM chunks c"
                " JOIN documents d ON d.id = c.document ORDER BY c.id"
            )
            .fetchall()
        )
        texts = [embedded_text(row["title"], row["section"], row["text"]) for row in rows]
        bare = timed(lambda: session.embedder and session.embedder.embed_documents(texts)) / 1000
        chunks = (
            parts(session.store)
            .database.read()
            .execute("SELECT count(*) FROM chunks")
            .fetchone()[0]
        )
    return {
        "chunks": chunks,
        "ingest_s": round(ingest, 2),
        "bare_embedder_s": round(bare, 2),
        "share_of_bare_throughput": round(bare / ingest, 3),
    }


def warm_speed(folder: Path, questions: list[str]) -> dict[str, Any]:
    """Time searches and answers in one process, beside the parts that no search can avoid."""
    forgetful = {"cache_result_minutes": 0}  # questions come again
    settings, _ = load_settings({"data": folder, "reasoner": "rules", **forgetful})
    auth = AuthContext(tenant="default")
    with Session(settings) as session:
        context = session.context(auth, "default")
        embedder = open_embedder(settings)

        def search(tool: str, question: str) -> None:
            arguments = {"query": question, "limit": 10}
            context.tools.run(tool, arguments, auth, time.monotonic() + 60)

        for question in questions[:3]:
            session.ask(question, auth, "default")
        report: dict[str, Any] = {
            "query_embedding": percentiles(
                [timed(partial(embedder.embed_query, question)) for question in questions]
            )
        }
        for tool in ("search", "search_vector", "search_text"):
            report[tool] = percentiles(
                [timed(partial(search, tool, f"{question} {tool}")) for question in questions]
            )
        for name, asked in (("ask", questions), ("ask_foreign", FOREIGN)):
            spent, refused = [], 0
            for question in asked:
                began = time.perf_counter()
                run = session.ask(question, auth, "default")
                spent.append((time.perf_counter() - began) * 1000)
                refused += bool(run.result["refused"])
            report[name] = {**percentiles(spent), "refused": refused}
    return report


def main() -> None:
    """Measure everything and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=5000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--corpus", type=Path, help="your own files instead of a made-up corpus")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        source, folder = Path(scratch) / "corpus.jsonl", Path(scratch) / "data"
        questions = write_corpus(source, given.chunks)
        report: dict[str, Any] = {"ingest": ingest_speed(given.corpus or source, folder)}
        data = ["--data", str(folder)]
        report["help"] = command("--help", repeat=given.repeat)
        report["cold_search"] = command("search", questions[0], *data, repeat=given.repeat)
        report["cold_ask"] = command("ask", questions[0], *data, repeat=given.repeat)
        report["warm"] = warm_speed(folder, questions)
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
