"""One call of the chat model while it runs: its deadlines, its caller's wish to stop, its sockets.

The thread that makes a call finds it here, however deep it is inside a library. What may be silent
runs in a thread of its own, and whoever waits for it looks at the call every `POLL_SECONDS`.
"""

from __future__ import annotations

import math
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from core.budget import Ledger
from core.errors import ModelError
from core.settings import Settings, variable_of
from models.chat.types import ModelCancelled, ModelReplyError, ModelTimeout, RunTimeout

# Both chosen, not measured: far above any reply, and soon enough for a person who gives up.
REPLY_BYTES = 8_000_000  # of one reply that are read at most
POLL_SECONDS = 0.1
MOST_WAITING = 256  # pieces of a reply that nobody has taken yet; chosen, not measured

T = TypeVar("T")


@dataclass
class RunningCall:
    """Say when a call must end; all times are `time.monotonic()` seconds.

    `error` keeps the reason for which the call was ended from here, since HTTP clients wrap what
    is raised inside them. `connect_by` counts while a connection is being made.
    """

    settings: Settings
    cancelled: Callable[[], bool]
    deadline: float
    of_run: bool
    next_by: float
    bytes_left: int
    first: bool = True
    connect_by: float = math.inf
    connected: bool = False
    over: bool = False
    error: ModelError | None = None
    connections: list[socket.socket] = field(default_factory=list)

    @classmethod
    def within(cls, ledger: Ledger, settings: Settings) -> RunningCall:
        """Start the clocks of one call."""
        now = time.monotonic()
        own = now + settings.llm.call_seconds
        return cls(
            settings,
            ledger.cancelled,
            min(own, ledger.deadline),
            ledger.deadline < own,
            now + settings.llm.first_token_seconds,
            REPLY_BYTES,
        )

    def check(self) -> None:
        """Raise ModelCancelled or ModelTimeout when the call has to end."""
        if self.cancelled():
            self.fail(ModelCancelled("the caller gave up while the model was writing"))
        now = time.monotonic()
        if now >= self.deadline and self.of_run:
            hint = "allow more with CARREL_LLM__ANSWER_BY_SECONDS and CARREL_BUDGET__SECONDS"
            self.fail(RunTimeout("the run's own time ended during a call of the model", hint=hint))
        if now >= self.deadline:
            self._late("a call", "llm.call_seconds")
        if now >= self.connect_by:
            self._late("a connection", "llm.connect_seconds")
        if now >= self.next_by:
            what = "its first token" if self.first else "its next token"
            self._late(what, "llm.first_token_seconds" if self.first else "llm.gap_seconds")

    def token(self) -> None:
        """Restart the clock that waits for the next token."""
        self.first = False
        self.next_by = time.monotonic() + self.settings.llm.gap_seconds

    def count(self, received: int) -> None:
        """Count received bytes; raise ModelReplyError when they are too many."""
        self.bytes_left -= received
        if self.bytes_left < 0:
            limit = REPLY_BYTES
            rule = "the model server sent more bytes than one reply may have"
            hint = "ask for a shorter answer, or a server that speaks the protocol"
            self.fail(ModelReplyError(rule, value=limit, hint=hint))

    def fail(self, error: ModelError) -> None:
        """End the call with this error."""
        self.error = self.error or error
        raise self.error

    def hold(self, connection: socket.socket) -> None:
        """Take a connection that has been made; one that comes too late is closed."""
        self.connect_by, self.connected = math.inf, True
        self.connections.append(connection)
        if self.over:
            self.hang_up()

    def hang_up(self) -> None:
        """End the connections: the server stops writing, and the thread that reads them ends."""
        self.over = True
        while self.connections:
            with suppress(OSError):
                self.connections.pop().shutdown(socket.SHUT_RDWR)

    def _late(self, what: str, setting: str) -> None:
        seconds = float(self.settings.value(setting))
        rule = f"the model took longer for {what} than {setting} allows"
        hint = f"a smaller model or a GPU answers faster; {variable_of(setting)} allows more"
        self.fail(ModelTimeout(rule, value=f"{seconds:g} s", hint=hint))


_running: ContextVar[RunningCall | None] = ContextVar("running_call", default=None)


def running_call() -> RunningCall | None:
    """Return the call that this thread is making."""
    return _running.get()


@contextmanager
def open_call(call: RunningCall) -> Iterator[RunningCall]:
    """Make this the running call inside the block, and always close its connections at the end."""
    token = _running.set(call)
    try:
        yield call
    finally:
        _running.reset(token)
        call.hang_up()


class _Ended(NamedTuple):
    error: Exception | None


def run_in_thread(
    make: Callable[[], Iterable[T]], check: Callable[[], None] | None = None
) -> Iterator[T]:
    """Yield what `make` gives, in a thread, so that a silent library or server can be left.

    While nothing comes, `check` or that of the running call raises when there is no more waiting.
    """
    call = running_call()
    check = check or (call.check if call is not None else None)
    pieces: queue.Queue[T | _Ended] = queue.Queue(MOST_WAITING)
    left = threading.Event()

    def write(piece: T | _Ended) -> None:
        while not left.is_set():
            with suppress(queue.Full):
                pieces.put(piece, timeout=POLL_SECONDS)
                return

    def read() -> None:
        _running.set(call)
        try:
            for piece in make():
                if left.is_set():
                    return
                write(piece)
            write(_Ended(None))
        except Exception as error:  # of a library; it goes on in the caller's thread
            write(_Ended(error))

    threading.Thread(target=read, daemon=True).start()
    try:
        while True:
            try:
                piece = pieces.get(timeout=POLL_SECONDS)
            except queue.Empty:
                if check is not None:
                    check()
                continue
            if not isinstance(piece, _Ended):
                yield piece
            elif piece.error is None:
                return
            else:
                raise piece.error
    finally:
        left.set()
