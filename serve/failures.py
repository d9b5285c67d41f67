"""What went wrong as a status and a line for the caller, for every wire format to dress."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from core.errors import CarrelError, OperatorError, disk_error, shorten
from serve.errors import Busy, status_of
from serve.protocols.dialogue import storable
from serve.telemetry.logs import log
from stores.sqlite.database import damaged


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
    """Return what the caller may know of an error; the operator finds the rest in the log."""
    if isinstance(error, RequestValidationError):
        return _invalid(error)
    if isinstance(error, HTTPException) and isinstance(error.__cause__, CarrelError):
        error = error.__cause__  # FastAPI wraps what is raised while it reads the body
    if isinstance(error, HTTPException):
        return Failure(error.status_code, plain(error.detail), headers=error.headers or {})
    if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.ProgrammingError):
        error = damaged(Path(), error)
    if isinstance(error, OSError) and (found := disk_error(error)):
        error = found
    if isinstance(error, CarrelError):
        status, _, headers = status_of(error)
        message = f"{error.rule}." if isinstance(error, OperatorError) else str(error)
        return Failure(status, message, headers=headers, error=error)
    return Failure(500, "Internal Server Error", error=error)


def noted(failure: Failure, request: Request) -> Failure:
    """Write to the log what the operator must know of a failure, under the request's id."""
    if failure.status >= 500 and not isinstance(failure.error, Busy):
        request_id = request.scope.get("carrel.id", "")
        log.error("unexpected", exc_info=failure.error, extra={"id": request_id})
    return failure


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
    return shorten(str(storable(str(text))))


def route_with(reply: Callable[[Failure], Response]) -> type[APIRoute]:
    """Return a kind of route whose errors, those of its dependencies too, `reply` reports."""

    class FailureRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handler = super().get_route_handler()

            async def handle(request: Request) -> Response:
                try:
                    return await handler(request)
                except Exception as error:
                    return reply(noted(failure_of(error), request))

            return handle

    return FailureRoute
