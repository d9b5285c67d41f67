"""Errors of a request, what each means over HTTP, and as a line for every wire format to dress."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from core.budget import TimeUpError
from core.errors import (
    AbsentError,
    CallerError,
    CarrelError,
    DiskFullError,
    DocumentError,
    InUseError,
    ModelError,
    OperatorError,
    PolicyError,
    StorageError,
    disk_error,
    shorten,
)
from serve.questions import storable
from serve.telemetry.logs import log
from stores.sqlite.database import damaged

Headers = dict[str, str]


class Busy(CarrelError):
    """Turn a request away because too many wait; `retry_after` is in seconds.

    `of_caller` says that the caller's own share is used up, not the server.
    """

    retryable = True

    def __init__(self, rule: str, *, retry_after: int, of_caller: bool = False) -> None:
        super().__init__(rule, hint=f"try again in {retry_after} s")
        self.retry_after = retry_after
        self.of_caller = of_caller


class LimitExceeded(Busy):
    """Turn a caller away who has used what they may; `headers` say how much that is."""

    def __init__(
        self, rule: str, headers: Headers, *, retry_after: int, of_tokens: bool = False
    ) -> None:
        super().__init__(rule, retry_after=retry_after, of_caller=True)
        self.headers = headers
        self.of_tokens = of_tokens


class NotAuthenticated(CallerError):
    """Ask for a key or a token; which part of one was wrong stays secret."""


class NotFound(AbsentError):
    """Say that something is not there, or not the caller's: the two look the same."""


class Refused(CallerError):
    """Refuse a request with a status of its own before any route has seen it."""

    def __init__(self, status: int, code: str, rule: str, *, value: object = None, hint: str = ""):  # noqa: ANN204
        super().__init__(rule, value=value, hint=hint)
        self.status = status
        self.code = code


KINDS: tuple[tuple[type[CarrelError], int, str], ...] = (
    (NotAuthenticated, 401, "not_authenticated"),
    (AbsentError, 404, "not_found"),
    (InUseError, 409, "in_use"),
    (PolicyError, 403, "forbidden"),
    (TimeUpError, 503, "time_up"),
    (CallerError, 400, "bad_request"),
    (DocumentError, 422, "bad_document"),
    (ModelError, 503, "model_unavailable"),
    (DiskFullError, 507, "disk_full"),
    (OperatorError, 503, "unavailable"),
)


def new_id() -> str:
    """Return an id under which a request is found in the log."""
    return uuid.uuid4().hex[:16]


def status_of(error: CarrelError) -> tuple[int, str, Headers]:
    """Return status, code and headers of an error."""
    if isinstance(error, Busy):
        again = {"Retry-After": str(error.retry_after)}
        if isinstance(error, LimitExceeded):
            again |= error.headers
        return (429, "too_many_requests", again) if error.of_caller else (503, "busy", again)
    if isinstance(error, Refused):
        return error.status, error.code, {}
    for kind, status, code in KINDS:
        if isinstance(error, kind):
            headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
            return status, code, headers
    return 500, "failed", {}


def error_body(error: CarrelError, error_id: str) -> dict[str, Any]:
    """Return the body of a response; what only the operator can change keeps its place secret."""
    _, code, _ = status_of(error)
    if isinstance(error, OperatorError):
        return plain_body(error_id, code, error.rule, hint="the operator finds it by this id")
    value = None if error.value is None else shorten(error.value)
    return plain_body(error_id, code, error.rule, value=value, hint=error.hint)


def plain_body(
    error_id: str, code: str, rule: str, *, value: str | None = None, hint: str = ""
) -> dict[str, Any]:
    """Return the one shape of all errors; `message` is the same as one line."""
    message = str(CarrelError(rule, value=value, hint=hint))
    error = {"id": error_id, "code": code, "rule": rule, "value": value, "hint": hint}
    return {"error": {**error, "message": message}}


@dataclass(frozen=True)
class Problem:
    """Name the fault of one field of a request; `where` is its path in the body."""

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
    """Return the part of an error that the caller may see; the rest is in the log."""
    if isinstance(error, RequestValidationError):
        return _invalid(error)
    if (found := explained(error)) is not None:
        status, _, headers = status_of(found)
        message = f"{found.rule}." if isinstance(found, OperatorError) else str(found)
        return Failure(status, message, headers=headers, error=found)
    if isinstance(error, HTTPException):
        return Failure(error.status_code, plain(error.detail), headers=error.headers or {})
    return Failure(500, "Internal Server Error", error=error)


def explained(error: Exception, data: Path = Path()) -> CarrelError | None:
    """Translate an error for the caller; None for a mistake in this program."""
    if isinstance(error, HTTPException) and isinstance(error.__cause__, CarrelError):
        return error.__cause__  # FastAPI wraps what is raised while it reads the body
    if isinstance(error, StorageError):
        return damaged(data, error)
    if isinstance(error, OSError):
        return disk_error(error)
    return error if isinstance(error, CarrelError) else None


def note_failure(failure: Failure, request: Request) -> Failure:
    """Log a failure for the operator, under the request's id."""
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
    path = field_path(first.where)
    message = f"{path}: {first.message}" if path else first.message
    return Failure(422, message, tuple(problems))


def field_path(where: tuple[str | int, ...]) -> str:
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
                    return reply(note_failure(failure_of(error), request))

            return handle

    return FailureRoute
