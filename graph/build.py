"""Wire the nodes: the drawing of this graph is the control flow. Its routes are pure functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Literal, cast

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from core.recall import KEYWORD_SEARCH, READ_MEMORY, SEMANTIC_SEARCH
from graph.context import Context
from graph.reading import recall_of
from graph.state import MAX_DRAFTS, Graph, InputState, OutputState, State, Update
from nodes.choose_action import choose_action
from nodes.clarify import clarify
from nodes.compose_query import compose_query
from nodes.extract import extract
from nodes.final_answer import final_answer
from nodes.generate import generate
from nodes.grade_documents import grade_documents
from nodes.keyword_search import keyword_search
from nodes.merge_hits import merge_hits
from nodes.plan import plan
from nodes.read_memory import read_memory
from nodes.refuse import refuse
from nodes.retrieve import retrieve
from nodes.rewrite import rewrite
from nodes.semantic_search import semantic_search
from nodes.stop_condition import stop_condition
from nodes.understand import understand
from nodes.verify import verify
from reasoning.planning.compiler import NodeName, node_of, operation_named


def after_understand(
    state: State,
) -> Literal["clarify", "choose_action", "plan", "refuse"] | NodeName | list[Send]:
    """Ask back about a question that names nothing; refuse where the budget allows no search.

    One about its speaker goes to memory first, one that is surely plain straight to its search, any
    other to the planner.
    """
    if state.get("clarification") is not None:
        return "clarify"
    if state.get("outcome") == "never":
        return "refuse"
    recall = state.get("recall")
    return "choose_action" if recall is not None and recall.first else to_documents(state)


def to_documents(state: State) -> Literal["plan"] | NodeName | list[Send]:
    """Search for a question that is surely plain, plan any other."""
    return sent(state) if state["path"] == "plain" else "plan"


Action = Literal["keyword_search", "semantic_search", "read_memory", "final_answer"]


def after_choose_action(state: State) -> Action:
    """Carry out the action that was chosen."""
    action = recall_of(state).action
    return cast(Action, action.tool if action is not None else "final_answer")


def after_final_answer(
    state: State,
) -> Literal["verify", "plan", "refuse", "clarify"] | NodeName | list[Send]:
    """Check what memory answers; else ask the documents, or end where they were asked."""
    match state["outcome"]:
        case "enough":
            return "verify"
        case "never":
            return "refuse"
        case "unclear":
            return "clarify"
    return to_documents(state)


def sent(state: State) -> NodeName | list[Send]:
    """Return the node of the wave's only operation, or a Send for each of several."""
    operations = [operation_named(state["operations"], out) for out in state["wave"]]
    if len(operations) == 1:
        return node_of(operations[0])
    return [Send(node_of(one), {**state, "operation": one}) for one in operations]


def after_stop_condition(
    state: State,
) -> Literal["generate", "rewrite", "plan", "refuse", "clarify", "choose_action"]:
    """Follow what the stop condition decided; what no document answers, memory may."""
    recall = state.get("recall")
    if state["outcome"] in ("never", "unclear") and recall is not None and not recall.over:
        return "choose_action"
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
    choose_action,
    keyword_search,
    semantic_search,
    read_memory,
    final_answer,
    generate,
    verify,
    refuse,
)


def _in_own_context(node: Node) -> Node:
    """Return the node with the context that its run gives to it alone."""

    @wraps(node)
    def run(state: State, runtime: Runtime[Context]) -> Update:
        context = runtime.context
        if context.within is None:
            return node(state, runtime)
        own = context.within(context, node.__name__, state)
        return node(state, runtime.override(context=own))

    return run


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
        builder.add_node(name, cast(Any, wrap(node) if wrap else _in_own_context(node)))
    builder.add_edge(START, "understand")
    builder.add_conditional_edges(
        "understand", after_understand, ["retrieve", "plan", "clarify", "choose_action", "refuse"]
    )
    builder.add_conditional_edges("choose_action", after_choose_action)
    for name in (KEYWORD_SEARCH, SEMANTIC_SEARCH, READ_MEMORY):
        builder.add_edge(name, "choose_action")
    builder.add_conditional_edges(
        "final_answer", after_final_answer, ["verify", "retrieve", "plan", "refuse", "clarify"]
    )
    builder.add_conditional_edges("plan", sent, [*OPERATING])
    for name in OPERATING:
        if name != "retrieve":
            builder.add_edge(name, "stop_condition")
    builder.add_edge("retrieve", "grade_documents")
    builder.add_edge("grade_documents", "stop_condition")
    builder.add_conditional_edges("stop_condition", after_stop_condition)
    builder.add_conditional_edges("rewrite", sent, ["retrieve"])
    builder.add_conditional_edges("clarify", after_clarify)
    builder.add_edge("generate", "verify")
    builder.add_conditional_edges("verify", after_verify)
    builder.add_edge("refuse", END)
    return builder.compile(name="carrel")
