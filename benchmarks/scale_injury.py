"""What is done to a cluster beside killing its processes: its database, connections and disk."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.forked import forked

DISK_MB = 300  # of the database, where a file system of its own can be mounted
SLOW_S = 0.05  # for each piece that goes either way
LASTS_S = 3.0  # how long connections are slow, or a disk is full


class Proxy:
    """Stand before a socket of PostgreSQL, in a process of its own; it is slowed and cut."""

    def __init__(self, target: Path) -> None:
        """Listen on a port of this machine."""
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._target = str(target)
        self._slow = False
        self._open: list[socket.socket] = []
        self._child = forked(self._serve)

    def _serve(self) -> int:
        signal.signal(signal.SIGUSR1, lambda *_: self._cut())
        signal.signal(signal.SIGUSR2, lambda *_: setattr(self, "_slow", not self._slow))
        while True:
            near, _ = self._listening.accept()
            far = socket.socket(socket.AF_UNIX)
            try:
                far.connect(self._target)
            except OSError:
                near.close()
                continue
            self._open += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(one, other), daemon=True).start()

    def _pump(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while piece := one.recv(65_536):
                if self._slow:
                    time.sleep(SLOW_S)
                other.sendall(piece)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _cut(self) -> None:
        for end in self._open:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def cut(self) -> None:
        """End all connections at once."""
        os.kill(self._child.number, signal.SIGUSR1)

    def slow(self) -> None:
        """Delay all that goes through for a while."""
        os.kill(self._child.number, signal.SIGUSR2)
        time.sleep(LASTS_S)
        os.kill(self._child.number, signal.SIGUSR2)

    def close(self) -> None:
        """End it."""
        self._child.kill()
        self._child.wait()


class Disk:
    """Hold the folder of a database, on a small file system of its own where one can be mounted."""

    def __init__(self, folder: Path) -> None:
        """Make the folder."""
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(folder)]
        self.folder = folder
        self.is_own = os.geteuid() == 0 and not subprocess.run(command, check=False).returncode

    def fill(self) -> None:
        """Let it be full for a while."""
        balloon = self.folder / "balloon"
        with suppress(OSError), balloon.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 16))
        time.sleep(LASTS_S)
        balloon.unlink()

    def close(self) -> None:
        """Unmount it."""
        if self.is_own:
            subprocess.run(["umount", "-l", str(self.folder)], check=False)


class Database:
    """Hold PostgreSQL, to be killed and started again."""

    def __init__(self, server: Any, folder: Path) -> None:
        """Take over one that runs in a folder."""
        self._server, self._folder = server, folder

    def kill(self) -> None:
        """End it as a power cut does."""
        with suppress(OSError, ValueError):
            os.kill(int((self._folder / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
        time.sleep(0.5)  # its children notice

    def start(self) -> None:
        """Start it, unless it runs, and wait until it answers."""
        for _ in range(60):
            with suppress(Exception):  # what was killed may still be there for a moment
                self._server.ensure_postgres_running()
                psycopg.connect(self._server.get_uri()).close()
                return
            time.sleep(0.5)
        raise SystemExit("PostgreSQL does not start again")

    def close(self) -> None:
        """End it for good."""
        self.kill()
        with suppress(Exception):  # of a process that was another one at first
            self._server.cleanup()


class VectorServer:
    """Hold a Milvus server of milvus-lite."""

    def __init__(self, folder: Path) -> None:
        """Start it."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"
        self._folder = folder
        self.start()

    def start(self) -> None:
        """Start it and wait until it listens."""
        program = Path(sys.executable).with_name("milvus-lite")
        command = [str(program), "server", "--host", "127.0.0.1", "--port", str(self._port)]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(
            [*command, "--data-dir", str(self._folder)], stdout=quiet, stderr=quiet
        )
        for _ in range(300):
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", self._port), 1).close()
                return
            time.sleep(0.1)

    def kill(self) -> None:
        """End it as a power cut does."""
        self._process.kill()
        self._process.wait()
