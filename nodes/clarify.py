"""Ask back, and go on with what is replied."""

from __future__ import annotations

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.runtime import Runtime
from langgraph.types import Overwrite, interrupt

from core.budget import Usage
from core.trace import Step
from core.types import StopReason
from graph.context import Context
from graph.reading import STANDS_FOR
from graph.state import State, Update
from reasoning.clarifying import chosen, clarification_text, declined, joined


def clarify(state: State, runtime: Runtime[Context]) -> Update:
    """Wait for a reply; "none of these" ends in the refusal, any other completes the question.

    The time until then does not count. What was found before is dropped: the caller's rights may
    have changed since.
    """
    asked = state["clarification"]
    if asked is None:
        raise TypeError("there is nothing to ask")
    reply = chosen(str(interrupt(asked.model_dump())), asked)
    question = state["question"]
    refused = declined(reply, question)
    full = question if refused else joined(question, reply, asked)
    usage = state["usage"]
    update: Update = {"stop_reason": StopReason.no_relevant_evidence} if refused else {}
    return update | {
        "clarified": state.get("clarified", 0) + 1,
        "clarification": None,
        "outcome": "never" if refused else "unclear",
        "messages": [
            AIMessage(clarification_text(asked)),
            HumanMessage(reply, additional_kwargs={STANDS_FOR: full}),
        ],
        "evidence": Overwrite([]),
        "started": runtime.context.clock() - usage.ms / 1000,
        "usage": Usage(steps=1, ms=usage.ms),
        "trail": [Step(node="clarify", decision="declined" if refused else reply, reason=full)],
    }
