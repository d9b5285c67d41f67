"""The bars that long work draws on stderr."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from cli.output import stderr

if TYPE_CHECKING:
    from ingest.pipeline import Progress


class StageBars:
    """Draw one bar per stage; a stage whose total is not known (0) only counts."""

    def __init__(self, quiet: bool) -> None:
        """Draw nothing when quiet, or when stderr is no terminal."""
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as RichProgress

        self._bars = RichProgress(
            TextColumn("{task.description:>10}"),
            BarColumn(),
            MofNCompleteColumn(),
            console=stderr(),
            transient=True,
            disable=quiet or not stderr().is_terminal,
        )
        self._tasks: dict[str, Any] = {}

    def __enter__(self) -> Progress:
        """Start, and return what the work reports to."""
        self._bars.start()
        return self._advance

    def _advance(self, stage: str, done: int, total: int) -> None:
        task = self._tasks.get(stage)
        if task is None:
            task = self._tasks[stage] = self._bars.add_task(stage, total=total or None)
        self._bars.update(task, completed=done, total=total or None)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Take the bars away."""
        self._bars.stop()
