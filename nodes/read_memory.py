"""Read notes that were found."""

from __future__ import annotations

from langgraph.runtime import Runtime

from graph.context import Context
from graph.state import State, Update
from nodes.keyword_search import act


def read_memory(state: State, runtime: Runtime[Context]) -> Update:
    """Read notes that were found, with those linked to them."""
    return act(state, runtime.context)
