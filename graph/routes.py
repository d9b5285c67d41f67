"""The edges: pure functions of the state."""

from __future__ import annotations

from typing import Literal

from langgraph.types import Send

from graph.state import MAX_DRAFTS, State
from reasoning.planning.running import NodeName, node_of, operation_named


def after_understand(state: State) -> Literal["clarify", "retrieve", "plan"] | list[Send]:
    """Ask back about a question that names nothing.

    One that is surely plain goes straight to its search, any other to the planner.
    """
    if state.get("clarification") is not None:
        return "clarify"
    return _searched(state) if state["path"] == "plain" else "plan"


def after_plan(
    state: State,
) -> Literal["retrieve", "extract", "compose_query", "merge_hits", "generate"] | list[Send]:
    """Send each operation of the wave to its node; several run side by side."""
    return sent(state)


def after_rewrite(state: State) -> Literal["retrieve"] | list[Send]:
    """Search again for everything that was too weak."""
    return _searched(state)


def _searched(state: State) -> Literal["retrieve"] | list[Send]:
    target = sent(state)
    return target if isinstance(target, list) else "retrieve"


def sent(state: State) -> NodeName | list[Send]:
    """Return the node of the wave's only operation, or a Send for each of several."""
    operations = [operation_named(state["operations"], out) for out in state["wave"]]
    if len(operations) == 1:
        return node_of(operations[0])
    return [Send(node_of(one), {**state, "operation": one}) for one in operations]


def after_stop_condition(
    state: State,
) -> Literal["generate", "rewrite", "plan", "refuse", "clarify"]:
    """Follow what the stop condition decided."""
    match state["outcome"]:
        case "enough":
            return "generate"
        case "weak":
            return "rewrite"
        case "next":
            return "plan"
        case "never":
            return "refuse"
        case "unclear":
            return "clarify"


def after_clarify(state: State) -> Literal["understand", "refuse"]:
    """Begin again with the completed question, or refuse when nothing offered was meant."""
    return "refuse" if state["outcome"] == "never" else "understand"


def after_verify(state: State) -> Literal["__end__", "generate", "refuse"]:
    """End with a verified answer; else write once more, then refuse."""
    if state.get("answer") is not None:
        return "__end__"
    return "generate" if state.get("drafts", 0) < MAX_DRAFTS else "refuse"
