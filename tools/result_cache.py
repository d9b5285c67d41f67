"""Remember what tool calls returned, so that a run which asks the same twice searches once.

A result belongs to one verified caller and one index version: both are part of its key, so that no
other caller gets it and an ingest leaves it behind. A call that is being answered in one thread is
waited for in another.
"""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, TimeoutError
from dataclasses import replace
from threading import Lock
from typing import Any

from core.auth import AuthContext
from tools.types import ToolResult

REMEMBERED = "answered from the results of this run: the same call was made before"

Key = tuple[AuthContext, int, str, str]


class ResultCache:
    """Keep the latest `size` results; safe to share between threads."""

    def __init__(self, size: int) -> None:
        """Keep nothing when `size` is 0."""
        self._size = size
        self._known: OrderedDict[Key, Future[ToolResult]] = OrderedDict()
        self._lock = Lock()

    def result(
        self, key: Key | None, deadline: float, make: Callable[[], ToolResult]
    ) -> ToolResult:
        """Return what `make` returns, or returned for this key; a failure is not remembered.

        Without a key, after `deadline` (of `time.monotonic()`), or when the call that is waited for
        fails, `make` decides.
        """
        if key is None or not self._size or time.monotonic() > deadline:
            return make()
        with self._lock:
            known = self._known.get(key)
            if known is None:
                mine = self._known[key] = Future()
                self._forget_oldest()
            else:
                self._known.move_to_end(key)
        if known is None:
            return self._made(key, mine, make)
        try:
            return _again(known.result(timeout=max(0.0, deadline - time.monotonic())))
        except (TimeoutError, _Failed):
            return make()

    def _made(
        self, key: Key, mine: Future[ToolResult], make: Callable[[], ToolResult]
    ) -> ToolResult:
        try:
            result = make()
        except BaseException:
            with self._lock:
                if self._known.get(key) is mine:
                    del self._known[key]
            mine.set_exception(_Failed())
            raise
        mine.set_result(result)
        return _again(result, remembered=False)

    def _forget_oldest(self) -> None:
        while len(self._known) > self._size:
            self._known.popitem(last=False)


class _Failed(Exception):
    """Say that the call which was waited for has failed; why is for its own caller."""


def _again(result: ToolResult, *, remembered: bool = True) -> ToolResult:
    """Return the result in lists of its own; one that is remembered has run no stages."""
    if not remembered:
        notes, stages = list(result.notes), list(result.stages)
    else:
        notes, stages = [REMEMBERED, *result.notes], []
    return replace(
        result,
        evidence=list(result.evidence),
        auth_filter=dict(result.auth_filter),
        notes=notes,
        stages=stages,
    )


def key_of(auth: object, version: int, tool: str, arguments: dict[str, Any]) -> Key | None:
    """Return the key of a call, None for one that no tool will accept."""
    if not isinstance(auth, AuthContext):
        return None
    try:
        return auth, version, tool, json.dumps(arguments, sort_keys=True)
    except (TypeError, ValueError):
        return None
