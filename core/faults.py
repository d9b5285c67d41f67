"""Points at which a test may kill the process, to prove that nothing is lost there."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import cache
from threading import Lock

VARIABLE = "CARREL_FAULT_AT"

# Before and after what becomes durable at each step, in the order in which an ingest comes by.
STAGES = tuple(
    f"{step}.{when}"
    for step in (
        "parsed",
        "chunked",
        "embedded",
        "indexed",
        "verified",
        "rename",
        "prune",
        "sweep",
        "segment",
        "rebuild",
    )
    for when in ("before", "after")
)

# Called at every point; a test may put a function here that raises.
watch: Callable[[str], None] | None = None

_counts: dict[str, int] = {}
_lock = Lock()


def fault(stage: str) -> None:
    """Kill this process when the environment asks for it here, as CARREL_FAULT_AT=stage:n.

    `stage` is one of `STAGES` and n counts how often it is reached, from 1.
    """
    if watch is not None:
        watch(stage)
    wanted = _read_variable()
    if wanted is None or wanted[0] != stage:
        return
    with _lock:
        _counts[stage] = _counts.get(stage, 0) + 1
        reached = _counts[stage] == wanted[1]
    if reached:
        os.kill(os.getpid(), signal.SIGKILL)


@cache
def _read_variable() -> tuple[str, int] | None:
    stage, _, number = os.environ.get(VARIABLE, "").partition(":")
    return (stage, int(number or 1)) if stage in STAGES else None
