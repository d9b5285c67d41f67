"""Ctrl-C during a run: the chat model is told to stop before the run unwinds."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """Yield an event that Ctrl-C sets before it raises KeyboardInterrupt.

    The graph waits for its running node before it lets go; the event ends the node's model call.
    """
    cancelled = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield cancelled
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        cancelled.set()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield cancelled
    finally:
        signal.signal(signal.SIGINT, before)
