"""Run the program as a process of its own, and say what it took: seconds, processor, memory."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

CARREL = (sys.executable, "-c", "from cli.app import main; main()")
TICKS = os.sysconf("SC_CLK_TCK")
READY_S = 600
QUESTIONS = (
    "How does jit compile a function?",
    "What do vaccines change in infants?",
    "Which novel is about a detective in London?",
    "How are random keys split?",
    "Which cells express the receptor?",
    "What is a history of the Roman empire?",
)


@dataclass(frozen=True)
class Spent:
    """Hold what one run took: seconds on the clock and of the processors, and most memory in MB."""

    seconds: float
    busy: float
    memory: float = 0.0


def command(data: Path, *words: str, codes: Sequence[int] = (0,)) -> Spent:
    """Run one command to its end; its children's processor seconds count with it."""
    began = time.perf_counter()
    child = subprocess.Popen(
        [*CARREL, *words, "--data", str(data)],
        env=variables(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert child.stdout is not None
    said = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in codes:
        raise SystemExit(f"carrel {words[0]}: {said.decode()[-2000:]}")
    spent = time.perf_counter() - began
    return Spent(spent, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def variables() -> dict[str, str]:
    """Return the environment of every process here: no settings but those given."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CARREL_")}
    return kept | {"CARREL_REASONER": "rules"}


class Server:
    """Serve a directory to this machine until stopped or killed."""

    def __init__(self, data: Path, **settings: object) -> None:
        """Start, and wait until it is ready."""
        given = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
        began = time.perf_counter()
        self.child = subprocess.Popen(
            [*CARREL, "serve", "--port", "0", "--allow-anonymous", "--data", str(data), *given],
            env=variables(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.child.stdout is not None
        self.url = self.child.stdout.readline().strip()
        if not self.url.startswith("http"):
            raise SystemExit(f"the server of {data} did not start")
        self.ready = Spent(time.perf_counter() - began, self.busy(), self.memory())

    def busy(self) -> float:
        """Return the processor seconds so far, with those of children that ended."""
        fields = Path(f"/proc/{self.child.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return sum(int(fields[place]) for place in (11, 12, 13, 14)) / TICKS

    def memory(self) -> float:
        """Return the most resident memory so far, in MB."""
        status = Path(f"/proc/{self.child.pid}/status").read_text()
        match = re.search(r"VmHWM:\s+(\d+) kB", status)
        return int(match[1]) / 1024 if match else 0.0

    def search(self, question: str) -> float:
        """Search once; return the milliseconds."""
        began = time.perf_counter()
        reply = httpx.post(
            f"{self.url}/api/v1/search", json={"query": question, "k": 8}, timeout=120
        )
        if reply.status_code != 200:
            raise SystemExit(f"a search failed: {reply.text[:500]}")
        return (time.perf_counter() - began) * 1000

    def ask(self, question: str) -> float:
        """Ask once; return the milliseconds."""
        began = time.perf_counter()
        reply = httpx.post(
            f"{self.url}/agent/invoke", json={"input": {"question": question}}, timeout=300
        )
        if reply.status_code != 200:
            raise SystemExit(f"a question failed: {reply.text[:500]}")
        return (time.perf_counter() - began) * 1000

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End it; SIGTERM lets it seal the directory."""
        self.child.send_signal(number)
        self.child.communicate(timeout=READY_S)


@contextlib.contextmanager
def serving(data: Path, **settings: object) -> Iterator[Server]:
    """Give a server that is stopped when the block ends."""
    server = Server(data, **settings)
    try:
        yield server
    finally:
        server.stop()


@contextlib.contextmanager
def asking(server: Server, found: list[float]) -> Iterator[None]:
    """Search one question after the other beside the block, and note the milliseconds."""
    ended = threading.Event()

    def run() -> None:
        number = 0
        while not ended.is_set():
            found.append(server.search(f"{QUESTIONS[number % len(QUESTIONS)]} {number}"))
            number += 1

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def middle(rows: Sequence[Spent], part: Callable[[Spent], float]) -> float:
    """Return the median of one figure over runs."""
    return statistics.median(map(part, rows))
