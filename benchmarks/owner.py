"""Measure how fast a second opener is refused, and what a command costs through a server.

    python -m benchmarks.owner [--openers 8] [--times 10] [--out FILE]

Commands are processes of their own, from the start of Python to their end; ways of opening that are
calls are timed as calls. Every way is tried while a server owns the directory: a second server, a
demo, a session, a library of a notebook, Studio, and so many openers at once; each is to be refused
within two seconds, by the number of the owner's process and its address. For one more round the
owner is no server. A command through the server is timed against the same command alone. Beside
seconds on the clock stand those of the processor, which other work on the machine does not stretch.
The exit code is 1 when an opener was let in, or a call or a process took too long.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
CARREL = (sys.executable, "-c", "from cli.app import main; main()")
BAR_S = 2.0
QUESTION = "What is the maximum height of the candle flame?"
TEXT = "# Candles\n\nThe maximum height of the candle flame is 42 mm. Wax feeds the wick.\n"
INSIDE = """
import sys, time
from core.settings import Settings
from carrel import Library
from app.session import Session
from app.studio import studio
ways = {{
    "session": lambda: Session(Settings(data="{data}")),
    "library": lambda: Library("{data}"),
    "studio": lambda: studio.context(),
}}
began = time.monotonic()
try:
    ways["{way}"]()
except Exception as error:
    print(error)
    print("seconds", time.monotonic() - began)
    sys.exit(4)
