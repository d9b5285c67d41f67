"""Ask the model for one decision: fit it, check it, repair it, or let the rules take it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from core.budget import current_ledger
from core.cache import Cache
from core.errors import ModelError, shorten
from core.settings import Settings
from models.chat.types import (
    ChatModel,
    ChatReply,
    ChatRequest,
    Message,
    ModelCancelled,
    ModelOverflow,
    ModelReplyError,
    ModelTimeout,
    ModelUnavailable,
)
from models.embeddings import Embedder
from reasoning.llm.prompts import as_data, fits, fitted, load_prompts
from reasoning.llm.replies import UNLIMITED, Unfit
from reasoning.question_words import meaning

T = TypeVar("T")
I = TypeVar("I")  # noqa: E741 - the items of a prompt
SHOWN_REPLY, SHOWN_ERROR = 600, 300  # chosen, not measured
REMEMBERED = frozenset({"understand", "plan", "rewrite"})
LOST = "the model did not answer earlier"


class ReplyReader(Generic[I, T]):
    """Read the replies to one question; before they are complete most mean nothing."""

    def __init__(self, read: Callable[[ChatReply, Sequence[I]], T]) -> None:
        """Read with `read`, which gets a complete reply and the items that the prompt showed."""
        self._read = read
        self._items: Sequence[I] = ()

    def begin(self, items: Sequence[I]) -> None:
        """Expect a new reply to a prompt that showed these items."""
        self._items = items

    def read(self, reply: ChatReply) -> T:
        """Return what a finished reply decides; raises Unfit."""
        return self._read(reply, self._items)

    def hear(self, piece: str) -> None:
        """Take a piece of the reply as it arrives."""
        return

    def kept(self) -> T | None:
        """Return what is good of a reply that broke off, None for nothing."""
        return None


@dataclass(frozen=True)
class Ask(Generic[I, T]):
    """Say what is asked: how its prompt is made of items, best first, and how replies are read.

    `repairs` is how often at most an invalid reply is asked for again.
    """

    verb: str
    make: Callable[[Sequence[I]], ChatRequest]
    reader: ReplyReader[I, T]
    items: Sequence[I] = ()
    repairs: int = UNLIMITED


class Decider:
    """Put questions to the model, within the current ledger."""

    def __init__(
        self,
        chat: ChatModel,
        settings: Settings,
        embedder: Embedder | None = None,
        remembered: Cache | None = None,
    ) -> None:
        """Ask `chat`; `remembered` keeps the replies that were accepted."""
        self.chat = chat
        self.settings = settings
        self.embedder = embedder
        self.prompts = load_prompts(settings.llm.prompts)
        self._remembered = remembered

    def request(self, text: str, schema: dict[str, Any] | None, tokens: int = 0) -> ChatRequest:
        """Make a request of the shared system prompt and one user message."""
        wanted = tokens or self.settings.llm.decision_tokens
        # In a small context the reply gets half, so that something of the question fits.
        most = min(wanted, max(1, self.chat.capabilities.context // 2))
        messages = (Message("system", self.prompts.text("system")), Message("user", text))
        return ChatRequest(messages, most, schema, static=1)

    def require_kept(
        self, rule: str, kept: float, original: str, proposed: str, language: str
    ) -> None:
        """Raise Unfit with the rule unless words, of which the share `kept` is, or meaning stay."""
        least = self.settings.answering.drift_similarity
        meant = None if kept >= least else meaning(original, proposed, language, self.embedder)
        alike = max(kept, meant or 0.0)
        if alike < least:
            raise Unfit(f"{rule} (similarity {alike:.2f}, at least {least})")

    def decide(self, ask: Ask[I, T], instead: Callable[[], T]) -> T:
        """Return the model's decision, or that of `instead`, with the reason in the ledger."""
        ledger = current_ledger()
        if ledger.lost:
            ledger.degrade(f"{ask.verb}: {LOST}")
            return instead()
        try:
            return self._fitting(ask)
        except ModelCancelled:
            raise
        except Unfit:
            reason = "the model gave no valid reply"
        except ModelOverflow as error:
            reason = error.rule
        except (ModelUnavailable, ModelTimeout) as error:
            reason = f"the model did not answer ({error.rule})"
        except ModelError as error:
            reason = f"the model failed ({error.rule})"
        ledger.degrade(f"{ask.verb}: {reason}")
        return instead()

    def _fitting(self, ask: Ask[I, T]) -> T:
        """Ask with fewer items for as long as the server counts more tokens than we do."""
        items = ask.items
        while True:
            request, shown = fitted(self.chat, ask.make, items)
            try:
                return self._remembering(ask, request, shown)
            except ModelOverflow:
                if len(shown) < 2:
                    raise
                items = shown[: len(shown) // 2]

    def _remembering(self, ask: Ask[I, T], request: ChatRequest, shown: Sequence[I]) -> T:
        """Read the reply that this caller's same question got before; it is checked again.

        Only what was made of a question is remembered, under everything the model saw; runs
        without a caller keep nothing.
        """
        cache, owner = self._remembered, current_ledger().owner
        kept = ask.verb in REMEMBERED and not request.alternatives  # likelihoods are no text
        if cache is None or not cache.enabled or not owner or not kept:
            return self._tries(ask, request, shown)[0]
        key = cache.key(
            caller=owner,
            model=self.chat.capabilities.model,
            verb=ask.verb,
            messages=[list(message) for message in request.messages],
            max_tokens=request.max_tokens,
            schema=request.schema,
            thinking=request.thinking,
        )
        stored = cache.get(key)
        if stored is not None:
            ask.reader.begin(shown)
            with suppress(Unfit):
                return ask.reader.read(ChatReply(stored.decode("utf-8")))
        decided, reply = self._tries(ask, request, shown)
        if reply is not None:
            cache.put(key, reply.text.encode("utf-8", "replace"))
        return decided

    def _tries(
        self, ask: Ask[I, T], request: ChatRequest, shown: Sequence[I]
    ) -> tuple[T, ChatReply | None]:
        """Return the decision and the reply that it was read from, None when that broke off."""
        asked, unfit = request, Unfit("")
        most = min(self.settings.llm.repairs, ask.repairs)
        for attempt in range(most + 1):
            reply = ChatReply("")
            ask.reader.begin(shown)
            try:
                reply = self.chat.complete(asked, verb=ask.verb, on_text=ask.reader.hear)
                return ask.reader.read(reply), reply
            except (ModelTimeout, ModelUnavailable, ModelReplyError) as error:
                kept = ask.reader.kept()
                if kept is not None:
                    return kept, None
                if not isinstance(error, ModelReplyError):
                    raise
                unfit = Unfit(error.rule)
            except ModelOverflow:
                if attempt:  # only a repair did not fit; fewer items would start all over
                    raise unfit from None
                raise
            except Unfit as error:
                outcome = "invalid" if reply.finish == "stop" else reply.finish
                current_ledger().judge(outcome, str(error))
                unfit = error
            if attempt >= min(most, unfit.repairs):
                raise unfit
            asked = self._repair(request, reply, unfit)
        raise AssertionError("a loop of tries ends inside")

    def _repair(self, request: ChatRequest, reply: ChatReply, unfit: Unfit) -> ChatRequest:
        """Show the model its reply and the error; only the error where both do not fit."""
        error = shorten(as_data(str(unfit)), SHOWN_ERROR)
        if reply.finish == "length":
            error = f"{error} (the reply was cut at its limit; write less)"
        refused = as_data(reply.text[:SHOWN_REPLY]).strip()
        task = Message("user", self.prompts.text("repair", error=error))
        dialogue = (Message("assistant", refused), task)
        full = replace(request, messages=(*request.messages, *dialogue))
        if refused and fits(self.chat, full):
            return full
        merged = f"{request.messages[-1].content}\n\n{task.content}"  # roles must alternate
        short = replace(request, messages=(*request.messages[:-1], Message("user", merged)))
        if fits(self.chat, short):
            return short
        raise Unfit(str(unfit), repairs=0)
