"""The process that keeps one llama.cpp server alive: `python -m models.llama.supervisor PLAN`.

It starts the server, looks at its health, starts it again when it has died or hangs, and ends it
with itself. What it knows is in server.json (server_state.py). It gives up when the server does not
come up at first, and after too many restarts in ten minutes.
"""

from __future__ import annotations

import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from filelock import FileLock, Timeout

from models.llama.command import server_environment
from models.llama.control import ALREADY_RUNNING
from models.llama.plan import SLOTS, ServePlan
from models.llama.server_state import (
    KEY,
    LOCK,
    LOG,
    STATE,
    Phase,
    ServedModel,
    ServerState,
    birth,
    cpu_seconds,
    look,
    write_state,
)

PR_SET_PDEATHSIG = 1  # linux/prctl.h
LAST_LINES, LAST_BYTES = 3, 4096  # of the log that an error quotes, and that are read for it


class LlamaProcess:
    """Run one server; leaving the block ends it, by SIGKILL when SIGTERM is not heard."""

    def __init__(self, plan: ServePlan) -> None:
        self.plan = plan
        self.log = plan.home / LOG

    def __enter__(self) -> Self:
        python = self.plan.backend == "llama_cpp.server"
        key = (self.plan.home / KEY).read_text(encoding="utf-8").strip()
        (self.plan.home / SLOTS).mkdir(mode=0o700, exist_ok=True)
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
        with suppress(ProcessLookupError):
            self._process.terminate()
            self._process.send_signal(signal.SIGCONT)  # a stopped process hears nothing else
        if self._ends_within(self.plan.stop_seconds):
            return
        self._process.kill()
        self._ends_within(self.plan.stop_seconds)

    def _ends_within(self, seconds: float) -> bool:
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
                os.truncate(self.log, 0)  # the server appends, so it can go on writing


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


WINDOW_SECONDS = 600  # within which restarts are counted
LOADING_LOOK_SECONDS = 0.1  # between two looks while the model loads
IDLE_SHARE = 0.01  # a silent server that uses less of a CPU does nothing; chosen, not measured


class Supervisor:
    """Watch one server until it should stop; `on_change` hears each new state."""

    def __init__(
        self, plan: ServePlan, on_change: Callable[[ServerState], None] = lambda state: None
    ) -> None:
        self.plan = plan
        self.on_change = on_change
        self.stopping = False
        self.was_healthy = False
        self.restarted: deque[float] = deque()
        self.state = ServerState(
            **plan.model_dump(include=set(ServedModel.model_fields)),
            state="starting",
            log=str(plan.home / LOG),
            started_at=datetime.now(UTC).isoformat(timespec="seconds"),
            supervisor_pid=os.getpid(),
            supervisor_birth=birth(os.getpid()) or "",
        )

    def run(self) -> int:
        """Serve; return 0 when stopped, 1 when given up, 3 when another one runs."""
        lock = FileLock(self.plan.home / LOCK)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return ALREADY_RUNNING
        with lock:
            self._hear_signals()
            phase: Phase = "starting"
            while True:
                error = self._serve_once(phase)
                if self.stopping:
                    (self.plan.home / STATE).unlink(missing_ok=True)
                    return 0
                if self._give_up(error):
                    return 1
                phase = "restarting"

    def _serve_once(self, phase: Phase) -> str:
        """Run a server until it ends, hangs or should stop; return why it failed."""
        with LlamaProcess(self.plan) as child:
            restarts = self.state.restarts + (phase == "restarting")
            self._change(phase, pid=child.pid, birth=child.birth, restarts=restarts)
            return self._load(child) or self._watch(child)

    def _load(self, child: LlamaProcess) -> str:
        """Wait until the server is healthy; return why it is not, "" when it is."""
        end = time.monotonic() + self.plan.load_seconds
        while time.monotonic() < end:
            if self._pause(LOADING_LOOK_SECONDS):
                return ""
            if ending := child.ending():
                return f"{ending} while it loaded the model. Its log ends: {child.last_lines()}"
            if look(self.plan.port, self.plan.backend, self.plan.health_seconds) == "ok":
                self.was_healthy = True
                self._change("healthy")
                return ""
        return f"has not loaded the model within {self.plan.load_seconds:g} s"

    def _watch(self, child: LlamaProcess) -> str:
        """Look after a healthy server; return why it must be started again.

        All its connections may be busy with long answers, which leaves none for a look at its
        health. So only a server that is silent and uses no CPU hangs; one that works on without a
        word is given the time of one call.
        """
        misses, answered = 0, time.monotonic()
        while True:
            began = time.monotonic()
            used = cpu_seconds(child.pid)
            silent = look(self.plan.port, self.plan.backend, self.plan.health_seconds / 2)
            now = time.monotonic()
            if ending := child.ending():
                return ending
            if silent != "silent":
                misses, answered = 0, now
            elif works(used, cpu_seconds(child.pid), now - began):
                misses = 0
            else:
                misses += 1
            if misses >= self.plan.health_misses or now - answered > self.plan.busy_seconds:
                return f"has not answered for {now - answered:.0f} s"
            child.rotate_log()
            if self._pause(began + self.plan.health_seconds - now):
                return ""

    def _give_up(self, error: str) -> bool:
        """Tell whether it is not started again: it never worked, or it fails too often."""
        now = time.monotonic()
        while self.restarted and now - self.restarted[0] > WINDOW_SECONDS:
            self.restarted.popleft()
        if not self.was_healthy or len(self.restarted) >= self.plan.restarts:
            self._change("failed", pid=None, birth="", error=f"the server {error}")
            return True
        print(f"the server {error}; it is started again", file=sys.stderr, flush=True)  # noqa: T201
        self._change("restarting", pid=None, birth="", error=f"the server {error}")
        if self.restarted:
            self._pause(self.plan.health_seconds)
        self.restarted.append(now)
        return False

    def _change(self, phase: Phase, **values: object) -> None:
        self.state = self.state.model_copy(update={"state": phase, **values})
        write_state(self.plan.home, self.state)
        self.on_change(self.state)

    def _hear_signals(self) -> None:
        """Let signals end a pause: those that stop it, and the end of the server."""
        self._woken, waker = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(waker, False)
        signal.set_wakeup_fd(waker)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._stop)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def _stop(self, *_: object) -> None:
        self.stopping = True

    def _pause(self, seconds: float) -> bool:
        """Wait some seconds or until a signal; tell whether it was one to stop."""
        if not self.stopping and seconds > 0:
            select.select([self._woken], [], [], seconds)
            with suppress(BlockingIOError):
                os.read(self._woken, 4096)
        return self.stopping


def works(before: float | None, after: float | None, seconds: float) -> bool:
    """Tell from its CPU times whether a process has worked for some of these seconds."""
    if before is None or after is None:
        return False
    return after - before > IDLE_SHARE * seconds


def main(arguments: list[str]) -> int:
    """Run the plan in the file that is named."""
    plan = ServePlan.model_validate_json(Path(arguments[0]).read_bytes())
    return Supervisor(plan).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
