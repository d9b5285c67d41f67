"""Streams that their clients drop, round after round: threads and memory must not grow."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Iterable
from pathlib import Path

import httpx

from benchmarks.attack_world import COLLECTION, Tally, World, attacked, token_of

ROUNDS = 4
AT_ONCE = 50
# Pools of threads fill up to their size; a leak goes on in the last rounds too.
MORE_THREADS = 3
MORE_BYTES = 20 << 20
SETTLE_SECONDS = 3.0


def attack_streams(folder: Path, cases: int, seed: int) -> Iterable[Tally]:
    """Drop streams in rounds and compare the rounds; the first one may make the pools' threads."""
    draw = random.Random(seed)
    with attacked(folder) as world:
        asyncio.run(dropped(world, 4, draw))  # what is loaded with the first question
        time.sleep(SETTLE_SECONDS)
        threads, memory = [world.threads()], [world.resident()]
        tally = Tally(f"streams dropped, {ROUNDS} rounds")
        for _ in range(ROUNDS):
            tally.tried += asyncio.run(dropped(world, max(AT_ONCE, cases // ROUNDS), draw))
            time.sleep(SETTLE_SECONDS)
            threads.append(world.threads())
            memory.append(world.resident())
        tally.note = f"threads {' '.join(map(str, threads))}; MB "
        tally.note += " ".join(str(one >> 20) for one in memory)
        if threads[-1] > threads[-2] + MORE_THREADS:
            tally.broken.append(f"threads grow with the rounds: {threads}")
        if memory[-1] > memory[-2] + MORE_BYTES:
            tally.broken.append(f"memory grows with the rounds: {memory}")
        with world.client("user") as client:
            began = time.perf_counter()
            got = client.post("/api/v1/search", json={"query": "budget", "collection": COLLECTION})
            took = time.perf_counter() - began
        if got.status_code != 200 or took > 2:
            tally.broken.append(f"a search afterwards: {got.status_code} after {took:.2f} s")
        yield tally


async def dropped(world: World, count: int, draw: random.Random) -> int:
    """Begin streams and close each after a random number of its lines."""

    async def one(number: int) -> None:
        headers = {"Authorization": f"Bearer {token_of(draw.choice(['user', 'board', 'admin']))}"}
        body = {"question": f"What is the travel budget of office {number}?", "stream": True}
        lines = draw.randrange(6)
        async with httpx.AsyncClient(base_url=world.url, headers=headers, verify=False) as client:
            with contextlib.suppress(httpx.HTTPError, TimeoutError):
                async with asyncio.timeout(draw.choice([0.05, 0.3, 20])):
                    sent = body | {"collection": COLLECTION}
                    async with client.stream("POST", "/api/v1/chat", json=sent) as got:
                        async for _ in got.aiter_lines():
                            lines -= 1
                            if lines < 0:
                                return

    for at in range(0, count, AT_ONCE):
        await asyncio.gather(*(one(draw.randrange(10**9)) for _ in range(min(AT_ONCE, count - at))))
    return count
