"""A real Redis on a socket of its own, for tests of what is kept there."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

REDIS = shutil.which("redis-server")
MISSING = "redis-server is not installed"
SECONDS = 60


class RunningRedis:
    """Start and stop one Redis; what it held is gone when it stops."""

    def __init__(self) -> None:
        # The path of a socket has at most 107 characters, which pytest's own folders may exceed.
        self.folder = Path(tempfile.mkdtemp(prefix="carrel-redis-"))
        self.socket = self.folder / "s"
        self.url = f"unix://{self.socket}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        assert REDIS is not None
        given = {"port": "0", "unixsocket": str(self.socket), "save": "", "appendonly": "no"}
        options = [part for name, value in given.items() for part in (f"--{name}", value)]
        self._process = subprocess.Popen(
            [REDIS, *options], cwd=self.folder, stdout=subprocess.DEVNULL
        )
        from redis import Redis
        from redis.exceptions import ConnectionError

        for _ in range(SECONDS * 100):
            try:
                with Redis(unix_socket_path=str(self.socket)) as client:
                    client.ping()
                return
            except (ConnectionError, FileNotFoundError):
                time.sleep(0.01)
        pytest.fail("Redis did not start")

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(SECONDS)
            self._process = None
        self.socket.unlink(missing_ok=True)

    def end(self) -> None:
        self.stop()
        shutil.rmtree(self.folder)
