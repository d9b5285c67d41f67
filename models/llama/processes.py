"""Other processes: is it still the same one, does it work, how it is ended."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

START_FIELD, CPU_FIELDS = 19, slice(11, 13)  # of /proc/PID/stat, after the name in brackets
STEP_SECONDS = 0.02


def birth(pid: int) -> str | None:
    """Return when a process started, None when it has ended: pid and birth name one process."""
    fields = _statistics(pid)
    if fields is not None:
        return None if fields[0] in ("Z", "X") else fields[START_FIELD]
    return None if Path("/proc/self/stat").exists() else _ps(pid, "lstart")


def cpu_seconds(pid: int) -> float | None:
    """Return the CPU time that a process has used, None when that is not known."""
    fields = _statistics(pid)
    if fields is not None:
        return sum(map(int, fields[CPU_FIELDS])) / os.sysconf("SC_CLK_TCK")
    shown = _ps(pid, "time")  # [hours:]minutes:seconds
    if shown is None:
        return None
    total = 0.0
    for part in shown.replace("-", ":").split(":"):
        total = total * 60 + float(part)
    return total


def is_running(pid: int, born: str) -> bool:
    """Tell whether the process of this pid is still the one that was born then."""
    return birth(pid) == born


def end_process(pid: int, born: str, seconds: float) -> bool:
    """End a process by SIGTERM, by SIGKILL when it is still there after some seconds.

    Return whether it had to be killed. A process that another one has taken the pid of is left
    alone.
    """
    if not is_running(pid, born):
        return False
    _signal(pid, signal.SIGTERM)
    if _gone(pid, born, seconds):
        return False
    _signal(pid, signal.SIGKILL)
    _gone(pid, born, seconds)
    return True


def _gone(pid: int, born: str, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while is_running(pid, born):
        if time.monotonic() > end:
            return False
        time.sleep(STEP_SECONDS)
    return True


def _signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _statistics(pid: int) -> list[str] | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def _ps(pid: int, column: str) -> str | None:
    """Ask ps, where there is no /proc."""
    command = ["ps", "-o", f"{column}=", "-p", str(pid)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None
