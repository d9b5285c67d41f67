"""Measure the tools of MCP under several callers at once, through the official client.

python -m benchmarks.mcp FOLDER [--callers 8] [--calls 60]

Each caller has a passage of their own that nobody else may read, with a word in it, beside one for
all; every caller searches for, fetches and asks about everybody's. The bar: 0 answers that hold the
word of another caller.
"""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path
from statistics import quantiles

import anyio
import httpx2
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from app.session import Session
from benchmarks.load_server import TENANT, served
from core.settings import load_settings

COLLECTION = "birds"
SETTINGS = ["serve.ask_rate=0", "serve.rate=0"]


def word(number: int) -> str:
    """Return the word of a caller."""
    return f"zq{number:03}xj"


def fill(data: Path, callers: int) -> None:
    """Ingest a document of each caller, and one of all."""
    files = data.parent / "files"
    files.mkdir(parents=True)
    with Session(load_settings({"data": data})[0], create=True) as session:
        target = session.intake.open_collection(TENANT, COLLECTION, None)
        (path := files / "all.md").write_text("# Heron\n\nThe heron of everybody wades at noon.\n")
        session.ingest(target, [path])
        for number in range(callers):
            path = files / f"u{number}.md"
            path.write_text(f"# Heron {number}\n\nThe code of heron {number} is {word(number)}.\n")
            session.ingest(target, [path], acl=frozenset({f"user:user{number}"}))


class Tally:
    """Hold the times of calls by tool in seconds, the errors and the leaks."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.seconds: dict[str, list[float]] = {"search": [], "fetch": [], "ask": []}
        self.refused = self.own = 0
        self.leaks: list[str] = []


async def caller(url: str, key: str, number: int, callers: int, calls: int, tally: Tally) -> None:
    """Call one tool after the other, about another caller's passage most of the time."""
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=120) as http,
        streamable_http_client(f"{url}/mcp", http_client=http) as streams,
        ClientSession(streams[0], streams[1]) as session,
    ):
        await session.initialize()
        for turn in range(calls):
            other = (number + turn) % callers
            tool, given = (
                ("search", {"query": f"code of heron {other} {word(other)}"}),
                ("fetch", {"id": f"{COLLECTION}/u{other}.md"}),
                ("ask", {"question": f"What is the code of heron {other}?"}),
            )[turn % 3]
            if tool != "fetch":
                given["collection"] = COLLECTION
            began = time.perf_counter()
            found = await session.call_tool(tool, given)
            tally.seconds[tool].append(time.perf_counter() - began)
            said = found.model_dump_json()
            tally.refused += bool(found.is_error)
            tally.own += other == number and word(number) in said
            for one in range(callers):
                # The question itself comes back with an answer; its word is in no question.
                if one != number and word(one) in said.replace(str(given.get("query", "")), ""):
                    tally.leaks.append(f"{tool}: user{number} got {word(one)}")


def main() -> None:
    """Measure, and end with 1 where something leaked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--callers", type=int, default=8)
    parser.add_argument("--calls", type=int, default=60)
    given = parser.parse_args()
    shutil.rmtree(given.folder, ignore_errors=True)
    data, tally = given.folder / "data", Tally()
    fill(data, given.callers)
    with served(data, given.callers, SETTINGS) as server:

        async def all_of_them() -> None:
            async with anyio.create_task_group() as group:
                for number, key in enumerate(server.keys[:-1]):
                    rest = (number, given.callers, given.calls, tally)
                    group.start_soon(caller, server.url, key, *rest)

        began = time.monotonic()
        anyio.run(all_of_them)
        took = time.monotonic() - began
    count = sum(map(len, tally.seconds.values()))
    print(f"{given.callers} callers, {count} calls in {took:.1f} s: {count / took:.1f} a second")
    for tool, times in tally.seconds.items():
        cuts = quantiles(times, n=100)
        print(f"{tool}: n {len(times)}, p50 {cuts[49] * 1e3:.0f} ms, p95 {cuts[94] * 1e3:.0f} ms")
    print(f"refused {tally.refused}, own words {tally.own}, leaks {len(tally.leaks)}")
    print(*tally.leaks[:20], sep="\n")
    raise SystemExit(bool(tally.leaks))


if __name__ == "__main__":
    main()
