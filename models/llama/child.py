"""The server process below the supervisor: it ends with it, and its log stays small."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from models.llama.command import server_environment
from models.llama.plan import ServePlan
from models.llama.processes import birth
from models.llama.server_state import KEY, LOG

PR_SET_PDEATHSIG = 1  # linux/prctl.h
LAST_LINES = 3
LAST_BYTES = 4096


class Child:
    """Run one server; leaving the block ends it, by SIGKILL when SIGTERM is not heard."""

    def __init__(self, plan: ServePlan) -> None:
        self.plan = plan
        self.log = plan.home / LOG

    def __enter__(self) -> Self:
        """Start the server."""
        python = self.plan.backend == "llama_cpp.server"
        key = (self.plan.home / KEY).read_text(encoding="utf-8").strip()
        descriptor = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            self._process = subprocess.Popen(
                self.plan.command,
                stdin=subprocess.DEVNULL,
                stdout=descriptor,
                stderr=descriptor,
                env=server_environment(python, key, self.plan.port),
                preexec_fn=_dies_with(os.getpid()),  # the supervisor has one thread
            )
        finally:
            os.close(descriptor)
        self.pid = self._process.pid
        self.birth = birth(self.pid) or ""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End it."""
        with suppress(ProcessLookupError):
            self._process.terminate()
            self._process.send_signal(signal.SIGCONT)  # a stopped process hears nothing else
        if self._ended_within(self.plan.stop_seconds):
            return
        self._process.kill()
        self._ended_within(self.plan.stop_seconds)

    def _ended_within(self, seconds: float) -> bool:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def ending(self) -> str | None:
        """Return how the server has ended, None while it runs."""
        code = self._process.poll()
        if code is None:
            return None
        if code < 0:
            return f"was ended by {signal.Signals(-code).name}"
        return f"ended with exit code {code}"

    def last_lines(self) -> str:
        """Return the end of the log on one line."""
        with suppress(OSError), self.log.open("rb") as file:
            file.seek(max(0, self.log.stat().st_size - LAST_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
            return " / ".join([line.strip() for line in lines if line.strip()][-LAST_LINES:])
        return ""

    def rotate_log(self) -> None:
        """Keep a log that has grown too large as LOG.1, and go on with an empty one."""
        with suppress(OSError):
            if self.log.stat().st_size > self.plan.log_bytes:
                shutil.copy2(self.log, self.log.with_name(LOG + ".1"))
                os.truncate(self.log, 0)  # the server appends, so it needs not be told


def _dies_with(parent: int) -> Callable[[], None] | None:
    """Return what makes a new process end with the one that started it, where there is a way."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def before_start() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it has ended in between
            os._exit(1)

    return before_start
