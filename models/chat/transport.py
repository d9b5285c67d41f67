"""An HTTP client whose every wait obeys the running call.

Ordinary timeouts start again with each byte that arrives. Here each wait is cut into slices, and
between two slices the running call is asked whether it may go on, so its deadlines hold whatever a
server does: silence, drips, comments, lines without end. No connection is used twice.
"""

from __future__ import annotations

import os
import queue
import socket
import ssl
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from selectors import EVENT_WRITE, DefaultSelector
from typing import Any, NoReturn

import httpcore2
import httpx2

from models.chat.running import POLL_SECONDS, RunningCall, running_call
from models.chat.server_page import proxy_of
from models.chat.types import ModelReplyError


class GuardedStream(httpcore2.NetworkStream):
    """Read and write a socket in slices of time."""

    def __init__(self, sock: socket.socket, call: RunningCall) -> None:
        self._sock = sock
        self._call = call
        call.connections.append(sock)
        sock.settimeout(POLL_SECONDS)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return what has arrived; no bytes at the end of the connection."""
        while True:
            self._call.check()
            try:
                data = self._sock.recv(max_bytes)
            except TimeoutError:
                continue
            except OSError as error:
                self._call.lost = True
                raise httpcore2.ReadError(str(error)) from error
            self._call.lost = not data
            self._call.count(len(data))
            return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send all bytes."""
        view = memoryview(buffer)
        while view:
            self._call.check()
            try:
                view = view[self._sock.send(view) :]
            except TimeoutError:
                continue
            except OSError as error:
                self._call.lost = True
                raise httpcore2.WriteError(str(error)) from error

    def close(self) -> None:
        """Close the socket."""
        with suppress(OSError):
            self._sock.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        """Return an encrypted stream over this one."""
        end = time.monotonic() + self._call.connect_seconds
        try:
            sock = ssl_context.wrap_socket(
                self._sock, server_hostname=server_hostname, do_handshake_on_connect=False
            )
            stream = GuardedStream(sock, self._call)
            while not _shaken(sock):
                _check(self._call, end)
            return stream
        except OSError as error:
            raise httpcore2.ConnectError(str(error)) from error

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401
        """Return the TLS object or the socket."""
        if info == "ssl_object" and isinstance(self._sock, ssl.SSLSocket):
            return self._sock._sslobj  # type: ignore[attr-defined]
        return self._sock if info == "socket" else None


class GuardedBackend(httpcore2.NetworkBackend):
    """Connect within the time that the running call has for it."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        """Try the addresses of a host one after the other."""
        call = running_call()
        if call is None:
            raise RuntimeError("a guarded connection belongs to a running call")
        end = time.monotonic() + call.connect_seconds
        failure: OSError = OSError("no address")
        for family, kind, protocol, _, address in _addresses(host, port, call, end):
            sock = socket.socket(family, kind, protocol)
            try:
                _connect(sock, address, call, end)
            except OSError as error:
                sock.close()
                failure = error
            except BaseException:
                sock.close()
                raise
            else:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                call.connected = True
                return GuardedStream(sock, call)
        raise httpcore2.ConnectError(str(failure)) from failure


class GuardedTransport(httpx2.HTTPTransport):
    """Send requests over guarded connections; refuse compressed replies, which could explode."""

    def __init__(self, url: str) -> None:
        encrypted = url.startswith("https")
        super().__init__(verify=encrypted, trust_env=False)
        limits: dict[str, Any] = {
            "network_backend": GuardedBackend(),
            "max_keepalive_connections": 0,
            "ssl_context": httpx2.create_ssl_context() if encrypted else None,
        }
        proxy = proxy_of(url)
        if proxy:
            self._pool = httpcore2.HTTPProxy(proxy, **limits)
        else:
            self._pool = httpcore2.ConnectionPool(**limits)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request."""
        request.headers["Accept-Encoding"] = "identity"
        response = super().handle_request(request)
        encoding = response.headers.get("Content-Encoding", "identity")
        if encoding != "identity":
            response.close()
            rule = "the model server sent a compressed reply that was not asked for"
            _fail(ModelReplyError(rule, value=encoding))
        return response


def guarded_client(url: str) -> httpx2.Client:
    """Return a client for one server; it follows no redirects, which could lead elsewhere."""
    return httpx2.Client(
        transport=GuardedTransport(url), trust_env=False, timeout=None, follow_redirects=False
    )


def _fail(error: ModelReplyError) -> NoReturn:
    call = running_call()
    if call is not None:
        call.error = call.error or error
    raise error


def _check(call: RunningCall, connect_by: float) -> None:
    call.check()
    if time.monotonic() >= connect_by:
        call.late_to_connect()


def _shaken(sock: ssl.SSLSocket) -> bool:
    try:
        sock.do_handshake()
    except TimeoutError:
        return False
    return True


def _connect(sock: socket.socket, address: Any, call: RunningCall, end: float) -> None:  # noqa: ANN401
    sock.setblocking(False)
    with DefaultSelector() as selector:
        selector.register(sock, EVENT_WRITE)
        with suppress(BlockingIOError):
            sock.connect(address)
        while not selector.select(POLL_SECONDS):
            _check(call, end)
    code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code:
        raise OSError(code, os.strerror(code))


def _addresses(host: str, port: int, call: RunningCall, end: float) -> list[Any]:
    """Look a name up in a thread of its own: the system's resolver knows no deadline."""
    found: queue.SimpleQueue[list[Any] | OSError] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            found.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except OSError as error:
            found.put(error)

    threading.Thread(target=look_up, daemon=True).start()
    while True:
        try:
            answer = found.get(timeout=POLL_SECONDS)
        except queue.Empty:
            _check(call, end)
            continue
        if isinstance(answer, OSError):
            raise httpcore2.ConnectError(str(answer)) from answer
        return answer
