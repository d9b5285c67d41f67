"""The chat model of an OpenAI-compatible server, through langchain-openai and httpx2.

Ordinary timeouts start again with each byte that arrives. Here a thread waits for the server, and
who called asks the running call meanwhile whether it may go on (running.py), so its deadlines hold
whatever a server does: silence, drips, comments, lines without end. No connection is used twice.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import httpx2
import openai
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.messages import BaseMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGenerationChunk
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from core.errors import ModelError
from core.settings import Settings
from models.chat.guarded import GuardedChat
from models.chat.running import RunningCall, run_in_thread, running_call
from models.chat.server_page import proxy_of
from models.chat.turns import BREAKER_FAILURES, BREAKER_SECONDS, server_breaker
from models.chat.types import (
    LOOK,
    Capabilities,
    ModelReplyError,
    ModelUnavailable,
    no_server,
    reply_error,
    status_error,
    token_count,
    tokenize_request,
)


class GuardedTransport(httpx2.HTTPTransport):
    """Send requests for the running call; refuse compressed replies, which could explode."""

    def __init__(self, url: str) -> None:
        super().__init__(
            verify=httpx2.create_ssl_context() if url.startswith("https") else False,
            trust_env=False,
            limits=httpx2.Limits(max_keepalive_connections=0),
            proxy=proxy_of(url),
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request; its connection and reply belong to the running call."""
        call = running_call()
        if call is None:
            raise RuntimeError("a guarded connection belongs to a running call")
        seconds = call.settings.llm.connect_seconds
        call.connect_by = time.monotonic() + seconds

        def connecting(event: str, details: dict[str, Any]) -> None:
            if event.endswith("start_tls.started"):
                call.connect_by = time.monotonic() + seconds
            elif event.endswith(("connect_tcp.complete", "start_tls.complete")):
                call.hold(details["return_value"].get_extra_info("socket"))

        request.extensions["trace"] = connecting
        # The call notices first; a thread that nobody waits for any more ends by this one.
        request.extensions["timeout"] = {"connect": 2 * seconds}
        request.headers["Accept-Encoding"] = "identity"
        response = super().handle_request(request)
        encoding = response.headers.get("Content-Encoding", "identity")
        if encoding != "identity":
            response.close()
            rule = "the model server sent a compressed reply that was not asked for"
            call.fail(ModelReplyError(rule, value=encoding))
        response.stream = _Counted(response.stream, call)
        return response


class _Counted(httpx2.SyncByteStream):
    """Give the bytes of a reply as long as they are not too many."""

    def __init__(self, stream: Any, call: RunningCall) -> None:  # noqa: ANN401 - any of httpx2's
        self._stream = stream
        self._call = call

    def __iter__(self) -> Iterator[bytes]:
        for data in self._stream:
            self._call.count(len(data))
            yield data

    def close(self) -> None:
        self._stream.close()


CLOSED = ("peer ", "Server disconnected")  # how h11 and httpcore2 begin to say so


def server_error(error: Exception, url: str, call: RunningCall | None) -> ModelError:
    """Return the ModelError for an exception that a client of `url` has raised."""
    if call is not None and call.error is not None:
        return call.error
    if isinstance(error, ModelError):
        return error
    if isinstance(error, openai.APIStatusError):
        return status_error(error.status_code, _error_text(error), url)
    if isinstance(error, openai.APIConnectionError | httpx2.TransportError):
        return _connection_error(error, url, call)
    if isinstance(error, openai.APIError):  # an error that came within the stream
        return reply_error(_error_text(error))
    rule = "the reply of the model server is not what an OpenAI-compatible server sends"
    return ModelReplyError(rule, value=str(error) or repr(error))


def _connection_error(error: Exception, url: str, call: RunningCall | None) -> ModelError:
    cause: BaseException = error
    lost = False
    while cause.__cause__ is not None:
        lost = lost or isinstance(cause, httpx2.ReadError | httpx2.WriteError)
        cause = cause.__cause__
    if call is None or not call.connected:
        return no_server(url, str(cause))
    if lost or str(cause).startswith(CLOSED):
        rule = f"the model server at {url} closed the connection before its reply was whole"
        return ModelUnavailable(rule, hint=LOOK)
    rule = f"what answers at {url} does not speak HTTP as agreed"
    return ModelReplyError(rule, value=str(cause), hint="check CARREL_LLM_URL")


def _error_text(error: openai.APIError) -> str:
    body = error.body
    if isinstance(body, dict):
        return f"{body.get('type') or ''} {body.get('message') or body}".strip()
    return str(body or error.message)


UNKNOWN_PREFIX = (400, 404)  # no such file, or one of another model; 501: the server keeps none
IN_BODY = (
    "response_format",
    "chat_template_kwargs",
    "id_slot",
    "cache_prompt",
    "cache_salt",
)  # sent as they are: the openai client must not interpret them


