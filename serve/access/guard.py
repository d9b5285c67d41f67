"""The outermost layer: an id, safe headers and a log line for every request, and the last door."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from core.errors import CarrelError
from core.settings import Settings
from serve.access.network import HostRule, OriginRule
from serve.errors import Refused, error_body, new_id, plain_body, status_of
from serve.telemetry.logs import log
from serve.telemetry.metrics import Metrics

UPLOADS = "/api/v1/documents"


def bound_body(settings: Settings, scope: Scope, length: str | None, receive: Receive) -> Receive:
    """Return a `receive` that raises Refused past the limits; a declared length does so at once."""
    upload = scope["method"] == "POST" and scope["path"] == UPLOADS
    most = settings.serve.upload_bytes if upload else settings.serve.body_bytes
    declared = int(length) if length is not None and length.isdecimal() else 0
    if declared > most:
        raise _too_large(most)
    until = time.monotonic() + settings.serve.body_seconds
    received, complete = 0, False

    async def bounded() -> Message:
        nonlocal received, complete
        if complete:
            return await receive()  # waits for the client to leave
        try:
            async with asyncio.timeout(max(0.0, until - time.monotonic())):
                message = await receive()
        except TimeoutError:
            rule = f"a body arrives within {settings.serve.body_seconds:g} s"
            raise Refused(408, "too_slow", rule, hint="send it again") from None
        received += len(message.get("body", b""))
        complete = message["type"] != "http.request" or not message.get("more_body", False)
        if received > most:
            raise _too_large(most)
        return message

    return bounded


def _too_large(most: int) -> Refused:
    hint = "send less; the operator allows more with CARREL_SERVE__BODY_BYTES or _UPLOAD_BYTES"
    return Refused(413, "too_large", f"a body here has at most {most} bytes", hint=hint)


POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
UNREAD = (408, 413)  # the rest of the body is not waited for
MISFRAMED = "bad_framing"  # where the request ends is not certain: nothing more is read
UNMATCHED = "unmatched"


class Guard:
    """Check every request before any route, and let no exception out."""

    def __init__(
        self,
        app: ASGIApp,
        hosts: HostRule,
        origins: OriginRule,
        settings: Callable[[], Settings],
        metrics: Metrics,
    ) -> None:
        self._app = app
        self._hosts = hosts
        self._origins = origins
        self._settings = settings
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        request_id = scope["carrel.id"] = new_id()
        seen = {"status": 0}

        async def safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen["status"] = message["status"]
                headers = MutableHeaders(scope=message)
                _add_headers(headers, request_id, message["status"])
                for name, value in scope.get("carrel.limits", {}).items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self._guard(scope, receive, safely)
        except CarrelError as error:
            status, code, headers = status_of(error)
            if code == MISFRAMED:
                headers = {**headers, "Connection": "close"}
            await _respond(safely, status, error_body(error, request_id), headers)
        except Exception:
            log.exception("unexpected", extra={"id": request_id})
            if not seen["status"]:
                await _respond(safely, 500, unexpected_body(request_id), {})
        finally:
            self._note(scope, seen["status"], time.perf_counter() - started)

    async def _guard(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        _check_framing(scope, headers)
        self._hosts.check(headers.get("host", ""))
        if host := target_host((scope.get("raw_path") or b"/").decode("latin-1")):
            self._hosts.check(host)
        self._origins.check(scope["method"], headers)
        length = headers.get("content-length")
        bounded = bound_body(self._settings(), scope, length, receive)
        await self._app(scope, bounded, send)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", UNMATCHED)  # never the path with its ids
        self._metrics.request(scope["method"], route, status, seconds)
        auth = scope.get("carrel.caller")
        log.info(
            "request",
            extra={
                "id": scope["carrel.id"],
                "method": scope["method"],
                "route": route,
                "status": status,
                "ms": round(seconds * 1000, 1),
                "tenant": auth.tenant if auth else "",
                "user": auth.user if auth else "",
            },
        )


def unexpected_body(request_id: str) -> dict[str, Any]:
    """Return the error body for a mistake in this program, without its details."""
    hint = "the operator finds what happened by this id"
    return plain_body(request_id, "internal", "something unexpected happened", hint=hint)


def target_host(target: str) -> str:
    """Return the host that a request's target names itself; "" for one that is a path alone."""
    if target.startswith("/") or target == "*":
        return ""
    scheme, between, rest = target.partition("://")
    return (rest if between else scheme).partition("/")[0] or target


def _check_framing(scope: Scope, headers: Headers) -> None:
    """Refuse a request that two readers may end at different places (RFC 9112 section 6.3)."""
    if "transfer-encoding" not in headers:
        return
    if "content-length" in headers or scope["http_version"] == "1.0":
        raise Refused(
            400,
            MISFRAMED,
            "a body has a Content-Length or, with HTTP/1.1, a Transfer-Encoding",
            hint="send one of them",
        )


def _add_headers(headers: MutableHeaders, request_id: str, status: int) -> None:
    for name, value in HEADERS.items():
        headers.setdefault(name, value)
    headers.setdefault("Cache-Control", "no-store")
    headers["X-Request-Id"] = request_id
    if status in UNREAD:
        headers["Connection"] = "close"


async def _respond(send: Send, status: int, body: dict[str, Any], headers: dict[str, str]) -> None:
    given = {"Content-Type": "application/json", **headers}
    raw = [(name.lower().encode(), value.encode()) for name, value in given.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})
