"""The bars that long work draws on stderr."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from cli.output import stderr
from cli.running import running

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

Advance = Callable[[str, int, int], None]


class StageBars:
    """Draw one bar per stage; a stage whose total is not known (0) only counts."""

    def __init__(self, quiet: bool, name: str = "") -> None:
        """Draw nothing when quiet, or when stderr is no terminal; `name` stands before stages."""
        from rich.progress import BarColumn, Progress, TextColumn

        self._name = f"{escape(name)}: " if name else ""
        self._command = running()
        alone = self._command is None  # a server's own streams are not a client's
        self._bars = Progress(
            TextColumn("{task.description:>10}"),
            BarColumn(),
            *self._columns(),
            console=stderr(),
            transient=True,
            disable=quiet or not stderr().is_terminal,
            redirect_stdout=alone,
            redirect_stderr=alone,
        )
        self._tasks: dict[str, Any] = {}

    def __enter__(self) -> Advance:
        """Start, and return what the work reports to."""
        self._bars.start()
        return self._advance

    def _columns(self) -> list[ProgressColumn]:
        from rich.progress import MofNCompleteColumn

        return [MofNCompleteColumn()]

    def _advance(self, stage: str, done: int, total: int) -> None:
        if self._command is not None:
            self._command.check()
        task = self._tasks.get(stage)
        if task is None:
            # What was done before, by an interrupted download, does not count for its speed.
            text = f"{self._name}{stage}"
            task = self._bars.add_task(text, total=total or None, completed=done)
            self._tasks[stage] = task
        self._bars.update(task, completed=done, total=total or None)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Take the bars away."""
        self._bars.stop()


class ByteBars(StageBars):
    """Draw one bar of bytes per stage of a download or check, with its speed."""

    def _columns(self) -> list[ProgressColumn]:
        from rich.progress import DownloadColumn, TimeRemainingColumn, TransferSpeedColumn

        return [DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()]
