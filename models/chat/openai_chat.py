"""The chat model of an OpenAI-compatible server, through langchain-openai and a client of our own.

Ordinary timeouts start again with each byte that arrives. Here each wait is cut into slices, and
between two slices the running call is asked whether it may go on, so its deadlines hold whatever a
server does: silence, drips, comments, lines without end. No connection is used twice.
"""

from __future__ import annotations

import hashlib
import json
import os
import queue
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from selectors import EVENT_WRITE, DefaultSelector
from typing import Any, NoReturn

import httpcore2
import httpx2
import openai
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from core.errors import ModelError
from core.settings import Settings
from models.chat.guarded import GuardedChat
from models.chat.running import POLL_SECONDS, RunningCall, running_call
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


class GuardedStream(httpcore2.NetworkStream):
    """Read and write a socket in slices of time."""

    def __init__(self, sock: socket.socket, call: RunningCall) -> None:
        self._sock = sock
        self._call = call
        call.connections.append(sock)
        sock.settimeout(POLL_SECONDS)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return what has arrived; no bytes at the end of the connection."""
        while True:
            self._call.check()
            try:
                data = self._sock.recv(max_bytes)
            except TimeoutError:
                continue
            except OSError as error:
                self._call.lost = True
                raise httpcore2.ReadError(str(error)) from error
            self._call.lost = not data
            self._call.count(len(data))
            return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send all bytes."""
        view = memoryview(buffer)
        while view:
            self._call.check()
            try:
                view = view[self._sock.send(view) :]
            except TimeoutError:
                continue
            except OSError as error:
                self._call.lost = True
                raise httpcore2.WriteError(str(error)) from error

    def close(self) -> None:
        """Close the socket."""
        with suppress(OSError):
            self._sock.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        """Return an encrypted stream over this one."""
        end = time.monotonic() + self._call.connect_seconds
        try:
            sock = ssl_context.wrap_socket(
                self._sock, server_hostname=server_hostname, do_handshake_on_connect=False
            )
            stream = GuardedStream(sock, self._call)
            while not _shaken(sock):
                _check(self._call, end)
            return stream
        except OSError as error:
            raise httpcore2.ConnectError(str(error)) from error

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401
        """Return the TLS object or the socket."""
        if info == "ssl_object" and isinstance(self._sock, ssl.SSLSocket):
            return self._sock._sslobj  # type: ignore[attr-defined]
        return self._sock if info == "socket" else None


class GuardedBackend(httpcore2.NetworkBackend):
    """Connect within the time that the running call has for it."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        """Try the addresses of a host one after the other."""
        call = running_call()
        if call is None:
            raise RuntimeError("a guarded connection belongs to a running call")
        end = time.monotonic() + call.connect_seconds
        failure: OSError = OSError("no address")
        for family, kind, protocol, _, address in _addresses(host, port, call, end):
            sock = socket.socket(family, kind, protocol)
            try:
                _connect(sock, address, call, end)
            except OSError as error:
                sock.close()
                failure = error
            except BaseException:
                sock.close()
                raise
            else:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                call.connected = True
                return GuardedStream(sock, call)
        raise httpcore2.ConnectError(str(failure)) from failure


class GuardedTransport(httpx2.HTTPTransport):
    """Send requests over guarded connections; refuse compressed replies, which could explode."""

    def __init__(self, url: str) -> None:
        encrypted = url.startswith("https")
        super().__init__(verify=encrypted, trust_env=False)
        limits: dict[str, Any] = {
            "network_backend": GuardedBackend(),
            "max_keepalive_connections": 0,
            "ssl_context": httpx2.create_ssl_context() if encrypted else None,
        }
        proxy = proxy_of(url)
        if proxy:
            self._pool = httpcore2.HTTPProxy(proxy, **limits)
        else:
            self._pool = httpcore2.ConnectionPool(**limits)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request."""
        request.headers["Accept-Encoding"] = "identity"
        response = super().handle_request(request)
        encoding = response.headers.get("Content-Encoding", "identity")
        if encoding != "identity":
            response.close()
            rule = "the model server sent a compressed reply that was not asked for"
            _fail(ModelReplyError(rule, value=encoding))
        return response


def guarded_client(url: str) -> httpx2.Client:
    """Return a client for one server; it follows no redirects, which could lead elsewhere."""
    return httpx2.Client(
        transport=GuardedTransport(url), trust_env=False, timeout=None, follow_redirects=False
    )


