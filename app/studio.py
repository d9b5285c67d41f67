"""The graph as LangGraph Studio runs it: the operator's settings supply what Studio cannot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from app.studio_session import studio
from core.errors import CarrelError
from core.question import checked_question
from core.settings import Settings
from graph.build import Node, build_graph
from graph.notes_store import NotesStore
from graph.reading import STANDS_FOR
from graph.state import State, Update, state_serializer
from nodes.understand import asked_in, question_and_history, understand

if TYPE_CHECKING:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver


# Beside the development server's own files, which `.gitignore` names.
THREADS = Path(".langgraph_api") / "threads.sqlite3"


class StudioError(RuntimeError):
    """Carry a CarrelError's line to the client; the server hides messages of unknown types."""


class StudioContext(TypedDict):
    """Show that a client may set nothing: who asks and what is searched are settings."""


def supply_context(node: Node) -> Node:
    """Return the node with the context that a caller would give."""

    @wraps(node)
    def supplied(state: State, runtime: Runtime[Any]) -> Update:
        try:
            context = studio.context()
            if node is understand:
                state = checked(state, context.settings)
            return node(resumed(state, context.clock()), runtime.override(context=context))
        except CarrelError as error:
            raise StudioError(str(error)) from None

    return supplied


def checked(state: State, settings: Settings) -> State:
    """Return the state with its question checked, which a session does for other callers."""
    messages = state.get("messages") or []
    if messages and STANDS_FOR in messages[-1].additional_kwargs:
        return state  # the run goes on with a reply
    asked = asked_in(state, question_and_history(messages)[0])
    text = checked_question(asked, settings)
    if text == asked:
        return state
    if messages and messages[-1].text == asked:  # it is the question, and not another one
        messages = [*messages[:-1], messages[-1].model_copy(update={"content": text})]
    return {**state, "question": text, "messages": messages}


def resumed(state: State, now: float) -> State:
    """Return the state with its start moved so that only the time in nodes counts.

    At a breakpoint, or in a checkpoint that is run again later, the clock must not run on.
    """
    usage = state.get("usage")
    if usage is None:
        return state
    return {**state, "started": now - usage.ms / 1000}


@asynccontextmanager
async def checkpointer() -> AsyncIterator[AsyncSqliteSaver]:
    """Keep threads across restarts; the server's own saver takes no list of allowed types."""
    import aiosqlite
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    await asyncio.to_thread(THREADS.parent.mkdir, exist_ok=True)
    async with aiosqlite.connect(THREADS) as connection:
        yield AsyncSqliteSaver(connection, serde=state_serializer())


store = NotesStore(studio.notes_caller)
graph = build_graph(wrap=supply_context, context_schema=StudioContext)
