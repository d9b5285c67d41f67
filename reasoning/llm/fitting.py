"""Make a prompt fit the model's context and the run's tokens: the lowest-ranked items go first."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from core.budget import current_ledger
from core.language.tokens import estimate_tokens
from core.types import Evidence
from models.chat.types import ChatModel, ChatRequest, ModelOverflow

I = TypeVar("I")  # noqa: E741 - the items of a prompt
CUT_STEP = 64  # characters


def fits(chat: ChatModel, request: ChatRequest) -> bool:
    """Tell whether a request fits the context, and by estimate what the run may still spend."""
    return _affordable(request) and chat.room(request) >= 0


def _affordable(request: ChatRequest) -> bool:
    read = sum(estimate_tokens(message.content) for message in request.messages)
    return read + request.max_tokens <= current_ledger().tokens_left()


def fitted(
    chat: ChatModel, make: Callable[[Sequence[I]], ChatRequest], items: Sequence[I]
) -> tuple[ChatRequest, Sequence[I]]:
    """Return a request that fits, with the items it shows.

    The last items are dropped first; when one piece of evidence alone is too long, its end is cut.
    Raises ModelOverflow when not even the rest of the prompt fits.
    """
    request = make(items)
    if fits(chat, request):
        return request, items
    bare = make(())
    if not fits(chat, bare):
        rule = (
            "the prompt does not fit the model's context"
            if _affordable(bare)
            else "too few of the run's tokens are left"
        )
        raise ModelOverflow(rule)
    count = _largest(len(items) - 1, lambda n: fits(chat, make(items[:n])))
    kept = items[:count]
    if not kept and isinstance(items[0], Evidence):
        kept = cast(Sequence[I], _cut(items[0], lambda one: fits(chat, make([cast(I, one)]))))
        if not kept:
            raise ModelOverflow("no evidence fits the model's context")
    return make(kept), kept


def _cut(item: Evidence, good: Callable[[Evidence], bool]) -> Sequence[Evidence]:
    """Return the longest beginning of a piece of evidence that is good; nothing for none."""

    def beginning(steps: int) -> Evidence:
        return item.model_copy(update={"text": item.text[: steps * CUT_STEP]})

    steps = _largest(len(item.text) // CUT_STEP, lambda n: good(beginning(n)))
    return [beginning(steps)] if steps else []


def _largest(limit: int, good: Callable[[int], bool]) -> int:
    """Return the largest number from 1 to `limit` that is good, 0 for none; small ones are."""
    return bisect_left(range(1, limit + 1), True, key=lambda number: not good(number))
