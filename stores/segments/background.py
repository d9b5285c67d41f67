"""One thread that builds segments while others search."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable

from core.errors import CarrelError
from stores.segments.build import Cancelled, Pause
from stores.segments.types import Progress

Refresh = Callable[[int, Progress | None, Pause | None], bool]
_REST_S = 0.0005  # lets a thread that answers a question have its turn


class Background:
    """Refresh collections one after the other, on a thread that is started when first asked."""

    def __init__(self, refresh: Refresh) -> None:
        """Call `refresh` on the thread."""
        self._refresh = refresh
        self._waiting: list[int] = []
        self._changed = threading.Condition()
        self._closing = False
        self._busy = False
        self._thread: threading.Thread | None = None

    def ask(self, collection_id: int) -> None:
        """Have a collection refreshed soon; asking again before that changes nothing."""
        with self._changed:
            if self._closing or collection_id in self._waiting:
                return
            self._waiting.append(collection_id)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="segments", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def wait(self) -> None:
        """Wait until nothing is left to do."""
        with self._changed:
            self._changed.wait_for(lambda: self._closing or not (self._waiting or self._busy))

    def close(self) -> None:
        """Cancel what is being built and end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._closing or self._waiting)
                if self._closing:
                    return
                collection_id = self._waiting.pop(0)
                self._busy = True
            # A segment only makes searches faster; the next ingest or `carrel doctor` tells.
            with contextlib.suppress(Cancelled, CarrelError, sqlite3.Error):
                self._refresh(collection_id, None, self._pause)

    def _pause(self) -> None:
        if self._closing:
            raise Cancelled
        time.sleep(_REST_S)
