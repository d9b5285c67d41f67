"""What went wrong as a status and a line for the caller, for every wire format to dress."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from core.errors import CallerError, CarrelError, PolicyError, shorten
from serve.following import ClientGone

GONE = 499  # nobody reads it; logs name it as nginx does
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Problem:
    """Say what is wrong with one field of a request; `where` is its path in the body."""

    where: tuple[str | int, ...]
    message: str
    kind: str


@dataclass(frozen=True)
class Failure:
    """Hold the HTTP status, a line that may be shown to the caller, and what it is about.

    `error` is what was raised, for formats that know more of it.
    """

    status: int
    message: str
    problems: tuple[Problem, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    error: Exception | None = None


def failure_of(error: Exception) -> Failure:
    """Return what the caller may know of an error; the operator reads the rest in the log."""
    if isinstance(error, ClientGone):
        return Failure(GONE, "the client left")
    if isinstance(error, RequestValidationError):
        return _invalid(error)
    if isinstance(error, HTTPException) and isinstance(error.__cause__, CarrelError):
        return _refused(error.__cause__)  # FastAPI's, for any error while the body was read
    if isinstance(error, HTTPException):
        message = error.detail
        if isinstance(message, dict):
            message = message.get("message") or str(message)
        return Failure(error.status_code, str(message), headers=error.headers or {})
    if isinstance(error, CarrelError):
        return _refused(error)
    log.error("a request failed", exc_info=error)
    return Failure(500, "Internal Server Error")


def _refused(error: CarrelError) -> Failure:
    """Show a caller's own mistakes whole; of the operator's only that it is one."""
    # An error may know its status better than its class does, as one that asks to come back later.
    status = getattr(error, "status", None)
    headers = getattr(error, "headers", None) or {}
    if isinstance(status, int):
        return Failure(status, str(error), headers=headers, error=error)
    if isinstance(error, PolicyError):
        return Failure(403, str(error))
    if isinstance(error, CallerError):
        return Failure(400, str(error))
    log.error("a request failed: %s", error)
    if error.retryable:
        return Failure(503, "The server is busy. Try again.", headers=headers)
    return Failure(500, "The server cannot answer. Ask whoever runs it.")


def _invalid(error: RequestValidationError) -> Failure:
    """Name each bad field, without repeating its value, which may be huge or no valid text."""
    problems = []
    for item in error.errors():
        where = tuple(
            part if isinstance(part, int) else plain(part) for part in item.get("loc", ())
        )
        problems.append(Problem(where, plain(item.get("msg", "")), str(item.get("type", ""))))
    first = problems[0] if problems else Problem((), "invalid request", "invalid")
    path = dotted(first.where)
    message = f"{path}: {first.message}" if path else first.message
    return Failure(422, message, tuple(problems))


def dotted(where: tuple[str | int, ...]) -> str:
    """Return a field's path in the body, "" for the body itself."""
    parts = where[1:] if where[:1] == ("body",) else where
    return ".".join(str(part) for part in parts)


def plain(text: object) -> str:
    """Return text that can be sent as UTF-8, on one short line."""
    return shorten(str(text).encode("utf-8", "replace").decode("utf-8"))


def route_with(reply: Callable[[Failure], Response]) -> type[APIRoute]:
    """Return a kind of route whose errors, those of its dependencies too, are told by `reply`."""

    class Route(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handler = super().get_route_handler()

            async def handle(request: Request) -> Response:
                try:
                    return await handler(request)
                except Exception as error:
                    return reply(failure_of(error))

            return handle

    return Route
