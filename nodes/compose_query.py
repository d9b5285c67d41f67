"""Fill the slots of a question with the values that were found."""

from __future__ import annotations

from langgraph.runtime import Runtime

from core.operations import ComposeQuery, Register
from graph.context import Context
from graph.reading import collect_settled, operation_of
from graph.state import State, Update
from reasoning.planning.slots import compose_queries


def compose_query(state: State, runtime: Runtime[Context]) -> Update:
    """Write one query for each value, within the fan-out."""
    context = runtime.context
    began = context.clock()
    operation = operation_of(state)
    if not isinstance(operation, ComposeQuery):
        raise TypeError(f"{operation.op} composes no query")
    queries = compose_queries(
        operation,
        state["plan"],
        state.get("registers") or {},
        collect_settled(state),
        operation.fan_out,
    )
    known = any(query.values for query in queries)
    step = context.step(
        "compose_query",
        began,
        decision="; ".join(query.query for query in queries),
        reason="" if known else "no value was found: the slot is described in words",
        question_id=operation.question,
        evidence=[(value.evidence_id, 1.0) for query in queries for value in query.values.values()],
    )
    return {
        "registers": {operation.out: Register(kind="queries", queries=queries)},
        "usage": context.elapsed(state["started"]),
        "trail": [step],
    }
