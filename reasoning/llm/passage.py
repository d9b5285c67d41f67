"""Let the chat model write the passage that a weak search would expect to find."""

from __future__ import annotations

from core.language.tokens import estimate_tokens
from core.ledger import current_ledger
from core.settings import Settings
from models.chat.types import ChatModel, ChatRequest, Message, ModelOverflow
from reasoning.llm.data import as_data, language_name
from reasoning.llm.prompts import load_prompts


class LlmPassageWriter:
    """Write passages with a chat model; what they say is only ever searched with."""

    def __init__(self, chat: ChatModel, settings: Settings) -> None:
        """Write with `chat`, by the prompts that settings name."""
        self._chat = chat
        self._settings = settings
        self._prompts = load_prompts(settings.llm_prompts)

    def write_passage(self, question: str, language: str) -> str:
        """Return a short text, "" when the model was lost before; raises ModelError."""
        ledger = current_ledger()
        if ledger.lost:
            return ""
        text = self._prompts.text(
            "passage", question=as_data(question), language=language_name(language)
        )
        messages = (Message("system", self._prompts.text("system")), Message("user", text))
        request = ChatRequest(messages, self._settings.llm_decision_tokens)
        read = sum(estimate_tokens(message.content) for message in messages)
        if read + request.max_tokens > ledger.tokens_left() or self._chat.room(request) < 0:
            raise ModelOverflow("the prompt for a passage does not fit")
        reply = self._chat.complete(request, verb="passage")
        return " ".join(reply.text.replace("\x00", "").split())
