"""Measure what is left of requests that their clients give up.

python -m benchmarks.cancels DATASET [--requests 1000] [--at-once 10] [--stub-model]
[--set NAME=VALUE]... [--json OUT]

Groups of questions are sent side by side and each connection is closed at a stage drawn at random:
as soon as it is sent, while it waits in line (where there are more than threads), after one of its
steps, at the first sentence of the answer, or just before the end. After each group the server's
gauges are read until nothing runs and nothing waits; at the end its threads, open files and
connections are compared with those before.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from benchmarks.load import parsed, prepared, say, tell
from benchmarks.load_server import Server, served
from benchmarks.load_users import COLLECTION
from benchmarks.stub_model import stub_model

STAGES = ("sent", "waiting", "step 1", "step 2", "step 4", "step 6", "sentence", "whole")
WARM_QUESTIONS = 40
FREE_SECONDS = 60
POLL_SECONDS = 0.02
GAUGES = tuple(
    f'carrel_{what}{{pool="{pool}"}}' for what in ("running", "waiting") for pool in ("ask",)
)


async def give_up(client: httpx.AsyncClient, question: str, stage: str, pause: float) -> str:
    """Send a question and close its connection at a stage; return the stage it came to."""
    body = {"question": question, "collection": COLLECTION, "stream": stage != "whole"}
    if stage in ("sent", "whole"):
        with contextlib.suppress(asyncio.TimeoutError):
            async with asyncio.timeout(0.005 if stage == "sent" else pause):
                await client.post("/api/v1/chat", json=body)
                return "answered"
        return stage
    steps = int(stage.split()[1]) if stage.startswith("step") else 0
    limit = pause if stage == "waiting" else 60
    with contextlib.suppress(asyncio.TimeoutError):
        async with asyncio.timeout(limit), client.stream("POST", "/api/v1/chat", json=body) as got:
            seen = 0
            async for line in got.aiter_lines():
                if line == "event: result":
                    return "answered"
                seen += line == "event: step"
                if (steps and seen >= steps) or (stage == "sentence" and line == "event: sentence"):
                    return stage
    return stage


async def free_after(server: Server) -> float:
    """Return the seconds until nothing runs and nothing waits."""
    began = time.perf_counter()
    while time.perf_counter() - began < FREE_SECONDS:
        found = await asyncio.to_thread(server.metrics)
        if not any(found[gauge] for gauge in GAUGES):
            break
        await asyncio.sleep(POLL_SECONDS)
    return time.perf_counter() - began


async def cancels(server: Server, questions: list[str], given: argparse.Namespace) -> Any:  # noqa: ANN401
    """Give up all the requests, group by group; return stages and times until all was free."""
    draw = random.Random(given.seed)
    stages: Counter[str] = Counter()
    free: list[float] = []
    for _ in range(given.requests // given.at_once):
        clients = [
            httpx.AsyncClient(
                base_url=server.url,
                headers={"Authorization": f"Bearer {server.keys[number]}"},
                timeout=60,
                verify=False,
            )
            for number in range(given.at_once)
        ]
        asked = (
            give_up(client, draw.choice(questions), draw.choice(STAGES), draw.uniform(0.005, 0.4))
            for client in clients
        )
        stages.update(await asyncio.gather(*asked))
        for client in clients:
            await client.aclose()
        free.append(await free_after(server))
    return stages, free


async def warm(server: Server, questions: list[str]) -> None:
    """Answer some questions to the end, so that what stays open anyway is open."""
    headers = {"Authorization": f"Bearer {server.admin}"}
    async with httpx.AsyncClient(base_url=server.url, headers=headers, timeout=60) as client:
        for at in range(0, WARM_QUESTIONS, 4):
            bodies = [{"question": q, "collection": COLLECTION} for q in questions[at : at + 4]]
            await asyncio.gather(*(client.post("/api/v1/chat", json=body) for body in bodies))


def measure(given: argparse.Namespace, extra: list[str]) -> dict[str, Any]:
    """Serve, give up requests, and return the figures; times in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        data, questions = prepared(given.dataset, Path(folder))
        with served(data, given.at_once, [*extra, *given.set]) as server:
            asyncio.run(warm(server, questions))
            server.sample(0)
            threads = server.threads()
            stages, free = asyncio.run(cancels(server, questions, given))
            time.sleep(1)
            server.sample(1)
            (_, memory, files), (_, memory_after, files_after) = server.samples
            return {
                "requests": sum(stages.values()),
                "stages": dict(stages),
                "stub_model": given.stub_model,
                "free_seconds": {
                    "groups": len(free),
                    "p50": round(float(np.median(free)), 3),
                    "p95": round(float(np.percentile(free, 95)), 3),
                    "max": round(max(free), 3),
                },
                "threads": [threads, server.threads()],
                "files": [files, files_after],
                "memory_mb": [round(memory / 1e6), round(memory_after / 1e6)],
            }


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--at-once", type=int, default=10)
    parser.add_argument("--seed", type=int, default=5)
    given = parsed(parser)
    say("ingesting")
    with stub_model() if given.stub_model else contextlib.nullcontext([]) as extra:
        figures = measure(given, extra or ["reasoner=rules"])
    tell(figures, given.json)


if __name__ == "__main__":
    main()
