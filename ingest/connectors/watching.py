"""Notice what changes in folders, without a look at each file."""

from __future__ import annotations

from collections.abc import Iterator, Set
from importlib import import_module
from pathlib import Path
from typing import Any

SETTLED_MS, LONGEST_MS = 50, 500  # without a change, or in all, before changes are shown; chosen


class FolderWatch:
    """Tell which of some folders have changed since the last question; needs watchfiles."""

    def __init__(self) -> None:
        self._paths: Set[Path] = frozenset()
        self._changes: Iterator[Set[Any]] = iter(())

    def changed(self, paths: Set[Path]) -> set[Path]:
        """Return those of these folders and files in which something was changed.

        A path that is new here counts from now on; raises OSError where the system cannot watch so
        many.
        """
        if paths != self._paths:
            self._changes = self._watched(paths)
            self._paths = paths
        found = [Path(place) for _, place in next(self._changes, ())]
        return {path for path in paths if any(one.is_relative_to(path) for one in found)}

    def _watched(self, paths: Set[Path]) -> Iterator[Set[Any]]:
        if not paths:
            return iter(())
        try:
            watchfiles = import_module("watchfiles")  # of the extra `connectors`
        except ImportError:
            return iter(())  # they are synced by their schedule
        made: Iterator[Set[Any]] = watchfiles.watch(
            *paths,
            watch_filter=None,
            debounce=LONGEST_MS,
            step=SETTLED_MS,
            rust_timeout=1,
            yield_on_timeout=True,
        )
        next(made)  # which begins to watch
        return made
