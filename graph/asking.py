"""One question put to the graph: followed to its end, kept as a run, alone or in a conversation."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig

from core.errors import shorten
from core.streaming import StreamEvent
from core.trace import RunRecord, Step
from core.types import Answer, Clarification, StopReason
from graph.context import Context
from graph.record import run_record
from graph.state import Graph
from graph.threads import Threads
from models.chat.types import ModelCancelled
from reasoning.types import Turn
from stores.conversations import Conversation, KeptTurn
from stores.database import damaged
from stores.store import Store

INTERRUPT = "__interrupt__"


@dataclass
class Asked:
    """Hold one question as it was asked, who watches it, and the steps made so far."""

    question: str
    collection: str
    context: Context
    on_step: Callable[[Step], None] | None = None
    on_stream: Callable[[StreamEvent], None] | None = None
    trail: list[Step] = field(default_factory=list)

    def step(self, step: Step) -> None:
        """Note a step and show it."""
        self.trail.append(step)
        if self.on_step is not None:
            self.on_step(step)


class Ended(NamedTuple):
    """Hold the state in which a run ended, or in which it waits for a reply."""

    state: dict[str, Any]
    clarification: Clarification | None


class Asking:
    """Put questions to the graph and keep what becomes of them."""

    def __init__(self, graph: Graph, store: Store, warnings: Sequence[str]) -> None:
        """Use an open store; `warnings` are those of the session, told with every run."""
        self._graph = graph
        self._store = store
        self._warnings = warnings
        self.threads = Threads(store.folder)

    def alone(self, asked: Asked, history: Iterable[Turn]) -> RunRecord:
        """Answer a question that stands for itself, with the history it came with."""
        messages: list[AnyMessage] = []
        for turn in history:
            messages += [HumanMessage(turn.question), AIMessage(turn.answer)]
        messages.append(HumanMessage(asked.question))
        try:
            ended = followed(self._graph, {"messages": messages}, asked)
        except (KeyboardInterrupt, ModelCancelled):
            self._cancelled(asked)
            raise
        return self._saved(self._record(asked, ended))

    def within(self, conversation: Conversation, asked: Asked) -> RunRecord:
        """Answer the next question of a conversation, or go on with what waits for a reply.

        A run that does not end well leaves the conversation as it was.
        """
        name = conversation.id
        self.threads.keep(name, conversation.checkpoint_id)
        graph = self._graph.copy(update={"checkpointer": self.threads.saver})
        try:
            ended = followed(graph, {"messages": [HumanMessage(asked.question)]}, asked, name)
            run = self._record(asked, ended)
            run.result["conversation_id"] = name
            self._saved(run)
            turn = KeptTurn(run.run_id, asked.question)
            title = shorten(asked.question, asked.context.settings.conversation_title_chars)
            kept = self.threads.latest(name)
            self._store.conversations.save_turn(conversation, turn, kept, title=title)
        except BaseException as error:
            self.threads.keep(name, conversation.checkpoint_id)
            if isinstance(error, (KeyboardInterrupt, ModelCancelled)):
                self._cancelled(asked)
            raise
        self.threads.keep(name, kept)
        return run

    def close(self) -> None:
        """Close the file of conversations."""
        self.threads.close()

    def _cancelled(self, asked: Asked) -> None:
        answer = Answer(text="", refused=True, stop_reason=StopReason.cancelled)
        self._saved(self._record(asked, Ended({"answer": answer, "trail": asked.trail}, None)))

    def _record(self, asked: Asked, ended: Ended) -> RunRecord:
        # Steps of operations that ran side by side came as they ended; the state has them in order.
        return run_record(
            asked.context.auth,
            asked.collection,
            asked.question,
            asked.context.pipeline,
            ended.state,
            ended.state["trail"],
            index_version=self._store.catalogue.index_version(),
            warnings=self._warnings,
        )

    def _saved(self, run: RunRecord) -> RunRecord:
        try:
            self._store.runs.save(run)
        except sqlite3.OperationalError as error:
            # The answer is worth more than its record: a full disk must not swallow it.
            reason = damaged(self._store.folder, error)
            run.result["warnings"].append(f"the run was not kept: {reason}")
        return run


def followed(graph: Graph, given: Any, asked: Asked, thread: str = "") -> Ended:  # noqa: ANN401
    """Run the graph and show what happens; `given` is its input, or what a reply resumes with."""
    context = asked.context
    config: RunnableConfig = {"recursion_limit": 4 * context.budget.steps + 10}
    if thread:
        config["configurable"] = {"thread_id": thread}
    state: dict[str, Any] = {}
    for mode, data in graph.stream(
        given,
        context=context,
        config=config,
        stream_mode=["updates", "values", "custom"],
        durability="exit" if thread else None,
    ):
        if mode == "custom":
            if asked.on_stream is not None and isinstance(data, StreamEvent):
                asked.on_stream(data)
            continue
        if mode == "values":
            state = cast(dict[str, Any], data)
            continue
        for node, update in cast(dict[str, Any], data).items():
            for step in [] if node == INTERRUPT else (update or {}).get("trail", []):
                asked.step(step)
    return Ended(state, None)
