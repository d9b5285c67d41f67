"""Let the chat model write the passage that a weak search would expect to find."""

from __future__ import annotations

from core.budget import current_ledger
from core.settings import Settings
from models.chat.types import ChatModel, ModelOverflow
from reasoning.llm.data import as_data, language_name
from reasoning.llm.deciding import Decider
from reasoning.llm.fitting import fits
from reasoning.llm.prompts import load_prompts


class LlmPassageWriter:
    """Write passages with a chat model; what they say is only ever searched with."""

    def __init__(self, chat: ChatModel, settings: Settings) -> None:
        """Write with `chat`, by the prompts that settings name."""
        self._decider = Decider(chat, settings, load_prompts(settings.llm.prompts))

    def write_passage(self, question: str, language: str) -> str:
        """Return a short text, "" when the model was lost before; raises ModelError."""
        if current_ledger().lost:
            return ""
        chat, prompts = self._decider.chat, self._decider.prompts
        named = language_name(language)
        prompt = prompts.text("passage", question=as_data(question), language=named)
        request = self._decider.request(prompt, None)
        if not fits(chat, request):
            raise ModelOverflow("the prompt for a passage does not fit")
        return " ".join(chat.complete(request, verb="passage").text.replace("\x00", "").split())
