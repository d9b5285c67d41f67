"""A chat model that replies by a script, and what reasoners over it need."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence

from builders import weights_for

from core.budget import Ledger, current_ledger
from core.fields.chat import DECISIONS, NULL
from core.language.scan import estimate_tokens
from core.settings import Settings
from core.trace import ModelCall
from core.types import Evidence, ToolSpec
from models.chat.types import Capabilities, ChatReply, ChatRequest
from models.embeddings import Embedder
from reasoning.llm.reasoner import LlmReasoner
from reasoning.rules.reasoner import RulesReasoner

Scripted = str | dict[str, object] | ChatReply | Exception


class ScriptedModel:
    """Reply with the given replies in turn, seven characters at a time; raise the exceptions.

    An exception with a `said` attribute is raised after that text was heard. A token is a quarter
    of a prompt's bytes.
    """

    name = "scripted"

    def __init__(self, *replies: Scripted, context: int = 8192) -> None:
        self.capabilities = Capabilities(
            kind="openai-compatible", model="scripted", structured="json_schema", context=context
        )
        self.requests: list[ChatRequest] = []
        self.verbs: list[str] = []
        self._replies: Iterator[Scripted] = iter(replies)

    def complete(
        self, request: ChatRequest, *, verb: str, on_text: Callable[[str], None] | None = None
    ) -> ChatReply:
        self.requests.append(request)
        self.verbs.append(verb)
        assert self.room(request) >= 0, "a prompt that does not fit was sent"
        current_ledger().record(ModelCall(verb=verb, prompt_hash="x", prompt_tokens=10))
        reply = next(self._replies)
        text = reply if isinstance(reply, str) else getattr(reply, "said", "")
        if isinstance(reply, dict):
            text = json.dumps(reply, ensure_ascii=False)
        elif isinstance(reply, ChatReply):
            text = reply.text
        for start in range(0, len(text), 7):
            if on_text is not None:
                on_text(text[start : start + 7])
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, ChatReply) else ChatReply(text)

    def room(self, request: ChatRequest) -> int:
        read = sum(estimate_tokens(message.content) for message in request.messages)
        return self.capabilities.context - read - request.max_tokens

    def close(self) -> None: ...

    @property
    def prompts(self) -> str:
        """Return everything that was ever sent."""
        return "\n".join(m.content for request in self.requests for m in request.messages)


def breaking(error: Exception, said: str) -> Exception:
    """Make an error that comes after a part of the reply."""
    error.said = said  # type: ignore[attr-defined]
    return error


def thinking(
    *replies: Scripted,
    evidence: Sequence[Evidence] = (),
    embedder: Embedder | None = None,
    context: int = 8192,
    **values: object,
) -> tuple[LlmReasoner, ScriptedModel]:
    """Make a reasoner whose model follows a script, and the model."""
    model = ScriptedModel(*replies, context=context)
    settings = Settings(**values)
    rules = RulesReasoner(settings, weights_for(evidence), embedder)
    return LlmReasoner(model, rules, settings, embedder, frozenset([*DECISIONS, NULL])), model


def purse(tokens: int = 100_000) -> Ledger:
    return Ledger(time.monotonic() + 60, tokens)


def tool(name: str, purpose: str = "Find things.", **values: object) -> ToolSpec:
    given = {"name": name, "base": "search", "purpose": purpose, "scoped": True, **values}
    return ToolSpec.model_validate(given)
