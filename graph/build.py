"""Wire the nodes: the drawing of this graph is the control flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from graph.context import Context
from graph.routes import (
    after_clarify,
    after_plan,
    after_rewrite,
    after_stop_condition,
    after_understand,
    after_verify,
)
from graph.state import Graph, InputState, OutputState, State, Update
from nodes.clarify import clarify
from nodes.compose_query import compose_query
from nodes.extract import extract
from nodes.generate import generate
from nodes.grade_documents import grade_documents
from nodes.merge_hits import merge_hits
from nodes.plan import plan
from nodes.refuse import refuse
from nodes.retrieve import retrieve
from nodes.rewrite import rewrite
from nodes.stop_condition import stop_condition
from nodes.understand import understand
from nodes.verify import verify

Node = Callable[[State, Runtime[Context]], Update]
NODES: tuple[Node, ...] = (
    understand,
    plan,
    retrieve,
    grade_documents,
    extract,
    compose_query,
    merge_hits,
    stop_condition,
    rewrite,
    clarify,
    generate,
    verify,
    refuse,
)
OPERATING = ("retrieve", "extract", "compose_query", "merge_hits")


def build_graph(
    wrap: Callable[[Node], Node] | None = None, context_schema: type[Any] = Context
) -> Graph:
    """Compile the graph without a checkpointer.

    `wrap` lets Studio supply the context where no caller does.
    """
    builder = StateGraph(
        State,
        context_schema=context_schema,
        input_schema=InputState,
        output_schema=OutputState,
    )
    for node in NODES:
        name = node.__name__
        # LangGraph's overloads know such nodes as plain functions, not as items of a tuple.
        builder.add_node(name, cast(Any, wrap(node) if wrap else node))
    builder.add_edge(START, "understand")
    builder.add_conditional_edges("understand", after_understand, ["retrieve", "plan", "clarify"])
    builder.add_conditional_edges("plan", after_plan, [*OPERATING])
    for name in OPERATING:
        if name != "retrieve":
            builder.add_edge(name, "stop_condition")
    builder.add_edge("retrieve", "grade_documents")
    builder.add_edge("grade_documents", "stop_condition")
    builder.add_conditional_edges("stop_condition", after_stop_condition)
    builder.add_conditional_edges("rewrite", after_rewrite, ["retrieve"])
    builder.add_conditional_edges("clarify", after_clarify)
    builder.add_edge("generate", "verify")
    builder.add_conditional_edges("verify", after_verify)
    builder.add_edge("refuse", END)
    return builder.compile(name="carrel")
