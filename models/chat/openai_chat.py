"""The chat model of an OpenAI-compatible server, through langchain-openai."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from core.settings import Settings
from models.chat.breaker import server_breaker
from models.chat.guarded import GuardedChat
from models.chat.running import running_call
from models.chat.server_errors import server_error
from models.chat.tokenize import token_count, tokenize_request
from models.chat.transport import guarded_client
from models.chat.types import Capabilities

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
        root = str(self.openai_api_base).removesuffix("/").removesuffix("/v1")
        key = self.openai_api_key.get_secret_value() if self.openai_api_key else ""  # type: ignore[union-attr]
        client = self.http_client
        if not isinstance(client, httpx2.Client):
            raise TypeError("ServerChat is made with a guarded client")
        reply = client.post(root + path, json=body, headers={"Authorization": f"Bearer {key}"})
        reply.raise_for_status()
        return token_count(reply.json())


def server_chat(settings: Settings, capabilities: Capabilities, key: str) -> GuardedChat:
    """Return the guarded chat model of the server at `settings.llm_url`."""
    client = guarded_client(settings.llm_url)
    llm = ServerChat(
        capabilities=capabilities,
        model=capabilities.model,
        base_url=settings.llm_url,
        api_key=SecretStr(key or "none"),
        organization="",
        openai_proxy="",
        temperature=settings.llm_temperature,
        seed=settings.llm_seed,
        max_retries=0,
        stream_usage=True,
        use_responses_api=False,
        http_client=client,
    )
    breaker = server_breaker(
        settings.llm_url, settings.llm_breaker_failures, settings.llm_breaker_seconds
    )
    return GuardedChat(llm, capabilities, settings, breaker=breaker, close=client.close)
