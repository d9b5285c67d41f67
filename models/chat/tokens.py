"""How many tokens a prompt has: counted by the model where it can, else estimated with a margin."""

from __future__ import annotations

import time

from langchain_core.language_models import BaseChatModel

from core.language.tokens import estimate_tokens
from core.ledger import current_ledger
from core.settings import Settings
from models.chat.breaker import Breaker
from models.chat.running import RunningCall, opened_call
from models.chat.types import Capabilities, ChatRequest, ModelCancelled
from models.chat.wire import plain, prompt_hash

TEMPLATE_TOKENS = 8  # of the chat template around one message, at most
ESTIMATE_MARGIN = 1.5
REMEMBERED = 100  # prompts; only those of the last few calls are asked for again


class PromptTokens:
    """Count prompts, each once."""

    def __init__(
        self, llm: BaseChatModel, capabilities: Capabilities, settings: Settings, breaker: Breaker
    ) -> None:
        self._llm = llm
        self._counts = capabilities.tokenizes
        self._settings = settings
        self._breaker = breaker
        self._known: dict[str, int] = {}

    def of(self, request: ChatRequest) -> int:
        """Return the tokens of a request's messages; never too few where they are counted."""
        key = prompt_hash(request)
        known = self._known.get(key)  # one look: another thread may forget it in between
        if known is None:
            parts = [f"{said.role}\n{plain(said.content)}\n" for said in request.messages]
            parts.append("assistant\n")  # what a template ends with
            tokens = self._count("".join(parts)) + TEMPLATE_TOKENS * len(parts)
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[key] = tokens
            return tokens
        return known

    def _count(self, text: str) -> int:
        if self._counts and not self._breaker.is_open:
            call = RunningCall.within(current_ledger(), self._settings)
            call.next_by = time.monotonic() + self._settings.llm.connect_seconds
            try:
                with opened_call(call):
                    return int(self._llm.get_num_tokens(text))
            except Exception as error:  # whatever it is, the call itself will meet it too
                if isinstance(call.error or error, ModelCancelled):
                    raise
        return int(estimate_tokens(text) * ESTIMATE_MARGIN)
