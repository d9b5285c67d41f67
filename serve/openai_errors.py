"""Errors as OpenAI clients read them."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse, Response

from serve.errors import Refused
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
    return JSONResponse(error_body(failure), status, dict(failure.headers))
