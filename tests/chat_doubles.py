"""A chat model that says what a test tells it to, behind the real guards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

from core.settings import Settings
from models.chat.guarded import GuardedChat
from models.chat.types import Capabilities

SCRIPTED = Capabilities(
    kind="in-process", model="scripted", structured="json_schema", context=32_768
)


class ScriptedLlm(GenericFakeChatModel):
    """Give the replies in their order, word by word; a reply that is an exception is raised."""

    messages: Iterator[Any]
    prompts: list[list[BaseMessage]] = Field(default_factory=list)
    sent: list[dict[str, Any]] = Field(default_factory=list)

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        self.prompts.append(messages)
        self.sent.append(kwargs)
        reply = next(self.messages, None)
        if reply is None:
            pytest.fail(f"the script has no reply left for: {messages[-1].text[:500]}")
        if isinstance(reply, BaseException):
            raise reply
        message = reply if isinstance(reply, AIMessage) else AIMessage(reply)
        return ChatResult(generations=[ChatGeneration(message=message)])


class ScriptedChat(GuardedChat):
    """Keep what was sent: `prompts` are messages, `sent` the parameters beside them."""

    llm: ScriptedLlm

    @property
    def prompts(self) -> list[list[BaseMessage]]:
        return self.llm.prompts

    @property
    def sent(self) -> list[dict[str, Any]]:
        return self.llm.sent


def scripted_chat(
    replies: Sequence[str | AIMessage | BaseException],
    capabilities: Capabilities = SCRIPTED,
    **settings: Any,
) -> ScriptedChat:
    """Return a guarded chat model with these replies; more calls than replies fail the test.

    `prompts[i][-1].text` is the last message of call i.
    """
    return ScriptedChat(ScriptedLlm(messages=iter(replies)), capabilities, Settings(**settings))
