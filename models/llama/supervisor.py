"""The process that keeps one llama.cpp server alive: `python -m models.llama.supervisor PLAN`.

It starts the server, looks at its health, starts it again when it has died or hangs, and ends it
with itself. What it knows is in server.json (server_state.py). It gives up when the server does not
come up at first, and after too many restarts in ten minutes.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from models.llama.child import Child
from models.llama.control import ALREADY_RUNNING
from models.llama.health import look
from models.llama.plan import ServePlan
from models.llama.processes import birth, cpu_seconds
from models.llama.server_state import LOCK, LOG, STATE, Phase, ServerState, write_state

WINDOW_SECONDS = 600  # within which restarts are counted
LOADING_LOOK_SECONDS = 0.1
IDLE_SHARE = 0.01  # a silent server that uses less of a CPU does nothing


class Supervisor:
    """Watch one server until told to stop; `on_change` hears each new state."""

    def __init__(
        self, plan: ServePlan, on_change: Callable[[ServerState], None] = lambda state: None
    ) -> None:
        self.plan = plan
        self.on_change = on_change
        self.stopping = False
        self.was_healthy = False
        self.restarted: deque[float] = deque()
        self.state = ServerState(
            state="starting",
            url=plan.url,
            model=plan.model,
            file=plan.file,
            backend=plan.backend,
            context=plan.context,
            slots=plan.slots,
            gpu_layers=plan.gpu_layers,
            log=str(plan.home / LOG),
            started_at=datetime.now(UTC).isoformat(timespec="seconds"),
            supervisor_pid=os.getpid(),
            supervisor_birth=birth(os.getpid()) or "",
        )

    def run(self) -> int:
        """Serve; return 0 when told to stop, 1 when given up, 3 when another one is there."""
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
        """Run a server until it ends, hangs, or is told to stop; return why it failed."""
        with Child(self.plan) as child:
            restarts = self.state.restarts + (phase == "restarting")
            self._change(phase, pid=child.pid, birth=child.birth, restarts=restarts)
            return self._load(child) or self._watch(child)

    def _load(self, child: Child) -> str:
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

    def _watch(self, child: Child) -> str:
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
