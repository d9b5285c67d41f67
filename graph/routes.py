"""The edges: pure functions of the state."""

from __future__ import annotations

from typing import Literal

from graph.state import MAX_DRAFTS, State


def after_understand(state: State) -> Literal["retrieve", "plan"]:
    """Send a plain question straight to its search, a multi-part one to the planner."""
    return "retrieve" if state["query"].kind == "plain" else "plan"


def after_stop_condition(state: State) -> Literal["generate", "rewrite", "plan", "refuse"]:
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


def after_verify(state: State) -> Literal["__end__", "generate", "refuse"]:
    """End with a verified answer; else write once more, then refuse."""
    if state.get("answer") is not None:
        return "__end__"
    return "generate" if state.get("drafts", 0) < MAX_DRAFTS else "refuse"
