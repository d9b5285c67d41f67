"""One small JSON page of a server, read with the standard library within a time limit."""

from __future__ import annotations

import ipaddress
import json
import time
import urllib.request
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from core.errors import CarrelError
from models.chat.running import run_in_thread
from models.chat.types import ModelRefused, ModelTimeout, no_server


def is_loopback(host: str) -> bool:
    """Tell whether a host name or address is this machine."""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost" or host.endswith(".localhost")


def proxy_of(url: str) -> str | None:
    """Return the proxy that the environment names for a server, never for this machine itself."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_loopback(host) or urllib.request.proxy_bypass(host):
        return None
    return urllib.request.getproxies().get(parts.scheme)


LARGEST = 4_000_000  # bytes


@dataclass(frozen=True)
class Page:
    """Hold the status of a reply and its JSON, None when it was not JSON."""

    status: int
    data: Any

    @property
    def fields(self) -> dict[str, Any]:
        """Return the page's JSON object; empty after an error or when it is no object."""
        return self.data if self.status == 200 and isinstance(self.data, dict) else {}

    @property
    def error_text(self) -> str:
        """Return the message of an error page."""
        inner = self.data.get("error", self.data) if isinstance(self.data, dict) else self.data
        message = inner.get("message", inner) if isinstance(inner, dict) else inner
        return str(message or "")[:500]


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:  # noqa: ANN401
        return None


class ServerClient:
    """Read pages of the server at `url`, all within the same deadline."""

    def __init__(self, url: str, key: str, seconds: float) -> None:
        self.url = url.rstrip("/")
        self.root = self.url.removesuffix("/v1")
        self._key = key
        self.restart(seconds)

    def restart(self, seconds: float) -> None:
        """Restart the deadline."""
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds

    def read(self, address: str, body: dict[str, Any] | None = None) -> Page:
        """Return one page; `body` is posted.

        Raises NoConnection where nothing listens, ModelTimeout where no reply comes in time,
        ModelRefused where the answer is not HTTP.
        """
        self._check()
        left = self._deadline - time.monotonic()
        try:
            # in a thread: a name that is looked up or a server that drips knows no deadline
            (page,) = run_in_thread(lambda: [_read(address, self._key, body, left)], self._check)
        except CarrelError:
            raise
        except Exception as error:
            cause = getattr(error, "reason", error)
            if isinstance(cause, TimeoutError):
                self.late()
            if isinstance(cause, OSError) and not isinstance(cause, ConnectionResetError):
                raise no_server(self.url, str(cause)) from None
            rule = f"what answers at {self.url} does not speak HTTP as agreed"
            value = str(cause) or repr(cause)
            raise ModelRefused(rule, value=value, hint="check CARREL_LLM_URL") from None
        return page

    def _check(self) -> None:
        if time.monotonic() >= self._deadline:
            self.late()

    def late(self) -> NoReturn:
        """Raise ModelTimeout."""
        rule = f"the model server at {self.url} does not answer"
        raise ModelTimeout(rule, value=f"{self._seconds:g} s", hint="see `carrel llm status`")


def _read(address: str, key: str, body: dict[str, Any] | None, seconds: float) -> Page:
    headers = {"Accept-Encoding": "identity", "Connection": "close"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    if body is not None:
        headers["Content-Type"] = "application/json"
    data = None if body is None else json.dumps(body).encode()
    loopback = is_loopback(urlsplit(address).hostname or "")
    opener = build_opener(ProxyHandler({}) if loopback else ProxyHandler(), _NoRedirect())
    try:
        with opener.open(Request(address, data, headers), timeout=seconds) as reply:
            return Page(reply.status, _json(reply.read(LARGEST)))
    except HTTPError as error:
        with error:
            return Page(error.code, _json(error.read(LARGEST)))


def _json(raw: bytes) -> Any:  # noqa: ANN401
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None
