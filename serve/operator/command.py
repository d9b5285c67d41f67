"""One command of the command line while the server runs it: what it was given, writes and reads."""

from __future__ import annotations

import threading
from collections import deque
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from serve.operator.frames import Channel

StreamName = Literal["out", "err"]
CHARS = 16_384  # of a piece of text, so that no frame is long; chosen, not measured


def _text(value: Any) -> str:  # noqa: ANN401 - what a frame holds
    """Take a text, also one with halves of characters, as names of files may have."""
    if not isinstance(value, str):
        raise ValueError("must be a text")
    return value


Size = Annotated[int, Field(ge=1, le=100_000)]
Text = Annotated[Any, AfterValidator(_text)]


class Terminal(BaseModel):
    """Describe a stream of the client: whether it is a terminal, its encoding and size."""

    model_config = ConfigDict(extra="forbid")

    tty: bool = False
    encoding: str = "utf-8"
    width: Size = 80
    height: Size = 25


class Request(BaseModel):
    """Hold the command that a client asks for, as it was typed, and where."""

    model_config = ConfigDict(extra="forbid")

    arguments: list[Text]
    folder: Text
    variables: dict[Text, Text] = {}
    out: Terminal = Terminal()
    err: Terminal = Terminal()
    asks: bool = False  # whether its input is a terminal


class Command:
    """Carry a command's output to its client and the client's words to it.

    `cancelled` is set when the client interrupts it or is gone, or the server stops.
    """

    def __init__(self, channel: Channel, request: Request) -> None:
        """Belong to the thread that makes it, which runs the command."""
        self.request = request
        self.cancelled = threading.Event()
        self.stopping = False
        self._channel = channel
        self._thread = threading.get_ident()
        self._changed = threading.Condition()
        self._lines: deque[str] = deque()  # that the client typed
        self._ended = False
        self._interrupted = False

    def write(self, stream: StreamName, text: str) -> None:
        """Show text to the client; unread text is dropped."""
        for start in range(0, len(text), CHARS):
            try:
                self._channel.send(**{stream: text[start : start + CHARS]})
            except OSError:
                self.leave()
                break
        self.check()

    def check(self) -> None:
        """Raise KeyboardInterrupt, once, in the command's own thread after an interruption."""
        if threading.get_ident() != self._thread:
            return
        with self._changed:
            interrupted, self._interrupted = self._interrupted, False
        if interrupted:
            raise KeyboardInterrupt

    def again(self) -> threading.Event:
        """Return `cancelled`, unset when the client that interrupted something goes on."""
        if not self.stopping and not self._ended:
            self.cancelled.clear()
        return self.cancelled

    def read_line(self, prompt: str = "") -> str:
        """Return the client's next line, "" at its end; an interruption raises."""
        try:
            self._channel.send(read=prompt)
        except OSError:
            self.leave()
        with self._changed:
            self._changed.wait_for(lambda: self._lines or self._ended or self._interrupted)
            if not self._interrupted:
                return self._lines.popleft() if self._lines else ""
        self.check()
        return ""

    def listen(self) -> None:
        """Take the client's frames until it leaves; for a thread of its own."""
        try:
            while (frame := self._channel.receive()) is not None:
                if isinstance(line := frame.get("line"), str):
                    with self._changed:
                        self._lines.append(line)
                        self._changed.notify_all()
                elif frame.get("interrupt"):
                    self.interrupt()
        except Exception:  # whatever it was, the talk is over
            return
        finally:
            self.leave()

    def interrupt(self) -> None:
        """Interrupt the running command, as Ctrl-C would."""
        with self._changed:
            self._interrupted = True
            self.cancelled.set()
            self._changed.notify_all()

    def leave(self) -> None:
        """End the command, whose client is gone."""
        with self._changed:
            if self._ended:
                return
            self._ended = True
        self.interrupt()

    def stop(self) -> None:
        """End the command, since the server ends."""
        self.stopping = True
        self.interrupt()
