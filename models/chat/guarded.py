"""Any chat model that LangChain knows, by "provider:name", behind the same clocks and budget."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessageChunk

from core.budget import Ledger, current_ledger
from core.distribution import require_extra
from core.errors import CarrelError, ModelError, OperatorError
from core.settings import Settings
from core.trace import CallOutcome, ModelCall
from models.chat.running import RunningCall, open_call, run_in_thread
from models.chat.turns import BREAKER_FAILURES, BREAKER_SECONDS, Breaker, Lease, SlotPool, Turns
from models.chat.types import (
    LOOK,
    Capabilities,
    ChatReply,
    ChatRequest,
    ModelCancelled,
    ModelOverflow,
    ModelReplyError,
    ModelTimeout,
    ModelUnavailable,
    NoConnection,
)
from models.chat.wire import IncomingReply, PromptTokens, parameters, prompt_hash, to_messages

LEAST_TOKENS = 16  # fewer hold no reply
COUNTED = ("llama-server", "llama_cpp.server", "in-process")  # whose slots are known
WAIT_SECONDS = 0.2  # between two attempts to connect; chosen, not measured
LEAST_SECONDS = 0.001  # stamina warns of 0


class GuardedChat:
    """Call any LangChain chat model within the limits of the settings and the current ledger.

    `llm` streams; it counts tokens with `get_num_tokens` where `capabilities.tokenizes`. Beside
    messages it is given `max_tokens` and, where its capabilities say so, `response_format`,
    `chat_template_kwargs`, `id_slot`, `cache_prompt` and `cache_salt`.
    """

    def __init__(
        self,
        llm: BaseChatModel,
        capabilities: Capabilities,
        settings: Settings,
        *,
        breaker: Breaker | None = None,
        close: Callable[[], None] | None = None,
    ) -> None:
        self.llm = llm
        self.capabilities = capabilities
        self.settings = settings
        self.name = capabilities.model
        self._breaker = breaker or Breaker(self.name, BREAKER_FAILURES, BREAKER_SECONDS)
        self._slots = SlotPool(capabilities.slots if capabilities.pins_slots else 0)
        known = capabilities.kind in COUNTED
        self._turns = Turns(capabilities.slots if known else 0, settings.llm.queue)
        self._prompt_tokens = PromptTokens(llm, capabilities, settings, self._breaker)
        self._close = close
        self._keeps_prefixes = True  # until a server says that it does not
        self._prefixes: dict[int, str] = {}  # by slot, what its last prompt began with

    def complete(
        self, request: ChatRequest, *, verb: str, on_text: Callable[[str], None] | None = None
    ) -> ChatReply:
        """Return the reply and record the call in the current ledger."""
        ledger, began = current_ledger(), time.monotonic()
        incoming = IncomingReply(request, self.settings.llm.repeats, self._thinks(request), on_text)
        outcome: CallOutcome = "cancelled"  # what an interruption leaves
        error = ""
        try:
            reply = self._admit(request, ledger, incoming)
            outcome = "ok" if reply.finish == "stop" else reply.finish
            return reply
        except ModelError as failure:
            outcome, error = _outcome(failure, incoming), str(failure)
            raise
        finally:
            ledger.record(self._record(request, incoming, began, verb, outcome, error))

    def room(self, request: ChatRequest) -> int:
        """Return the tokens of context left after prompt and max_tokens; negative: it overflows."""
        wanted = self._reply_tokens(request)
        return self.capabilities.context - self._prompt_tokens.of(request) - wanted

    def close(self) -> None:
        """Let go of connections or weights."""
        if self._close:
            self._close()

    def _thinks(self, request: ChatRequest) -> bool:
        return request.thinking or self.capabilities.thinking == "always"

    def _reply_tokens(self, request: ChatRequest) -> int:
        # in a small context thinking gets a quarter, so that the prompt still fits
        most = min(self.settings.llm.thinking_tokens, self.capabilities.context // 4)
        return request.max_tokens + self._thinks(request) * most

    def _admit(self, request: ChatRequest, ledger: Ledger, incoming: IncomingReply) -> ChatReply:
        import stamina

        stamina.instrumentation.set_on_retry_hooks(())  # they would print
        retry = stamina.RetryingCaller(
            attempts=self.settings.llm.retries + 1,
            timeout=max(LEAST_SECONDS, ledger.seconds_left()),
            wait_initial=WAIT_SECONDS,
            wait_max=WAIT_SECONDS,
        )
        until = min(ledger.deadline, time.monotonic() + self.settings.llm.call_seconds)
        with (
            self._turns.take_turn(ledger.owner, until, ledger.cancelled),
            self._breaker.watch(),
        ):
            incoming.limit = self._limit(request, ledger)
            return retry(NoConnection, self._receive, request, ledger, incoming)

    def _limit(self, request: ChatRequest, ledger: Ledger) -> int:
        room, wanted = self.room(request), self._reply_tokens(request)
        if room < 0:
            rule = f"the prompt and {wanted} tokens of reply do not fit the model's context"
            hint = "send less text, or serve the model with a larger context"
            raise ModelOverflow(rule, value=f"{-room} tokens too many", hint=hint)
        left = ledger.affordable(self._prompt_tokens.of(request))
        if left < min(LEAST_TOKENS, wanted):
            rule = "the run's tokens or its money do not suffice for another call of the model"
            hint = "allow more with CARREL_BUDGET__TOKENS or CARREL_BUDGET__COST"
            raise ModelOverflow(rule, hint=hint)
        return min(wanted, left)

    def _receive(self, request: ChatRequest, ledger: Ledger, incoming: IncomingReply) -> ChatReply:
        call = RunningCall.within(ledger, self.settings)
        with self._slots.lease(ledger.owner) as lease, open_call(call):
            lease = self._with_prefix(lease, request, call)
            sent = parameters(self.capabilities, request, incoming.limit, lease, ledger.owner)
            self._stream(request, sent, call, incoming)
            reply = incoming.end()
        if not reply.text:
            hint = "a larger model or CARREL_LLM__THINKING_TOKENS may help"
            raise ModelReplyError("the model's reply is empty", hint=hint)
        return reply

    def _with_prefix(self, lease: Lease, request: ChatRequest, call: RunningCall) -> Lease:
        """Let a slot that is cold, or had another kind of prompt, hold what this kind begins with.

        It tells nobody anything: it is the same for all, and what another has asked is gone.
        """
        hold = getattr(self.llm, "hold_prefix", None)
        static = to_messages(request)[: request.static]
        if lease.slot is None or not static or hold is None or not self._keeps_prefixes:
            return lease
        kind = prompt_hash(ChatRequest(request.messages[: request.static], 0))
        if lease.use_cache and self._prefixes.get(lease.slot) == kind:
            return lease
        self._prefixes[lease.slot] = kind
        try:
            self._keeps_prefixes = hold(lease.slot, static)
        except ModelError:
            raise
        except Exception as error:  # of a library: the full prompt is read then
            if call.error is not None:
                raise call.error from error
            self._keeps_prefixes = False
        return Lease(lease.slot, use_cache=True) if self._keeps_prefixes else lease

    def _stream(
        self, request: ChatRequest, sent: dict[str, Any], call: RunningCall, incoming: IncomingReply
    ) -> None:
        def written() -> Iterator[BaseMessageChunk]:
            # no callbacks: those of the graph would hand unverified text to whoever streams it
            return self.llm.stream(to_messages(request), config={"callbacks": []}, **sent)

        # the library of a provider keeps no clocks of ours
        stream = run_in_thread(written) if self.capabilities.kind == "provider" else written()
        with closing(stream):  # type: ignore[type-var]
            call.check()
            while (chunk := self._next(stream, call)) is not None:
                if incoming.take(chunk):
                    call.token()
                call.check()
                if incoming.cut:
                    return
        if incoming.finish is None and self.capabilities.kind not in ("in-process", "provider"):
            rule = "the model server ended a reply before it was finished"
            raise ModelUnavailable(rule, hint=LOOK)

    def _next(
        self, stream: Iterator[BaseMessageChunk], call: RunningCall
    ) -> BaseMessageChunk | None:
        try:
            return next(stream, None)
        except CarrelError:
            raise
        except Exception as error:  # of a library; a caller's own exception comes from elsewhere
            if self.capabilities.kind == "provider":
                rule = "the provider of the model failed"
                raise ModelUnavailable(rule, value=str(error)[:300]) from error
            rule, value = "the model's reply cannot be read", str(error) or repr(error)
            raise call.error or ModelReplyError(rule, value=value) from error

    def _record(
        self,
        request: ChatRequest,
        incoming: IncomingReply,
        began: float,
        verb: str,
        outcome: CallOutcome,
        error: str,
    ) -> ModelCall:
        usage = incoming.usage
        prompt = usage.get("input_tokens")
        if not prompt:
            prompt = self._prompt_tokens.of(request) if incoming.tokens else 0
        return ModelCall(
            verb=verb,
            prompt_hash=prompt_hash(request),
            outcome=outcome,
            prompt_tokens=int(prompt),
            cached_tokens=int((usage.get("input_token_details") or {}).get("cache_read") or 0),
            completion_tokens=int(usage.get("output_tokens") or incoming.tokens),
            first_ms=(incoming.first_at - began) * 1000 if incoming.first_at else 0.0,
            ms=(time.monotonic() - began) * 1000,
            reply=incoming.raw,
            error=error,
        )


def _outcome(failure: ModelError, incoming: IncomingReply) -> CallOutcome:
    if isinstance(failure, ModelTimeout):
        return "timeout"
    if isinstance(failure, ModelUnavailable):
        return "unavailable"
    if isinstance(failure, ModelOverflow):
        return "overflow"
    if isinstance(failure, ModelCancelled):
        return "cancelled"
    return "length" if incoming.finish == "length" else "invalid"


UNKNOWN_CONTEXT = 8192  # of a provider that is not asked for it; llm_context says otherwise


def provider_chat(settings: Settings) -> GuardedChat:
    """Return the guarded chat model of `settings.llm.provider`.

    Raises OperatorError without LangChain or the provider's package, ModelError for a model that
    the provider's package does not take.
    """
    require_extra("providers", "a model of another provider", value=settings.llm.provider)
    from langchain.chat_models import init_chat_model

    try:
        llm = init_chat_model(settings.llm.provider, temperature=settings.llm.temperature)
    except ImportError as error:
        rule = "the package of the provider is not installed"
        raise OperatorError(rule, value=settings.llm.provider, hint=str(error)) from None
    except Exception as error:  # of a provider's package: a key that is missing, a name
        rule = "the provider does not take this model"
        raise ModelError(rule, value=settings.llm.provider, hint=str(error)[:300]) from error
    provider, _, name = settings.llm.provider.partition(":")
    can = Capabilities(
        kind="provider",
        model=name or provider,
        served=[name or provider],
        context=settings.llm.context or UNKNOWN_CONTEXT,
        digest=hashlib.sha256(settings.llm.provider.encode()).hexdigest()[:24],
    )
    return GuardedChat(llm, can, settings)
