"""What an HTTP client raises, said as an error of the chat model."""

from __future__ import annotations

import httpx2
import openai

from core.errors import ModelError
from models.chat.faults import LOOK, no_server, reply_error, status_error
from models.chat.running import RunningCall
from models.chat.types import ModelReplyError, ModelUnavailable


def server_error(error: Exception, url: str, call: RunningCall | None) -> ModelError:
    """Return the error to raise for what a client of `url` has raised."""
    if call is not None and call.error is not None:
        return call.error
    if isinstance(error, ModelError):
        return error
    if isinstance(error, openai.APIStatusError):
        return status_error(error.status_code, _said(error), url)
    if isinstance(error, openai.APIConnectionError | httpx2.TransportError):
        return _connection_error(error, url, call)
    if isinstance(error, openai.APIError):  # an error that came within the stream
        return reply_error(_said(error))
    rule = "the reply of the model server is not what an OpenAI-compatible server sends"
    return ModelReplyError(rule, value=str(error) or repr(error))


def _connection_error(error: Exception, url: str, call: RunningCall | None) -> ModelError:
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    if call is None or not call.connected:
        return no_server(url, str(cause))
    if call.lost:
        rule = f"the model server at {url} closed the connection before its reply was whole"
        return ModelUnavailable(rule, hint=LOOK)
    rule = f"what answers at {url} does not speak HTTP as agreed"
    return ModelReplyError(rule, value=str(cause), hint="check CARREL_LLM_URL")


def _said(error: openai.APIError) -> str:
    body = error.body
    if isinstance(body, dict):
        return f"{body.get('type') or ''} {body.get('message') or body}".strip()
    return str(body or error.message)
