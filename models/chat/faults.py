"""Kinds of failure that only this package tells apart, and what HTTP statuses mean."""

from __future__ import annotations

from core.errors import ModelError
from models.chat.types import ModelOverflow, ModelReplyError, ModelTimeout, ModelUnavailable

SERVE = "start one with `carrel llm serve`, or set CARREL_LLM_URL"
LOOK = "see `carrel llm status` and the server's log"
OVERFLOWS = ("exceed_context_size", "context_length_exceeded", "maximum context length")
BROKEN_TEXT = "does not match the expected"  # llama-server: the model's text, not the server


class NoConnection(ModelUnavailable):
    """Say that no connection to the server came about, so that trying again does no harm."""


class ModelRefused(ModelUnavailable):
    """Say that a server answers, but not this caller: key, address or model are wrong."""

    retryable = False


class ServerBusy(ModelUnavailable):
    """Say that too many calls wait for the server already."""


class RunTimeout(ModelTimeout):
    """Say that the run's own time ended, which is no fault of the server."""


def no_server(url: str, why: str) -> NoConnection:
    """Return the error for an address where nothing answers."""
    return NoConnection(f"no model server answers at {url}", value=why.rstrip("."), hint=SERVE)


def status_error(status: int, said: str, url: str) -> ModelError:
    """Return the error for an HTTP status that is no success."""
    what = f"HTTP {status}: {said}" if said.strip() else f"HTTP {status}"
    if status in (401, 403):
        rule = f"the model server at {url} refuses the key"
        return ModelRefused(rule, value=what, hint="set CARREL_LLM__KEY to the server's key")
    if status in (404, 405) or status < 400:
        rule = f"there is no chat model at {url}"
        hint = "CARREL_LLM_URL usually ends in /v1; CARREL_LLM__MODEL must be a model it serves"
        return ModelRefused(rule, value=what, hint=hint)
    if BROKEN_TEXT in said or (status < 500 and status not in (408, 425, 429)):
        return reply_error(what)
    rule = f"the model server at {url} is not ready or has failed"
    return ModelUnavailable(rule, value=what, hint=LOOK)


def reply_error(said: str) -> ModelError:
    """Return the error for what a server says about a request or about its own reply."""
    if any(mark in said for mark in OVERFLOWS):
        hint = "set CARREL_LLM__CONTEXT to the tokens of one slot of the server"
        return ModelOverflow("the prompt does not fit the model's context", value=said, hint=hint)
    return ModelReplyError("the model server rejects the request or its own reply", value=said)
