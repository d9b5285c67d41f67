"""Remember what the model made of a caller's question: its parts, its plan, its other searches.

What is kept is the text of a reply that was accepted, under everything the model saw. Whoever takes
it reads and checks it as if the model had just written it.
"""

from __future__ import annotations

from core.cache.cache import Cache
from core.ledger import current_ledger
from models.chat.types import ChatRequest

VERBS = frozenset({"understand", "plan", "rewrite"})


class RememberedReplies:
    """Keep accepted replies by caller, model and request; runs without a caller keep none."""

    def __init__(self, cache: Cache) -> None:
        """Keep them in `cache`."""
        self._cache = cache

    def holds(self, verb: str) -> bool:
        """Tell whether replies that serve this decision are kept for whoever asks now."""
        return verb in VERBS and self._cache.enabled and bool(current_ledger().owner)

    def reply(self, model: str, verb: str, request: ChatRequest) -> str | None:
        """Return the text of the reply to the same request."""
        held = self._cache.get(self._key(model, verb, request))
        return None if held is None else held.decode("utf-8")

    def keep(self, model: str, verb: str, request: ChatRequest, text: str) -> None:
        """Remember a reply that was accepted."""
        held = text.encode("utf-8", "replace")
        self._cache.put(self._key(model, verb, request), held)

    def _key(self, model: str, verb: str, request: ChatRequest) -> str:
        return self._cache.key(
            caller=current_ledger().owner,
            model=model,
            verb=verb,
            messages=[list(message) for message in request.messages],
            max_tokens=request.max_tokens,
            schema=request.schema,
            thinking=request.thinking,
        )
