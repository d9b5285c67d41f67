"""A chat server on this machine that misbehaves in every way a test asks for.

`with stub_llm("drip") as stub:` serves `BEHAVIOURS["drip"]` to every chat request; a list of texts
is streamed one text for each request. `stub.requests` holds the bodies of the chat requests,
`stub.closed()` waits until the client has closed the connection of the last one.
`MALFORMED` are replies that are no valid decision under any schema of objects.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

MODEL = "stub-model"
HANG_SECONDS = 30

MALFORMED: list[str] = [
    "",
    " \n\t ",
    "null",
    "true",
    "42",
    '"text"',
    "[]",
    "[{}]",
    "{",
    "}",
    "{}{}",
    '{"a"',
    '{"a":',
    '{"a": 1',
    '{"a": 1,}',
    "{'a': 1}",
    "{a: 1}",
    '{"a": NaN}',
    '{"a": Infinity}',
    '{"a": 01}',
    '{"a": "unterminated',
    '{"a": "bad \\x escape"}',
    '{"a": "\\ud800"}',
    '{"a": 1} and then some prose',
    'Sure! Here is the JSON: {"a": 1',
    "```json\n{\n```",
    "I cannot answer that.",
    "<answer>yes</answer>",
    "a: 1\nb: 2",
    "\ufeff{",
    "\x00\x01\x02",
    "{" * 2000,
    "[" * 20_000,
    '{"a":' * 5000,
    '{"a": "' + "x" * 20_000,
    "// comment\n{",
    '{"tool_call": {"name": "delete_all", "arguments": {}}}',
    '{"__proto__": {"admin": true}}',
    "9" * 5000,
]


class Connection:
    """Answer one request of a client."""

    def __init__(self, sock: socket.socket, path: str, body: dict[str, Any]) -> None:
        self.sock = sock
        self.path = path
        self.body = body

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def head(self, status: int = 200, kind: str = "text/event-stream", more: str = "") -> None:
        head = f"HTTP/1.1 {status} Stub\r\nContent-Type: {kind}\r\nConnection: close\r\n{more}\r\n"
        self.send(head.encode())

    def page(self, data: Any, status: int = 200) -> None:
        raw = data if isinstance(data, bytes) else json.dumps(data).encode()
        self.head(status, "application/json", f"Content-Length: {len(raw)}\r\n")
        self.send(raw)

    def event(self, data: Any) -> None:
        raw = data if isinstance(data, bytes) else json.dumps(data).encode()
        self.send(b"data: " + raw + b"\n\n")

    def delta(self, finish: str | None = None, **delta: Any) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        self.event({"id": "1", "object": "chat.completion.chunk", "choices": [choice]})

    def end(self, tokens: int = 1, finish: str = "stop") -> None:
        self.delta(finish)
        usage = {"prompt_tokens": 7, "completion_tokens": tokens, "total_tokens": 7 + tokens}
        self.event({"id": "1", "choices": [], "usage": usage})
        self.event(b"[DONE]")

    def say(self, text: str, finish: str = "stop") -> None:
        self.head()
        pieces = [text[at : at + 3] for at in range(0, len(text), 3)]
        for piece in pieces:
            self.delta(content=piece)
        self.end(len(pieces), finish)

    def hang(self) -> None:
        """Wait until the client has closed the connection."""
        self.sock.settimeout(HANG_SECONDS)
        with contextlib.suppress(OSError):
            self.sock.recv(1)

    def for_ever(self, data: bytes, pause: float = 0.0) -> None:
        end = time.monotonic() + HANG_SECONDS
        while time.monotonic() < end:
            self.send(data)
            time.sleep(pause)


def _chunk(**delta: Any) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode() + b"\n\n"


def _error(status: int, message: str, kind: str) -> Callable[[Connection], None]:
    error = {"error": {"code": status, "message": message, "type": kind}}
    return lambda it: it.page(error, status)


def _slow_first_token(it: Connection) -> None:
    it.head()
    it.delta(role="assistant")
    it.hang()


def _gap(it: Connection) -> None:
    it.head()
    it.delta(content="first")
    it.hang()


def _drip(it: Connection) -> None:
    it.head()
    it.for_ever(b":", 0.02)


def _comments(it: Connection) -> None:
    it.head()
    it.for_ever(b": ping\n\n", 0.02)


def _drip_head(it: Connection) -> None:
    it.send(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    it.for_ever(b"a", 0.02)


def _headers_only(it: Connection) -> None:
    it.head()
    it.hang()


def _gigabyte(it: Connection) -> None:
    it.head()
    it.send(b"data: ")
    for _ in range(1000):
        it.send(b"x" * 1_000_000)


def _infinite(it: Connection) -> None:
    it.head()
    number = 0
    while number < 1_000_000:
        number += 1
        it.send(_chunk(content=f" {number}"))


def _repeats(it: Connection) -> None:
    it.head()
    it.for_ever(_chunk(content=" again and again"))


def _empty_chunks(it: Connection) -> None:
    it.head()
    it.for_ever(_chunk(role="assistant") * 100)


def _dies(it: Connection) -> None:
    it.head()
    it.delta(content="half a ")


def _dies_in_chunk(it: Connection) -> None:
    it.head(more="Transfer-Encoding: chunked\r\n")
    it.send(b"ffff\r\n" + _chunk(content="half a "))


def _resets(it: Connection) -> None:
    it.head()
    it.delta(content="half a ")
    it.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")


def _raw_events(*events: bytes) -> Callable[[Connection], None]:
    def behave(it: Connection) -> None:
        it.head()
        for event in events:
            it.event(event)
        it.event(b"[DONE]")

    return behave


def _compressed(it: Connection) -> None:
    it.head(more="Content-Encoding: gzip\r\n")
    it.hang()


def _empty(it: Connection) -> None:
    it.head()
    it.end(0)


def _redirect(it: Connection) -> None:
    it.head(302, more="Location: http://127.0.0.1:1/v1\r\nContent-Length: 0\r\n")


BEHAVIOURS: dict[str, Callable[[Connection], None]] = {
    "good": lambda it: it.say("a good reply"),
    "silent": lambda it: it.hang(),
    "slow_first_token": _slow_first_token,
    "gap": _gap,
    "drip": _drip,
    "comments": _comments,
    "drip_head": _drip_head,
    "headers_only": _headers_only,
    "gigabyte_line": _gigabyte,
    "infinite": _infinite,
    "repeats": _repeats,
    "empty_chunks": _empty_chunks,
    "dies": _dies,
    "dies_in_chunk": _dies_in_chunk,
    "resets": _resets,
    "hangs_up": lambda it: None,
    "empty": _empty,
    "no_events": lambda it: it.head(),
    "length": lambda it: it.say("cut here", "length"),
    "compressed": _compressed,
    "redirect": _redirect,
    "malformed_sse": lambda it: (it.head(), it.send(b"\xff\xfe garbage\n\n\x00"))[0],
    "malformed_json": _raw_events(b'{"choices": [{'),
    "malformed_http": lambda it: it.send(b"220 smtp.example ready\r\n\r\n"),
    "choices_null": _raw_events(b'{"choices": null}', b'{"choices": [null]}'),
    "choices_text": _raw_events(b'{"choices": "text"}'),
    "delta_text": _raw_events(b'{"choices": [{"index": 0, "delta": "text"}]}'),
    "content_number": _raw_events(b'{"choices": [{"index": 0, "delta": {"content": 5}}]}'),
    "no_object": _raw_events(b"[]", b"5", b"null", b'"text"'),
    "deep_json": _raw_events(b"[" * 100_000),
    "usage_text": _raw_events(b'{"choices": [], "usage": "much"}'),
    "error_event": _raw_events(b'{"error": {"code": 500, "message": "lost its thread"}}'),
    "bad_text": _error(500, "output that does not match the expected peg-native format", "s"),
    "bad_request": _error(400, "unknown parameter", "invalid_request_error"),
    "wrong_key": _error(401, "Invalid API Key", "authentication_error"),
    "not_found": _error(404, "File Not Found", "not_found_error"),
    "broken": _error(500, "it broke", "server_error"),
    "loading": _error(503, "Loading model", "unavailable_error"),
    "busy": _error(429, "too many requests", "rate_limit"),
    "overflow": _error(400, "request exceeds the context", "exceed_context_size_error"),
}


class StubLlm:
    """Serve one behaviour, or one text for each request, until stopped; `key` is required."""

    def __init__(
        self, behaviour: str | Callable[[Connection], None] | Sequence[str], pages: Any = None
    ) -> None:
        self.requests: list[dict[str, Any]] = []
        self.pages: dict[str, Any] = {"/v1/models": {"data": [{"id": MODEL}]}, **(pages or {})}
        self.fetched: list[str] = []
        self._texts = [] if isinstance(behaviour, str) or callable(behaviour) else list(behaviour)
        self._behave = BEHAVIOURS.get(behaviour, None) if isinstance(behaviour, str) else behaviour
        self._closed = threading.Semaphore(0)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        threading.Thread(target=self._accept, daemon=True).start()

    def closed(self, seconds: float = 5) -> bool:
        """Wait for the end of one chat request's connection."""
        return self._closed.acquire(timeout=seconds)

    def stop(self) -> None:
        """Close the port."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        chat = False
        with sock, contextlib.suppress(OSError, ValueError):
            path, body = read_request(sock)
            it = Connection(sock, path, body)
            chat = path == "/v1/chat/completions"
            if not chat:
                self.fetched.append(path)
                page = self.pages.get(path, BEHAVIOURS["not_found"])
                page(it) if callable(page) else it.page(page)
                return
            self.requests.append(body)
            if self._texts:
                it.say(self._texts.pop(0))
            elif callable(self._behave):
                self._behave(it)
        if chat:
            self._closed.release()


def read_request(sock: socket.socket) -> tuple[str, dict[str, Any]]:
    """Return the path and the JSON body of a whole request."""
    raw = b""
    while b"\r\n\r\n" not in raw:
        received = sock.recv(65536)
        if not received:
            raise ValueError("no request")
        raw += received
    head, _, body = raw.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    sizes = [line.split(":")[1] for line in lines if line.lower().startswith("content-length:")]
    while len(body) < int(sizes[0] if sizes else 0):
        body += sock.recv(65536)
    return lines[0].split()[1], json.loads(body) if body else {}


@contextlib.contextmanager
def stub_llm(
    behaviour: str | Callable[[Connection], None] | Sequence[str] = "good", pages: Any = None
) -> Iterator[StubLlm]:
    """Run a stub; `pages` are JSON answers, or behaviours, by path other than that of chats."""
    stub = StubLlm(behaviour, pages)
    try:
        yield stub
    finally:
        stub.stop()
