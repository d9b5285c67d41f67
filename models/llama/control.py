"""Start, inspect and stop the supervised server from another process."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from core.errors import CallerError, OperatorError
from core.settings import Settings
from models.llama.plan import HEALTH_SECONDS, PLAN, STOP_SECONDS, ServePlan, make_plan
from models.llama.server_state import (
    STATE,
    SUPERVISOR_LOG,
    ServerState,
    end_process,
    ensure_key,
    home_of,
    look,
    read_state,
    write_private,
)

ROOT = Path(__file__).resolve().parents[2]
POLL_SECONDS = 0.05  # between two looks at a server that starts
ALREADY_RUNNING = 3  # exit code of a supervisor that found another one


def prepare(settings: Settings, asked: str = "", port: int | None = None) -> ServePlan:
    """Return the plan of a server that can be started now, and write its key.

    Raises CallerError when one is running already.
    """
    running = read_state(home_of(settings))
    if running is not None and running.supervised:
        raise CallerError(
            f"a server is running already: {running.model} at {running.url}",
            hint="end it first: `carrel llm stop`",
        )
    stop(
        settings
    )  # what a supervisor that was killed may have left, where it could not take it along
    plan = make_plan(settings, asked, port)
    ensure_key(settings)
    return plan


def start(plan: ServePlan, waiting: Callable[[float], None]) -> ServerState:
    """Start the supervisor in the background and return when the server is healthy.

    `waiting` hears the seconds so far. Raises OperatorError when it fails; nothing is left running
    then, nor when this is interrupted.
    """
    write_private(plan.home / PLAN, plan.model_dump_json(indent=1))
    log = plan.home / SUPERVISOR_LOG
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "models.llama.supervisor", str(plan.home / PLAN)],
            cwd=ROOT,  # another folder may hold a package of the same name
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        return _healthy(plan, process, waiting)
    except BaseException:
        process.terminate()
        try:
            process.wait(plan.health_seconds + 2 * plan.stop_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        raise


def _healthy(
    plan: ServePlan, process: subprocess.Popen[bytes], waiting: Callable[[float], None]
) -> ServerState:
    began = time.monotonic()
    while True:
        ended = process.poll() is not None
        state = read_state(plan.home)
        if state is not None and state.supervisor_pid == process.pid:
            if state.state == "healthy":
                process.returncode = 0  # it goes on without us
                return state
            if state.state == "failed":
                raise failed(state)
        if process.returncode == ALREADY_RUNNING:
            raise already_starting()
        if ended:
            reason = (plan.home / SUPERVISOR_LOG).read_text("utf-8", "replace").strip()
            raise OperatorError(
                "the supervisor has ended before its server was healthy",
                value=reason.rpartition("\n")[2] or f"exit code {process.returncode}",
                hint=f"the log is {plan.home / SUPERVISOR_LOG}",
            )
        waiting(time.monotonic() - began)
        time.sleep(POLL_SECONDS)


def already_starting() -> OperatorError:
    """Return the error that somebody else was faster."""
    return OperatorError("another server is just being started", hint="`carrel llm status`")


def failed(state: ServerState) -> OperatorError:
    """Return the error that the supervisor has given up with."""
    return OperatorError(state.error, hint=f"the whole log is {state.log}")


def inspect(settings: Settings) -> tuple[str, ServerState | None]:
    """Return the state of the server as a word, and its record, None for none.

    How: healthy, starting, restarting, failed, unhealthy (its supervisor has not noticed yet), or
    stopped.
    """
    state = read_state(home_of(settings))
    if state is None:
        return "stopped", None
    if state.state == "failed":
        return "failed", state
    if not state.supervised:
        return "stopped", None
    if state.state != "healthy":
        return state.state, state
    port = int(state.url.partition("://")[2].partition("/")[0].rpartition(":")[2])
    answer = look(port, state.backend, HEALTH_SECONDS)
    return ("healthy" if answer == "ok" else "unhealthy"), state


def stop(settings: Settings) -> ServerState | None:
    """End the supervisor and its server, by force when needed; return what was stopped."""
    state = read_state(home_of(settings))
    stopped = None
    if state is not None:
        if state.supervised:
            stopped = state
            patience = HEALTH_SECONDS + 2 * STOP_SECONDS
            end_process(state.supervisor_pid, state.supervisor_birth, patience)
        if state.pid is not None:
            end_process(state.pid, state.birth, STOP_SECONDS)
    with suppress(FileNotFoundError, NotADirectoryError):
        (home_of(settings) / STATE).unlink()
    return stopped
