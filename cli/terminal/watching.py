"""What a person sees of a run while it works: its steps, a moving line, its first sentences."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from rich.live import Live
from rich.markup import escape
from rich.spinner import Spinner
from rich.text import Text

from cli.server.running import running
from cli.terminal.answer import AnswerPrinter
from cli.terminal.draw import shortened, step_line
from cli.terminal.output import check_interrupted, stderr
from core.trace import Step, StreamEvent
from models.chat.types import ModelCancelled

if TYPE_CHECKING:
    from serve.operator.command import Command


NEXT = {
    "understand": "searching",
    "plan": "searching",
    "retrieve": "reading what was found",
    "grade_documents": "weighing it",
    "stop_condition": "going on",
    "rewrite": "searching in other words",
    "clarify": "searching",
    "generate": "checking every sentence",
    "verify": "finishing",
}
DETAIL = 60
PER_SECOND = 12.5  # of the moving line's pictures


class Watching:
    """Show the steps of one run as lines when asked for, else as one moving line on a terminal.

    The moving line gives way to the first sentence of the answer.
    """

    def __init__(self, *, steps: bool, quiet: bool) -> None:
        """Show nothing with `quiet` but the steps, if they are asked for."""
        self._err = stderr()
        self._steps = steps
        self._printer = None if quiet else AnswerPrinter()
        moving = self._err.is_terminal and not steps and not quiet
        self._spinner = Spinner("dots", "understanding…", style="status.spinner")
        alone = running() is None  # a server's own streams are not a client's
        self._moving: Live | None = None
        if moving:
            self._moving = Live(
                self._spinner,
                console=self._err,
                refresh_per_second=PER_SECOND,
                transient=True,
                redirect_stdout=alone,
                redirect_stderr=alone,
            )

    def __enter__(self) -> Watching:
        if self._moving is not None:
            self._moving.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._clear()

    def step(self, step: Step) -> None:
        """Show one finished step."""
        check_interrupted()
        if self._steps:
            self._err.print(step_line(step))
        elif self._moving is not None and step.node in NEXT:
            detail = shortened(step.decision, DETAIL)
            line = f"{NEXT[step.node]}… [dim]{step.node}: {escape(detail)}[/dim]"
            self._spinner.update(text=Text.from_markup(line))

    def stream(self, event: StreamEvent) -> None:
        """Show one piece of the answer."""
        check_interrupted()
        if self._printer is not None:
            self._clear()
            self._printer.show(event)

    def finish(self, result: dict[str, Any]) -> None:
        """Show the rest of the answer, its sources, warnings and cost."""
        self._clear()
        if self._printer is not None:
            self._printer.finish(result)

    def _clear(self) -> None:
        if self._moving is not None:
            self._moving.stop()
            self._moving = None


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
    cancelled = command.again()
    try:
        yield cancelled
    except ModelCancelled:
        if not cancelled.is_set():
            raise
        raise KeyboardInterrupt from None
