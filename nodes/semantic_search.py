"""Find notes by meaning."""

from __future__ import annotations

from langgraph.runtime import Runtime

from graph.context import Context
from graph.state import State, Update
from nodes.keyword_search import act


def semantic_search(state: State, runtime: Runtime[Context]) -> Update:
    """Find notes by meaning."""
    return act(state, runtime.context)
