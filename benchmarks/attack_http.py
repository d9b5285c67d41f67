"""Attack a server over HTTP as a hostile caller, document, model and page would.

python -m benchmarks.attack_http [--cases 6000] [--seed 7] [--only schema,tokens,…] [--json OUT]

schema   Schemathesis with its phases examples, coverage, fuzzing and stateful and all its checks,
         without a key, as a user and as an admin; that valid requests are accepted is checked
         where a schema can say what is valid
tokens   signed tokens that are not what they seem, HS256 and RS256
absent   404 of what belongs to another against 404 of what does not exist: text and time
streams  threads and memory after rounds of streams that their clients drop
model    a chat model that does what the documents tell it
page     hostile names and texts on every view of the page, in a browser

Prints a table of what was tried and what broke; the exit code is 1 when something broke. `--cases`
is shared out among the parts that generate; the same seed generates the same cases.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import httpx

from benchmarks.attack_absent import attack_absent
from benchmarks.attack_model import attack_model
from benchmarks.attack_page import attack_page
from benchmarks.attack_tokens import attack_tokens
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


CLI = "from schemathesis.cli import schemathesis; schemathesis()"
PHASES = ("coverage", "examples,fuzzing", "stateful")
OPERATIONS = 50  # about; what a route gets is its share of the cases
PER_SCENARIO = 12  # requests of one stateful example, about
GENERATED = re.compile(r"(\d+) generated(?:, (\d+) found (\d+) unique failures)?")
GAVE_UP = "Failed Health Check"  # too few cases were found for a route: says nothing of it
ALL = ("--checks", "all", "--exclude-path-regex", "^/agent/c/")
# Elsewhere a valid request must name a collection that exists, a question with a word in it, a file
# that can be read, which no schema can say; so this check is made of these routes alone.
ACCEPTED = "positive_data_acceptance"
SURE = (
    *("--checks", ACCEPTED, "--mode", "positive", "--include-path-regex"),
    r"^/(api/v1/(me|health|jobs|collections|graph\.svg|metrics|runs)|metrics|v1/models|"
    r"agent/(input|output|config)_schema)$",
)
SHOWN = 12


def say(text: str) -> None:
    """Say on stderr what is being done."""
    sys.stderr.write(f"{text}\n")


def schema_case(
    world: World, caller: str, phases: str, checks: tuple[str, ...], examples: int, seed: int
) -> Tally:
    """Let Schemathesis call routes as one caller."""
    tally = Tally(f"schema, {phases.replace(',', ' and ')}, {caller or 'no key'}")
    signed = ("-H", f"Authorization: Bearer {token_of(caller)}") if caller else ()
    command = [
        *(sys.executable, "-c", CLI, "run", f"{world.url}/api/v1/openapi.json", *signed),
        *("--phases", phases, "--no-color", *checks),
        *(("--exclude-checks", ACCEPTED) if checks is ALL else ()),
        *("--max-examples", str(max(1, examples)), "--seed", str(seed), "--request-timeout", "60"),
        *("--suppress-health-check", "all", "--generation-database", "none", "--warnings", "off"),
        "--continue-on-failure",
    ]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    found = GENERATED.search(done.stdout)
    tally.tried = int(found[1]) if found else 0
    failures = int(found[3] or 0) if found else 0
    tally.broken = ["see above"] * failures
    if failures or found is None or (done.returncode and GAVE_UP not in done.stdout):
        say(done.stdout[-20_000:] + done.stderr[-2000:])
        tally.broken = tally.broken or ["Schemathesis ended with an error"]
    return tally


def attack_schema(folder: Path, cases: int, seed: int) -> Iterable[Tally]:
    """Generate requests from the page of all routes; no answer may be one it does not describe."""
    with attacked(folder) as world:
        before = world.resident()
        for phases in PHASES:
            share = cases // 2 // OPERATIONS if "fuzzing" in phases else cases // 2 // PER_SCENARIO
            for caller in ("", "user", "admin"):
                yield schema_case(world, caller, phases, ALL, share // 3, seed)
        valid = schema_case(world, "admin", "coverage,fuzzing", SURE, cases // OPERATIONS, seed)
        valid.what = "schema, valid requests are accepted, admin"
        yield valid
        whole = Tally("schema: the server afterwards", 1)
        wrong, traces = world.server_errors(), world.tracebacks()
        if wrong or traces:
            whole.broken.append(f"{wrong} answers with 5xx, {traces} tracebacks in the log")
        whole.note = f"memory {before >> 20} -> {world.resident() >> 20} MB"
        yield whole


# How each part attacks, and its share of the cases.
PARTS: dict[str, tuple[Callable[[Path, int, int], Iterable[Tally]], float]] = {
    "schema": (attack_schema, 0.5),
    "tokens": (attack_tokens, 0.2),
    "absent": (attack_absent, 0),
    "streams": (attack_streams, 0.1),
    "model": (attack_model, 0.15),
    "page": (attack_page, 0.1),
}


def main() -> None:
    """Attack, print the table, and exit with 1 when something broke."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas")
    parser.add_argument("--json", type=Path, help="write the counts here too")
    given = parser.parse_args()
    tallies: list[Tally] = []
    for name in given.only.split(","):
        with tempfile.TemporaryDirectory() as folder:
            attack, share = PARTS[name]
            for tally in attack(Path(folder), int(share * given.cases), given.seed):
                say(f"{tally.what}: {tally.tried} tried, {len(tally.broken)} broken {tally.note}")
                for one in tally.broken[:SHOWN]:
                    say(f"  {one}")
                tallies.append(tally)
    sys.stdout.write("| Attack | n | broken | |\n|---|--:|--:|---|\n")
    for one in tallies:
        sys.stdout.write(f"| {one.what} | {one.tried:,} | {len(one.broken)} | {one.note} |\n")
    tried, broken = sum(one.tried for one in tallies), sum(len(one.broken) for one in tallies)
    sys.stdout.write(f"| all | {tried:,} | {broken} | |\n")
    if given.json:
        given.json.write_text(json.dumps([vars(one) for one in tallies], indent=1))
    raise SystemExit(bool(broken))


if __name__ == "__main__":
    main()
