"""Errors of a request, and what each error of the tree means over HTTP."""

from __future__ import annotations

import uuid
from typing import Any

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
    shorten,
)
from core.time_limit import TimeUpError

Headers = dict[str, str]


class Busy(CarrelError):
    """Turn a request away because too many wait; `retry_after` is in seconds.

    `of_caller` says that the caller's own share is used up, not the server.
    """

    retryable = True

    def __init__(self, rule: str, *, retry_after: int, of_caller: bool = False) -> None:
        """Say which limit was met."""
        super().__init__(rule, hint=f"try again in {retry_after} s")
        self.retry_after = retry_after
        self.of_caller = of_caller


class LimitExceeded(Busy):
    """Turn a caller away who has used what they may; `headers` say how much that is."""

    def __init__(
        self, rule: str, headers: Headers, *, retry_after: int, of_tokens: bool = False
    ) -> None:
        """Say which limit was met, one of requests or one of tokens."""
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
        """Keep the status and the code beside the rule."""
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
