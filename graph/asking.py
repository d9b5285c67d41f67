"""One question put to the graph: followed to its end, kept as a run, alone or in a conversation."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, cast

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, Overwrite

from core.auth import AuthContext
from core.errors import CarrelError, OperatorError, StorageError, StorageUnavailableError, shorten
from core.notes import NoteDraft
from core.trace import RunRecord, Step, StreamEvent
from core.types import Answer, Clarification, StopReason
from graph.context import Context
from graph.notes_store import NotesCaller, NotesStore
from graph.record import run_result
from graph.recording import Recorder
from graph.remembering import TurnNotes, notes_of_turn, of_run
from graph.state import Graph
from graph.threads import INTERRUPT, open_threads
from models.chat.types import ModelCancelled
from reasoning.clarifying import is_reply
from reasoning.types import Turn
from reasoning.worth import Worth
from stores.runlog.conversations import Conversation, KeptTurn, Waiting
from stores.sqlite.database import damaged
from stores.store import Store
from tools.note_tools import Memory

TITLE_CHARS = 80  # longest title of a conversation, cut from its question

LOST = (
    "the state of this conversation was damaged or gone: it went on from its kept turns, without a"
    " question that waited for a reply"
)
CLOSED = (
    "this conversation found documents that are gone or closed to you: it went on from what"
    " stays of its turns, without a question that waited for a reply"
)


@dataclass
class ActiveRun:
    """One question while the graph answers it: its callbacks, and its steps and state so far."""

    question: str
    collection: str
    context: Context
    on_step: Callable[[Step], None] | None = None
    on_stream: Callable[[StreamEvent], None] | None = None
    trail: list[Step] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=dict)
    where: Sequence[str] = ()  # filters of its documents
    recorder: Recorder = field(default_factory=Recorder)
    rebuilt: str = ""  # why its conversation goes on from kept turns, not from its state

    @property
    def recorded(self) -> Context:
        """Return the context by which what the run reads is recorded."""
        return self.recorder.context(self.context)

    def step(self, step: Step) -> None:
        """Note a step and show it."""
        self.trail.append(step)
        if self.on_step is not None:
            self.on_step(step)

    def take(self, mode: str, data: object) -> None:
        """Note what the graph says: its state, steps, and sentences of the answer."""
        if mode == "custom":
            if self.on_stream is not None and isinstance(data, StreamEvent):
                self.on_stream(data)
        elif mode == "values":
            self.state = cast(dict[str, Any], data)
        else:
            for node, update in cast(dict[str, Any], data).items():
                if node != INTERRUPT:
                    trail = (update or {}).get("trail", [])
                    # In the place of the steps of a run that waited for a reply and gets none.
                    for step in trail.value if isinstance(trail, Overwrite) else trail:
                        self.step(step)

    def ended(self) -> dict[str, Any]:
        """Return the state that the graph ended in, or waits in for a reply."""
        asks: Clarification | None = self.state.get("clarification")
        if asks is not None:
            step = Step(node="clarify", decision=asks.question, reason="; ".join(asks.options))
            self.step(step)
            self.state = {**self.state, "trail": [*self.state["trail"], step]}
        return self.state


class Asking:
    """Put questions to the graph and keep what becomes of them."""

    def __init__(
        self,
        graph: Graph,
        store: Store,
        warnings: Callable[[], Sequence[str]],
        memory: Callable[[AuthContext], Memory],
        worth: Worth,
    ) -> None:
        """Use an open store; `warnings` gives those of the session, added to every run.

        `memory` gives the notes of a caller, `worth` tells what is worth one.
        """
        self._graph = graph
        self._runs, self._folder = store.runs, store.folder
        self._catalogue = store.catalogue
        self._warnings, self._memory, self._worth = warnings, memory, worth
        self.threads = open_threads(store.folder, store.address)

    def alone(self, asked: ActiveRun, history: Iterable[Turn]) -> RunRecord:
        """Answer a question that stands for itself, with the history it came with."""
        messages: list[AnyMessage] = []
        for turn in history:
            messages += [HumanMessage(turn.question), AIMessage(turn.answer)]
        messages.append(HumanMessage(asked.question))
        try:
            for mode, data in stream(self._graph, {"messages": messages}, asked.recorded):
                asked.take(mode, data)
        except (KeyboardInterrupt, ModelCancelled):
            self._cancelled(asked)
            raise
        return self._saved(asked, self._record(asked, asked.ended()))

    def within(self, conversation: Conversation, asked: ActiveRun) -> RunRecord:
        """Answer the next question of a conversation, or go on with the run that asked back.

        Such a run keeps its id, its question and what it has spent. A run that does not end well
        leaves the conversation as it was. What is no reply is a turn of its own.
        """
        name = conversation.id
        self.threads.keep(name, conversation.checkpoint_id)
        waiting, text = conversation.waiting, asked.question
        asked.rebuilt = self._unusable(conversation, asked.context.auth)
        notes = self._take_notes(conversation, asked)
        if notes.shown or (waiting and not is_reply(text, waiting.clarification)):
            waiting = None
        given: Any
        if asked.rebuilt or waiting is None or not self.threads.latest(name):
            waiting = None
            kept = self._kept(conversation, asked.context.auth) if asked.rebuilt else []
            # The state may have the question that waited for a reply.
            given = {"messages": [*kept, HumanMessage(text)], "question": text}
        else:
            given = Command(resume=text)
        auth = asked.context.auth.rights
        store = NotesStore(lambda: NotesCaller(auth, self._memory(auth)))
        graph = self._graph.copy(update={"checkpointer": self.threads.saver, "store": store})
        try:
            for mode, data in stream(graph, given, asked.recorded, name):
                asked.take(mode, data)
            state = asked.ended()
            if self.threads.latest(name) == conversation.checkpoint_id:
                return self._not_kept(name, asked, "its state could not be written")
            run = self._turn(conversation, waiting, asked, state)
            self._remember(asked.context, run, notes.drafts)
            return run
        except (StorageUnavailableError, OperatorError) as error:
            if asked.state.get("answer") is None:
                raise
            if isinstance(error, StorageError):
                error = damaged(self._folder, error)
            return self._not_kept(name, asked, str(error))
        except (KeyboardInterrupt, ModelCancelled):
            self._cancelled(asked)
            raise
        finally:
            self._tidy(conversation, asked.context.auth)

    def _unusable(self, conversation: Conversation, auth: AuthContext) -> str:
        """Say why a conversation cannot go on from its state, "" where it can; delete that state.

        It holds answers word for word, also those whose documents are closed to the caller now.
        """
        if not conversation.checkpoint_id:
            return ""
        if self._runs.is_closed(auth, conversation):
            self.threads.delete(conversation.id)
            return CLOSED
        waits = conversation.waiting is not None
        return "" if self.threads.can_resume(conversation.id, waits=waits) else LOST

    def _kept(self, conversation: Conversation, auth: AuthContext) -> list[AnyMessage]:
        """Return the text of the kept turns, as far as the caller may see it now."""
        messages: list[AnyMessage] = []
        for turn in self._runs.turns(auth, conversation):
            if turn["answer"]:
                messages += [HumanMessage(turn["question"]), AIMessage(turn["answer"])]
        return messages

    def _not_kept(self, name: str, asked: ActiveRun, reason: str) -> RunRecord:
        """Return an answer that its conversation could not take in: it is worth more."""
        run = self._record(asked, asked.state)
        run.result["conversation_id"] = name
        run.result["warnings"].append(f"the conversation does not know this turn: {reason}")
        return self._saved(asked, run)

    def _tidy(self, conversation: Conversation, auth: AuthContext) -> None:
        """Keep the state alone that the catalogue names by now; the next question does it again."""
        with suppress(CarrelError):  # it must not hide an answer, or the error of the run
            now = self._runs.load_conversation(auth, conversation.id)
            self.threads.keep(now.id, now.checkpoint_id)

    def _turn(
        self,
        conversation: Conversation,
        waiting: Waiting | None,
        asked: ActiveRun,
        state: dict[str, Any],
    ) -> RunRecord:
        """Keep a run and its turn, and the one state that the conversation goes on from."""
        name, reply = conversation.id, ""
        if waiting is not None:
            asked.question, reply = waiting.question, asked.question
        run = self._record(asked, state, waiting.run_id if waiting else "")
        run.result["conversation_id"] = name
        if asked.rebuilt:
            run.result["warnings"].append(asked.rebuilt)
        redacted = self._save(asked, run)
        if redacted:  # of a document that was deleted meanwhile; the state has its text too
            self.threads.delete(name)
        asks: Clarification | None = state.get("clarification")
        turn = KeptTurn(
            run_id=run.run_id,
            question=asked.question,
            clarification=None
            if redacted
            else asks or (waiting.clarification if waiting else None),
            reply=reply,
        )
        self._runs.save_turn(
            conversation,
            turn,
            "" if redacted else self.threads.latest(name),
            title=shorten(asked.question, TITLE_CHARS),
            waiting=asks is not None and not redacted,
        )
        return run

    def _take_notes(self, conversation: Conversation, asked: ActiveRun) -> TurnNotes:
        """Return the notes that a turn leaves once it is kept; its context knows of them."""
        context = asked.context
        if not context.settings.memory:
            return TurnNotes([], ())
        auth, memory = context.auth.rights, self._memory(context.auth)
        notes = notes_of_turn(self._runs, memory, auth, conversation, asked.question, self._worth)
        asked.context = replace(context, noted=notes.shown)
        return notes

    def _remember(self, context: Context, run: RunRecord, drafts: Sequence[NoteDraft]) -> None:
        """Write the notes of a turn that is kept; the answer is worth more than they."""
        if not drafts:
            return
        try:
            memory = self._memory(context.auth)
            memory.remember(context.auth.rights, [of_run(one, run.run_id) for one in drafts])
        except (StorageError, CarrelError) as error:
            run.result["warnings"].append(f"the memory does not know this turn: {error}")

    def close(self) -> None:
        """Close the file of conversations."""
        self.threads.close()

    def _cancelled(self, asked: ActiveRun) -> None:
        answer = Answer(text="", refused=True, stop_reason=StopReason.cancelled)
        self._saved(asked, self._record(asked, {"answer": answer, "trail": asked.trail}))

    def _record(self, asked: ActiveRun, state: dict[str, Any], run_id: str = "") -> RunRecord:
        """Return the record of a run that has ended in this state, new where no id is given.

        A run that asks back has ended for now; the one its reply goes on with has the same id.
        """
        run_id = run_id or uuid.uuid4().hex[:12]
        warnings = self._warnings()
        result = run_result(run_id, state, warnings)
        return RunRecord(
            run_id=run_id,
            tenant=asked.context.auth.tenant,
            user=asked.context.auth.user,
            collection=asked.collection,
            question=asked.question,
            pipeline=asked.context.pipeline,
            created_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
            index_version=self._catalogue.index_version(),
            result=result,
            # Steps of operations that ran side by side came as they ended; the state orders them.
            trail=state["trail"],
            recording=asked.recorder.encoded(
                asked.context, state, result, asked.where, len(warnings)
            ),
        )

    def _saved(self, asked: ActiveRun, run: RunRecord) -> RunRecord:
        self._save(asked, run)
        return run

    def _save(self, asked: ActiveRun, run: RunRecord) -> bool:
        """Keep a run; return whether text of deleted documents had to be left out."""
        try:
            return self._runs.save(run, asked.context.auth)
        except (StorageError, OperatorError) as error:
            # The answer is worth more than its record: a full disk must not swallow it.
            folder = self._folder
            reason = damaged(folder, error) if isinstance(error, StorageError) else error
            run.result["warnings"].append(f"the run was not kept: {reason}")
        return False


def stream(
    graph: Graph,
    given: Any,  # noqa: ANN401 - LangGraph's own
    context: Context,
    thread: str = "",
) -> Iterator[Any]:
    """Start the graph and return its events, each with its mode.

    `given` is its input, or what a reply resumes it with.
    """
    config: RunnableConfig = {"recursion_limit": 4 * context.budget.steps + 10}
    if thread:
        config["configurable"] = {"thread_id": thread}
    return graph.stream(
        given,
        context=context,
        config=config,
        stream_mode=["updates", "values", "custom"],
        durability="exit" if thread else None,
    )
