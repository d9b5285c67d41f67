"""A served data directory for load tests: a process of its own, its keys, and how it fares."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from app.session import Session
from core.settings import load_settings
from stores.store import parts

TENANT = "evals"
READY_SECONDS = 60
CARREL = "from cli.app import main; main()"


@dataclass
class Server:
    """Hold a running server, the keys of its users and samples of its memory."""

    url: str
    pid: int
    keys: list[str]
    ready_seconds: float
    samples: list[tuple[float, int, int]] = field(default_factory=list)

    @property
    def admin(self) -> str:
        """Return the admin's key, the last one."""
        return self.keys[-1]

    def sample(self, at: float) -> None:
        """Note resident memory in bytes and open files at a time in seconds."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        match = re.search(r"VmRSS:\s+(\d+) kB", status)
        files = len(os.listdir(f"/proc/{self.pid}/fd"))
        self.samples.append((at, int(match[1]) * 1024 if match else 0, files))

    def threads(self) -> int:
        """Return how many threads the process has."""
        return len(os.listdir(f"/proc/{self.pid}/task"))

    def metrics(self) -> dict[str, float]:
        """Return the Prometheus samples by name with labels."""
        headers = {"Authorization": f"Bearer {self.admin}"}
        text = httpx.get(f"{self.url}/metrics", headers=headers, timeout=30).text
        rows = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, value in rows}


def make_keys(data: Path, users: int) -> list[str]:
    """Make a key for each user and one for an admin of the tenant."""
    from stores.accounts.keys import Keys

    settings, _ = load_settings({"data": data})
    with Session(settings) as session:
        keys = Keys(parts(session.store).database)
        made = [
            keys.create(TENANT, user=f"user{n}", roles=frozenset({"reader"}))[0]
            for n in range(users)
        ]
        return [*made, keys.create(TENANT, user="admin", roles=frozenset({"admin"}))[0]]


@contextlib.contextmanager
def served(data: Path, users: int, settings: list[str]) -> Iterator[Server]:
    """Serve the directory on a free port until the block ends; `settings` are NAME=VALUE."""
    keys = make_keys(data, users)
    given = [part for one in settings for part in ("--set", one)]
    command = [sys.executable, "-c", CARREL, "serve", "--port", "0", "--data", str(data), *given]
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        if not url.startswith("http"):
            raise SystemExit("the server did not start")
        yield Server(url, process.pid, keys, time.monotonic() - began)
    finally:
        process.terminate()
        process.wait(READY_SECONDS)
