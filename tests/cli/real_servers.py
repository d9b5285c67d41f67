"""A real `carrel serve` on a free port, and commands over the directory that it owns."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from commands import COMMAND, ROOT, Done, process

SECONDS = 60
VARIABLES = {"CARREL_REASONER": "rules"}


def ended(child: subprocess.Popen[str]) -> str:
    """Wait for a process and return what it said on stderr."""
    with child:
        return child.communicate(timeout=SECONDS)[1]


class Server:
    """Hold a running server and the directory it owns."""

    def __init__(self, data: Path, *options: str) -> None:
        command = [*COMMAND, "serve", "--port", "0", "--data", str(data)]
        self.data = data
        self.child = subprocess.Popen(
            [*command, *options],
            cwd=ROOT,
            env={**os.environ, **VARIABLES},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.child.stdout is not None
        self.url = self.child.stdout.readline().strip()

    @property
    def owner(self) -> dict[str, object]:
        found: dict[str, object] = json.loads((self.data / "owner.json").read_text())
        return found

    def works_on(self, collection: str) -> bool:
        """Wait until the server reads files into a collection; tell whether it does."""
        query = (
            "SELECT count(*) FROM documents d, collections c"
            " WHERE d.collection_id = c.id AND c.name = ?"
        )
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            with closing(sqlite3.connect(self.data / "catalogue.sqlite3")) as catalogue:
                if catalogue.execute(query, [collection]).fetchone()[0]:
                    return True
            time.sleep(0.05)
        return False

    def stop(self, number: signal.Signals = signal.SIGTERM) -> str:
        if self.child.poll() is None:
            self.child.send_signal(number)
        return ended(self.child)

    def process(self, *arguments: object, stdin: str = "", **variables: str) -> Done:
        return process(*arguments, data=self.data, stdin=stdin, env={**VARIABLES, **variables})

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*COMMAND, *arguments, "--data", str(self.data)],
            cwd=ROOT,
            env={**os.environ, **VARIABLES},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@contextmanager
def serving(data: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Serve until the block ends; give the address that is printed."""
    server = Server(data, *options)
    try:
        yield server.url, server.child
    finally:
        server.stop()