"""
HOLD = (
    "import time; from pathlib import Path; from stores.lock import OwnerLock;"
    " OwnerLock(Path('{data}'), wait_s=0).acquire(); print('held', flush=True); time.sleep(600)"
)


def main() -> int:
    """Run and print two Markdown tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--openers", type=int, default=8, help="at once")
    parser.add_argument("--times", type=int, default=10, help="of each way and command")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="carrel-owner-") as folder:
        data = Path(folder) / "data"
        (Path(folder) / "candle.md").write_text(TEXT, encoding="utf-8")
        assert ended(data, [*CARREL, "ingest", f"{folder}/candle.md"]).code == 0
        alone = [command_runs(data, command, given.times) for command in COMMANDS]
        with Owner(data, [*CARREL, "serve", "--port", "0", "--allow-anonymous"]) as owner:
            refused = [
                refusal(data, what, command, given.times, given.openers, owner)
                for what, command in openers(data)
            ]
            through = [command_runs(data, command, given.times) for command in COMMANDS]
        with Owner(data, [sys.executable, "-c", HOLD.format(data=data)]) as owner:
            command = [*CARREL, "ask", QUESTION]
            refused.append(
                refusal(data, "a command, beside another", command, given.times, 1, owner)
            )
    lines = [
        "| opener | n | named the owner | p50 s | slowest s | processor p50 s |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    lines += [line for line, _ in refused]
    lines += ["", "| command | n | alone p50 s | through the server p50 s | ratio | processor |"]
    lines += ["|---|--:|--:|--:|--:|--:|"]
    for words, one, two in zip(COMMANDS, alone, through, strict=True):
        here, there = (median(done.seconds for done in runs) for runs in (one, two))
        busy, less = (median(done.busy for done in runs) for runs in (one, two))
        lines.append(
            f"| `{words[0]}` | {len(one)} | {here:.2f} | {there:.2f} | {there / here:.2f} |"
            f" {less / busy:.2f} |"
        )
    text = "\n".join(lines)
    print(text)
    if given.out:
        given.out.write_text(text + "\n", encoding="utf-8")
    return 0 if all(good for _, good in refused) else 1


COMMANDS = (
    ("ask", QUESTION, "--json"),
    ("search", "wax", "--json"),
    ("trace", "--json"),
    ("conversations", "list", "--json"),
)


def openers(data: Path) -> list[tuple[str, list[str]]]:
    """Return the ways to open a directory that a server does not do for them."""
    python = [sys.executable, "-c"]
    return [
        ("a second server", [*CARREL, "serve", "--port", "0"]),
        ("`carrel demo`", [*CARREL, "demo"]),
        ("a session, Python running", [*python, INSIDE.format(data=data, way="session")]),
        (
            "a notebook's library, Python running",
            [*python, INSIDE.format(data=data, way="library")],
        ),
        ("LangGraph Studio, Python running", [*python, INSIDE.format(data=data, way="studio")]),
    ]


class Owner:
    """Hold the directory with a process until the block ends."""

    def __init__(self, data: Path, command: Sequence[str]) -> None:
        """Start it, and wait until it says that it is ready."""
        self._child = subprocess.Popen(
            command,
            cwd=ROOT,
            env=variables(data),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._child.stdout is not None
        said = self._child.stdout.readline().strip()
        self.names = [f"process {self._child.pid} ", *([said] if said != "held" else [])]

    def __enter__(self) -> Owner:
        return self

    def __exit__(self, *error: object) -> None:
        self._child.terminate()
        self._child.communicate(timeout=60)


def variables(data: Path) -> dict[str, str]:
    """Return the environment of every process here."""
    own = {"CARREL_DATA": str(data), "CARREL_REASONER": "rules"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CARREL_")}
    return kept | own


class Done(NamedTuple):
    """Hold how a process ended: what it said, its seconds, and those of the processor."""

    code: int
    said: str
    seconds: float
    busy: float


def ended(data: Path, command: Sequence[str]) -> Done:
    """Run a process to its end.

    A process that measures itself, without the start of Python, says its seconds last.
    """
    began, before = time.monotonic(), _busy()
    done = subprocess.run(
        command, cwd=ROOT, env=variables(data), capture_output=True, text=True, check=False
    )
    taken = time.monotonic() - began
    _, own, seconds = done.stdout.rpartition("\nseconds ")
    said = done.stdout + done.stderr
    return Done(done.returncode, said, float(seconds) if own else taken, _busy() - before)


def _busy() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def refusal(
    data: Path, what: str, command: Sequence[str], times: int, at_once: int, owner: Owner
) -> tuple[str, bool]:
    """Return a line for one way of opening, and whether all were refused in time."""
    if what == "`carrel demo`":
        command = [*command, "--data", str(data)]
    found = [ended(data, command) for _ in range(times)]
    if what == "a second server":
        before = _busy()
        found_together = together(data, command, at_once)
        busy = _busy() - before
        line, good = _line(f"{what}, {at_once} at once", found_together, owner, of_all=busy)
        first, also = _line(what, found, owner)
        return f"{first}\n{line}", good and also
    return _line(what, found, owner)


def together(data: Path, command: Sequence[str], count: int) -> list[Done]:
    """Run so many at once."""
    from concurrent.futures import ThreadPoolExecutor

    run: Callable[[int], Done] = lambda _: ended(data, command)  # noqa: E731
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def _line(
    what: str, found: Sequence[Done], owner: Owner, *, of_all: float | None = None
) -> tuple[str, bool]:
    """Return a row; processes at once share the processor's seconds `of_all` and have no bar."""
    named = [one.code != 0 and all(name in one.said for name in owner.names) for one in found]
    seconds = [one.seconds for one in found]
    own = f"{median(one.busy for one in found):.2f}"
    busy = own if of_all is None else f"{of_all:.2f} of all"
    line = f"| {what} | {len(found)} | {sum(named)} |"
    line += f" {median(seconds):.2f} | {max(seconds):.2f} | {busy} |"
    print(line, file=sys.stderr, flush=True)
    return line, all(named) and (of_all is not None or max(seconds) <= BAR_S)


def command_runs(data: Path, command: Sequence[str], times: int) -> list[Done]:
    """Run a command by itself or through a server."""
    found = [ended(data, [*CARREL, *command]) for _ in range(times)]
    for done in found:
        assert done.code == 0, done.said
        assert json.loads(done.said) is not None
    print(command[0], *(f"{done.seconds:.2f}" for done in found), file=sys.stderr, flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