class ServerChat(ChatOpenAI):
    """Stream from a server and keep what ChatOpenAI drops: thinking and timings."""

    capabilities: Capabilities

    def _get_request_payload(
        self,
        input_: Any,  # noqa: ANN401
        *,
        stop: list[str] | None = None,
        **kwargs: Any,  # noqa: ANN401
    ) -> dict[str, Any]:
        extra = {name: kwargs.pop(name) for name in IN_BODY if name in kwargs}
        payload: dict[str, Any] = super()._get_request_payload(input_, stop=stop, **kwargs)
        if "max_completion_tokens" in payload:  # which older servers do not know
            extra["max_tokens"] = payload.pop("max_completion_tokens")
        return {**payload, "extra_body": extra}

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,  # noqa: ANN401
    ) -> Iterator[ChatGenerationChunk]:
        try:
            stream = super()._stream
            yield from run_in_thread(lambda: stream(messages, stop, run_manager, **kwargs))
        except Exception as error:
            raise server_error(error, str(self.openai_api_base), running_call()) from error

    def _convert_chunk_to_generation_chunk(
        self,
        chunk: dict[str, Any],
        default_chunk_class: type,
        base_generation_info: dict[str, Any] | None,
    ) -> ChatGenerationChunk | None:
        made = super()._convert_chunk_to_generation_chunk(
            chunk, default_chunk_class, base_generation_info
        )
        if made is None:
            return None
        delta = (chunk.get("choices") or [{}])[0].get("delta") or {}
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        if thought:
            made.message.additional_kwargs["reasoning_content"] = str(thought)
        if chunk.get("timings"):
            made.message.response_metadata["timings"] = chunk["timings"]
        figures = made.generation_info or chunk.get("usage") or chunk.get("timings")
        # a stream of empty chunks must not fill the memory
        return made if made.text or thought or figures else None

    def get_num_tokens(self, text: str) -> int:
        """Let the server count the tokens of a text."""
        path, body = tokenize_request(self.capabilities, text)
        return token_count(self._post(path, body))

    def hold_prefix(self, slot: int, messages: Sequence[BaseMessage]) -> bool:
        """Let a slot of llama-server hold the beginning of a prompt and nothing else.

        It is restored from the server's folder of saved slots, or read and saved there. Returns
        False where the server keeps no slots; errors of the connection are those of `types.py`.
        """
        converted = convert_to_openai_messages(list(messages))
        identity = json.dumps([self.capabilities.digest, converted], ensure_ascii=False)
        name = {"filename": f"{hashlib.sha256(identity.encode()).hexdigest()[:24]}.bin"}
        try:
            self._post(f"/slots/{slot}?action=restore", name)
            return True
        except httpx2.HTTPStatusError as error:
            if error.response.status_code not in UNKNOWN_PREFIX:
                return False
        with suppress(httpx2.HTTPStatusError, KeyError):
            made = self._post(
                "/apply-template", {"messages": converted, "add_generation_prompt": False}
            )
            asked = {"prompt": made["prompt"], "n_predict": 0, "id_slot": slot}
            self._post("/completion", {**asked, "cache_prompt": False})
            self._post(f"/slots/{slot}?action=save", name)
            return True
        return False

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        root = str(self.openai_api_base).removesuffix("/").removesuffix("/v1")
        key = self.openai_api_key.get_secret_value() if self.openai_api_key else ""  # type: ignore[union-attr]
        client: Any = self.http_client
        headers = {"Authorization": f"Bearer {key}"}
        (reply,) = run_in_thread(lambda: [client.post(root + path, json=body, headers=headers)])
        reply.raise_for_status()
        found: dict[str, Any] = reply.json()
        return found


def server_chat(settings: Settings, capabilities: Capabilities, key: str) -> GuardedChat:
    """Return the guarded chat model of the server at `settings.llm.url`."""
    transport = GuardedTransport(settings.llm.url)
    # It follows no redirects, which could lead elsewhere.
    client = httpx2.Client(
        transport=transport, trust_env=False, timeout=None, follow_redirects=False
    )
    llm = ServerChat(
        capabilities=capabilities,
        model=capabilities.model,
        base_url=settings.llm.url,
        api_key=SecretStr(key or "none"),
        organization="",
        openai_proxy="",
        temperature=settings.llm.temperature,
        seed=settings.llm.seed,
        max_retries=0,
        stream_usage=True,
        use_responses_api=False,
        http_client=client,
    )
    breaker = server_breaker(settings.llm.url, BREAKER_FAILURES, BREAKER_SECONDS)
    return GuardedChat(llm, capabilities, settings, breaker=breaker, close=client.close)
