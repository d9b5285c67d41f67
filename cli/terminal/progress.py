"""What moves on stderr while something works: bars, a line that tells, the first sentences."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from rich.live import Live
from rich.markup import escape
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.spinner import Spinner
from rich.text import Text

from cli.server.running import running
from cli.terminal.answer import AnswerPrinter, shortened, step_line
from cli.terminal.output import check_interrupted, counted, stderr
from core.trace import Step, StreamEvent
from display.steps import step_text
from ingest.summary import Tally
from models.chat.types import ModelCancelled

if TYPE_CHECKING:
    from serve.operator.control import Command

Advance = Callable[[str, int, int], None]

BAR = 20  # characters; chosen, not measured
SHORT = 8  # characters that a bar or a name must have to be shown; chosen, not measured
REFRESHED = 4  # times a second; chosen, not measured
FIRST = 0.9  # seconds to the first line: who is refused before reads one line, the reason
OFTEN, SELDOM = 10, 10  # seconds with a line each, then between two lines; chosen, not measured
SEPARATOR = " · "
COLD = 3.0  # seconds after which the model is made ready for the first time


def _moving() -> dict[str, Any]:
    """Return how something moves on stderr; a server's own streams are not its client's."""
    alone = running() is None
    redirected = {"redirect_stdout": alone, "redirect_stderr": alone}
    return {"console": stderr(), "transient": True, **redirected}


class DoneColumn(MofNCompleteColumn):
    """Show how much is done, and of how much where that is known."""

    def render(self, task: Task) -> Text:
        """Return the count, which stands alone for a total that nobody knows."""
        return Text(str(int(task.completed))) if task.total is None else super().render(task)


class StageBars:
    """Draw one bar per stage; a stage whose total is not known (0) only counts."""

    def __init__(self, quiet: bool, name: str = "") -> None:
        """Draw nothing when quiet, or when stderr is no terminal; `name` stands before stages."""
        self._name = f"{escape(name)}: " if name else ""
        self._bars = Progress(
            TextColumn("{task.description:>10}"),
            BarColumn(),
            *self._columns(),
            disable=quiet or not stderr().is_terminal,
            **_moving(),
        )
        self._tasks: dict[str, Any] = {}

    def __enter__(self) -> Advance:
        self._bars.start()
        return self._advance

    def _columns(self) -> list[ProgressColumn]:
        return [DoneColumn()]

    def _advance(self, stage: str, done: int, total: int) -> None:
        check_interrupted()
        task = self._tasks.get(stage)
        if task is None:
            # What was done before, by an interrupted download, does not count for its speed.
            text = f"{self._name}{stage}"
            task = self._bars.add_task(text, total=total or None, completed=done)
            self._tasks[stage] = task
        self._bars.update(task, completed=done, total=total or None)

    def __exit__(self, *error: object) -> None:
        self._bars.stop()


class IngestBar:
    """Tell each second how far an ingest is: a bar on a terminal, else lines that become rarer."""

    def __init__(self, quiet: bool, tally: Tally) -> None:
        """Say nothing when quiet."""
        self._tally = tally
        self._quiet = quiet
        self._err = stderr()
        self._live: Live | None = None
        self._ended = threading.Event()
        self._lines = threading.Thread(target=self._tell, name="progress", daemon=True)

    def __enter__(self) -> Advance:
        if self._quiet:
            return self._advance
        if self._err.is_terminal:
            self._live = Live(get_renderable=self._line, refresh_per_second=REFRESHED, **_moving())
            self._live.start(refresh=True)
        else:
            self._lines.start()
        return self._advance

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        if self._live is not None:
            self._live.stop()

    def _advance(self, stage: str, done: int, total: int) -> None:
        """Take what the tally tells too; a server's command can be ended here."""
        check_interrupted()

    def _tell(self) -> None:
        """Print a line each second at first, then each ten seconds."""
        pause = FIRST
        while not self._ended.wait(pause):
            pause = 1 if self._tally.elapsed < OFTEN else SELDOM
            self._err.print(escape(progress_text(self._tally)))

    def _line(self) -> Text:
        return progress_line(self._tally, self._err.width - 1)


def progress_line(tally: Tally, width: int) -> Text:
    """Return how far an ingest is, with a bar, in one line.

    The times come last of what is left out: the name goes first, the bar, then what is counted.
    """
    pieces = _pieces(tally)
    while len(pieces) > 1 and len(SEPARATOR.join(pieces)) > width:
        del pieces[0]
    text = SEPARATOR.join(pieces)
    bar = min(BAR, width - len(text) - 1)
    line = Text()
    if bar >= SHORT:
        filled = round(tally.share * bar)
        line.append("━" * filled, style="bar.complete")
        line.append("━" * (bar - filled), style="bar.back")
        line.append(" ")
    line.append(text, style="none")
    if tally.name and width - line.cell_len >= len(SEPARATOR) + SHORT:
        line.append(f"{SEPARATOR}{tally.name}", style="none")
    line.truncate(max(1, width), overflow="ellipsis")
    return line


def progress_text(tally: Tally) -> str:
    """Return how far an ingest is, in words."""
    return SEPARATOR.join([*_pieces(tally), *filter(None, [tally.name])])


def _pieces(tally: Tally) -> list[str]:
    """Return what is done, the time it took, and the time that is left where that is known."""
    if not tally.files:
        what = "opening" if tally.elapsed < COLD else "preparing the embedding model (once)"
        return [what, clock(tally.elapsed)]
    pieces = [
        f"{tally.files_done}/{tally.files} files",
        counted(tally.documents, "document"),
        f"{tally.chunks_done}/{tally.chunks} chunks",
        clock(tally.elapsed),
    ]
    if (left := tally.remaining) is not None:
        pieces.append(f"{'at least' if tally.at_least else 'about'} {clock(left)} left")
    return pieces


def clock(seconds: float) -> str:
    """Return seconds as minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}"


class ByteBars(StageBars):
    """Draw one bar of bytes per stage of a download or check, with its speed."""

    def _columns(self) -> list[ProgressColumn]:
        return [DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()]


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
DETAIL = 60  # characters of a decision on the moving line, chosen
PER_SECOND = 12.5  # of the moving line's pictures


class Watching:
    """Show the steps of one run as lines when asked for, else as one moving line on a terminal.

    The moving line gives way to the first sentence of the answer.
    """

    def __init__(self, *, steps: bool, quiet: bool) -> None:
        """Show nothing with `quiet` but the steps, if they are asked for.

        Steps are described in `language`, which may be set later.
        """
        self.language = ""
        self._err = stderr()
        self._steps = steps
        self._printer = None if quiet else AnswerPrinter()
        self._spinner = Spinner("dots", "understanding…", style="status.spinner")
        self._moving: Live | None = None
        if self._err.is_terminal and not steps and not quiet:
            self._moving = Live(self._spinner, refresh_per_second=PER_SECOND, **_moving())

    def __enter__(self) -> Watching:
        if self._moving is not None:
            self._moving.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._clear()

    def step(self, step: Step) -> None:
        """Show one finished step."""
        check_interrupted()
        if self._steps:
            self._err.print(step_line(step, self.language))
        elif self._moving is not None and step.node in NEXT:
            detail = shortened(step_text(step, self.language), DETAIL)
            line = f"{NEXT[step.node]}… [dim]{escape(detail)}[/dim]"
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
