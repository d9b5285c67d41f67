"""Errors as OpenAI clients read them."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse, Response

from serve.errors import LimitExceeded, Refused
from serve.failures import Failure, dotted

CODES = {401: "invalid_api_key", 404: "not_found", 429: "rate_limit_exceeded", 503: "overloaded"}


class OpenAIError(Refused):
    """Refuse a request, naming the field and the code that OpenAI's server would give."""

    def __init__(
        self, status: int, message: str, param: str | None = None, code: str | None = None
    ) -> None:
        """Keep the parts of the error body."""
        super().__init__(status, code or "", message)
        self.param = param


def error_body(failure: Failure) -> dict[str, Any]:
    """Return the body of an error, for a response or for the last event of a stream."""
    error = failure.error
    param = error.param if isinstance(error, OpenAIError) else None
    code = (error.code or None) if isinstance(error, Refused) else CODES.get(failure.status)
    if failure.problems:
        param = dotted(failure.problems[0].where) or None
    return {
        "error": {
            "message": failure.message,
            "type": _type(failure.status),
            "param": param,
            "code": code,
        }
    }


def _type(status: int) -> str:
    if status == 429:
        return "rate_limit_error"
    return "server_error" if status >= 500 else "invalid_request_error"


def failed(failure: Failure) -> Response:
    """Answer as OpenAI does, which calls invalid fields a bad request (400)."""
    status = 400 if failure.problems else failure.status
    return JSONResponse(error_body(failure), status, dict(failure.headers) | _limits(failure))


def _limits(failure: Failure) -> dict[str, str]:
    """Return the headers in which OpenAI's clients read how much is left."""
    error = failure.error
    if not isinstance(error, LimitExceeded):
        return {}
    unit = "tokens" if error.of_tokens else "requests"
    given = {name.rpartition("-")[2].lower(): value for name, value in error.headers.items()}
    return {
        f"x-ratelimit-limit-{unit}": given["limit"],
        f"x-ratelimit-remaining-{unit}": given["remaining"],
        f"x-ratelimit-reset-{unit}": f"{given['reset']}s",
    }
