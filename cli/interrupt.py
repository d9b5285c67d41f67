"""Ctrl-C during a run: the chat model is told to stop before the run unwinds."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from cli.running import running

if TYPE_CHECKING:
    from serve.command import Command


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """Yield an event that Ctrl-C sets before it raises KeyboardInterrupt.

    The graph waits for its running node before it lets go; the event ends the node's model call.
    """
    if (command := running()) is not None:
        with _elsewhere(command) as cancelled:
            yield cancelled
        return
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


@contextmanager
def _elsewhere(command: Command) -> Iterator[threading.Event]:
    """Yield the event that a client of the server sets, which runs its command on this thread."""
    from models.chat.types import ModelCancelled

    cancelled = command.again()
    try:
        yield cancelled
    except ModelCancelled:
        if not cancelled.is_set():
            raise
        raise KeyboardInterrupt from None