def _fail(error: ModelReplyError) -> NoReturn:
    call = running_call()
    if call is not None:
        call.error = call.error or error
    raise error


def _check(call: RunningCall, connect_by: float) -> None:
    call.check()
    if time.monotonic() >= connect_by:
        call.late_to_connect()


def _shaken(sock: ssl.SSLSocket) -> bool:
    try:
        sock.do_handshake()
    except TimeoutError:
        return False
    return True


def _connect(sock: socket.socket, address: Any, call: RunningCall, end: float) -> None:  # noqa: ANN401
    sock.setblocking(False)
    with DefaultSelector() as selector:
        selector.register(sock, EVENT_WRITE)
        with suppress(BlockingIOError):
            sock.connect(address)
        while not selector.select(POLL_SECONDS):
            _check(call, end)
    code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code:
        raise OSError(code, os.strerror(code))


def _addresses(host: str, port: int, call: RunningCall, end: float) -> list[Any]:
    """Look a name up in a thread of its own: the system's resolver knows no deadline."""
    found: queue.SimpleQueue[list[Any] | OSError] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            found.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except OSError as error:
            found.put(error)

    threading.Thread(target=look_up, daemon=True).start()
    while True:
        try:
            answer = found.get(timeout=POLL_SECONDS)
        except queue.Empty:
            _check(call, end)
            continue
        if isinstance(answer, OSError):
            raise httpcore2.ConnectError(str(answer)) from answer
        return answer


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


ROLES = {"system": "system", "human": "user", "ai": "assistant"}
UNKNOWN_PREFIX = (400, 404)  # no such file, or one of another model; 501: the server keeps none
IN_BODY = (
    "response_format",
    "chat_template_kwargs",
    "id_slot",
    "cache_prompt",
    "cache_salt",
)  # sent as they are: the openai client must not interpret them


class ServerChat(ChatOpenAI):
    """Stream from a server and keep what ChatOpenAI drops: thinking and timings.

    Errors are those of `types.py`.
    """

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
            yield from super()._stream(messages, stop, run_manager, **kwargs)
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
        told = made.generation_info or chunk.get("usage") or chunk.get("timings")
        # a stream of empty chunks must not fill the memory
        return made if made.text or thought or told else None

    def get_num_tokens(self, text: str) -> int:
        """Let the server count the tokens of a text."""
        path, body = tokenize_request(self.capabilities, text)
        return token_count(self._posted(path, body))

    def hold_prefix(self, slot: int, messages: Sequence[BaseMessage]) -> bool:
        """Let a slot of llama-server hold the beginning of a prompt and nothing else.

        It is restored from the server's folder of saved slots, or read and saved there. Returns
        False where the server keeps no slots; errors of the connection are those of `types.py`.
        """
        said = [{"role": ROLES[one.type], "content": one.text} for one in messages]
        told = json.dumps([self.capabilities.digest, said], ensure_ascii=False)
        name = {"filename": f"{hashlib.sha256(told.encode()).hexdigest()[:24]}.bin"}
        try:
            self._posted(f"/slots/{slot}?action=restore", name)
            return True
        except httpx2.HTTPStatusError as error:
            if error.response.status_code not in UNKNOWN_PREFIX:
                return False
        with suppress(httpx2.HTTPStatusError, KeyError):
            made = self._posted(
                "/apply-template", {"messages": said, "add_generation_prompt": False}
            )
            asked = {"prompt": made["prompt"], "n_predict": 0, "id_slot": slot}
            self._posted("/completion", {**asked, "cache_prompt": False})
            self._posted(f"/slots/{slot}?action=save", name)
            return True
        return False

    def _posted(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return the JSON that the server replies with, outside of OpenAI's protocol."""
        root = str(self.openai_api_base).removesuffix("/").removesuffix("/v1")
        key = self.openai_api_key.get_secret_value() if self.openai_api_key else ""  # type: ignore[union-attr]
        client = self.http_client
        if not isinstance(client, httpx2.Client):
            raise TypeError("ServerChat is made with a guarded client")
        reply = client.post(root + path, json=body, headers={"Authorization": f"Bearer {key}"})
        reply.raise_for_status()
        found: dict[str, Any] = reply.json()
        return found


def server_chat(settings: Settings, capabilities: Capabilities, key: str) -> GuardedChat:
    """Return the guarded chat model of the server at `settings.llm.url`."""
    client = guarded_client(settings.llm.url)
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
