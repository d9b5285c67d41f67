"""Any chat model that LangChain knows, by "provider:name", behind the same clocks and budget."""

from __future__ import annotations

import hashlib
import queue
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from langchain_core.messages import BaseMessage, BaseMessageChunk

from core.distribution import require_extra
from core.errors import CarrelError, ModelError, OperatorError
from core.settings import Settings
from models.chat.guarded import GuardedChat
from models.chat.running import POLL_SECONDS, running_call
from models.chat.types import Capabilities, ModelUnavailable

UNKNOWN_CONTEXT = 8192  # of a provider that is not asked for it; llm_context says otherwise
MOST_WAITING = 256  # pieces of a reply


class ProviderChat:
    """Stream a LangChain chat model from a thread, so that a silent one can be left.

    Its library keeps no clocks of ours: between two pieces the running call is looked at.
    """

    def __init__(self, llm: Any) -> None:  # noqa: ANN401  # any of LangChain's
        """Stream `llm`."""
        self._llm = llm

    def stream(
        self,
        messages: Sequence[BaseMessage],
        config: Any = None,  # noqa: ANN401
        **given: Any,  # noqa: ANN401
    ) -> Iterator[BaseMessageChunk]:
        """Yield the pieces of a reply; raises ModelUnavailable for an error of the provider."""
        pieces: queue.Queue[BaseMessageChunk | Exception | None] = queue.Queue(MOST_WAITING)
        left = threading.Event()

        def write(piece: BaseMessageChunk | Exception | None) -> None:
            while not left.is_set():
                with suppress(queue.Full):
                    pieces.put(piece, timeout=POLL_SECONDS)
                    return

        def read() -> None:
            try:
                for chunk in self._llm.stream(messages, config=config, **given):
                    if left.is_set():
                        return
                    write(chunk)
                write(None)
            except Exception as error:  # of a library; it goes on in the caller's thread
                write(error)

        call = running_call()
        threading.Thread(target=read, daemon=True).start()
        try:
            while True:
                try:
                    piece = pieces.get(timeout=POLL_SECONDS)
                except queue.Empty:
                    if call is not None:
                        call.check()
                    continue
                if piece is None:
                    return
                if isinstance(piece, CarrelError):
                    raise piece
                if isinstance(piece, Exception):
                    rule = "the provider of the model failed"
                    raise ModelUnavailable(rule, value=str(piece)[:300]) from piece
                yield piece
        finally:
            left.set()


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
    return GuardedChat(ProviderChat(llm), can, settings)  # type: ignore[arg-type]  # it streams
