"""The states that conversations go on from, in a file of their own beside the catalogue."""

from __future__ import annotations

import sqlite3  # LangGraph has it write a file of its own, with a connection of the library
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.sqlite import SqliteSaver

from core.distribution import load_extra
from core.errors import OperatorError
from graph.state import state_serializer
from stores.encryption import key_statements
from stores.folder import SQLITE
from stores.runlog.conversations import THREADS
from stores.sqlite.database import damaged

BUSY_S = 5.0
INTERRUPT = "__interrupt__"  # LangGraph's name of what a node asks
MESSAGES = 200  # of one thread that are kept, newest last; more than any history reads


# What a state knows from documents, word for word.
FOUND = frozenset({"evidence", "registers", "chosen"})


class StateDamagedError(OperatorError):
    """Say that one stored state is not what was written."""


class ThreadSaver(SqliteSaver):
    """Let a run that is over leave its messages alone, and one that waits nothing that it found.

    The next run searches again, with the rights of its caller.
    """

    def __init__(self, path: Path) -> None:
        """Open or create the file; raises OperatorError."""
        self._path = path
        with explained_threads(path):
            connection = sqlite3.connect(path, check_same_thread=False, timeout=BUSY_S)
            for statement in key_statements():
                connection.execute(statement)
            for pragma in ("secure_delete=ON", "trusted_schema=OFF", "synchronous=FULL"):
                connection.execute(f"PRAGMA {pragma}")
        super().__init__(connection, serde=state_serializer())

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        """Give the one way to the file, whose errors say what the operator must do."""
        with explained_threads(self._path), super().cursor(transaction) as cursor:
            yield cursor

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a state; raises OperatorError when it is not what was written."""
        return read_state(partial(super().get_tuple, config), self._path)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint; of the state of a run that has answered, the newest messages.

        Where that cannot be written the answer is worth more: the state before stays the newest.
        """
        values, answered = kept_values(checkpoint["channel_values"])
        checkpoint = {**checkpoint, "channel_values": values}
        try:
            return super().put(config, checkpoint, metadata, new_versions)
        except OperatorError:
            if not answered:
                raise
            return config


def read_state(
    read: Callable[[], CheckpointTuple | None], place: object = ""
) -> CheckpointTuple | None:
    """Return a state; raises StateDamagedError when it is not what was written."""
    try:
        found = read()
        if found is None or isinstance(found.metadata.get("step"), int):
            return found
        reason = "its metadata"
    except (ValueError, TypeError, AttributeError) as error:
        reason = str(error)
    raise StateDamagedError(
        "the state of this conversation is damaged",
        value=f"{place} ({reason})" if place else reason,
        hint="ask again: it goes on from its kept turns",
    )


def kept_values(values: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return what of a state is kept, and whether its run has answered."""
    if values.get("answer") is not None:
        return {"messages": recent(values.get("messages") or [])}, True
    if values.get("clarification") is not None:
        return {name: value for name, value in values.items() if name not in FOUND}, False
    return values, False


def recent(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return the newest messages, beginning with one of the user."""
    kept = list(messages[-MESSAGES:])
    while kept and kept[0].type != "human":
        kept.pop(0)
    return kept


class Threads:
    """Keep one state for each conversation: the one that the catalogue names.

    Any other is what a run has left that did not end well, and is dropped.
    """

    def __init__(self, folder: Path) -> None:
        """Open nothing yet."""
        self.path = folder / THREADS
        self._lock = threading.Lock()
        self._saver: ThreadSaver | None = None

    @property
    def saver(self) -> ThreadSaver:
        """Return LangGraph's saver, opened once."""
        with self._lock:
            if self._saver is None:
                self._saver = ThreadSaver(self.path)
            return self._saver

    def latest(self, name: str) -> str:
        """Return the id of a thread's newest state, "" for none."""
        with self.saver.cursor(transaction=False) as cursor:
            cursor.execute(
                "SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ?", (name,)
            )
            return cursor.fetchone()[0] or ""

    def can_resume(self, name: str, *, waits: bool) -> bool:
        """Tell whether a thread has a state to resume; a damaged one is deleted.

        With `waits` it must have the question that it waits with.
        """
        try:
            found = self.saver.get_tuple({"configurable": {"thread_id": name}})
        except StateDamagedError:
            found = None
        if found is not None:
            asks = any(write[1] == INTERRUPT for write in found.pending_writes or ())
            if asks or not waits:
                return True
        self.delete(name)
        return False

    def keep(self, name: str, checkpoint_id: str) -> None:
        """Drop all states of a thread but one, and what a run has written on top of that one.

        The question that it waits with for a reply stays.
        """
        with self.saver.cursor() as cursor:
            cursor.execute(
                "DELETE FROM checkpoints WHERE thread_id = ? AND checkpoint_id <> ?",
                (name, checkpoint_id),
            )
            cursor.execute(
                "DELETE FROM writes WHERE thread_id = ? AND (checkpoint_id <> ? OR channel <> ?)",
                (name, checkpoint_id, INTERRUPT),
            )

    def delete(self, name: str) -> None:
        """Delete a thread; nothing of it stays in the file, nor in the log beside it."""
        with self.saver.cursor() as cursor:
            for table in ("checkpoints", "writes"):
                cursor.execute(f"DELETE FROM {table} WHERE thread_id = ?", (name,))
        with self.saver.cursor(transaction=False) as cursor:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._saver is not None:
                self._saver.conn.close()
            self._saver = None


def copy_states(
    before: tuple[Path, str], after: tuple[Path, str], named: Mapping[str, str]
) -> list[str]:
    """Copy states, ids by thread, from one data directory and catalogue to another.

    Return the threads without a sound one: they go on from their kept turns. What is at the target
    already is written again.
    """
    with closing(open_threads(*before)) as source, closing(open_threads(*after)) as target:
        return list(_copied(source, target, named))


def _copied(source: Threads, target: Threads, named: Mapping[str, str]) -> Iterator[str]:
    for name, checkpoint_id in named.items():
        place: RunnableConfig = {"configurable": {"thread_id": name, "checkpoint_ns": ""}}
        try:
            found = source.saver.get_tuple(
                {"configurable": {**place["configurable"], "checkpoint_id": checkpoint_id}}
            )
        except StateDamagedError:
            found = None
        target.delete(name)
        if found is None:
            yield name
            continue
        versions = found.checkpoint["channel_versions"]
        made = target.saver.put(place, found.checkpoint, found.metadata, versions)
        for task, channel, value in found.pending_writes or ():
            target.saver.put_writes(made, [(channel, value)], task)


def open_threads(folder: Path, catalogue: str) -> Threads:
    """Return the states of a data directory; they are where the setting `catalogue` says."""
    if catalogue == SQLITE:
        return Threads(folder)
    made: Threads = load_extra(
        "postgres", "a catalogue in PostgreSQL", "graph.postgres_threads"
    ).PostgresThreads(folder, catalogue)
    return made


@contextmanager
def explained_threads(path: Path) -> Iterator[None]:
    """Turn errors of the file into one that says what the operator must do."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # a mistake in this code, not in the file
    except sqlite3.DatabaseError as error:
        if "decode to UTF-8" in str(error):
            raise ValueError(str(error)) from None
        if "malformed" not in str(error) and "not a database" not in str(error):
            raise damaged(path, error) from error
        raise OperatorError(
            "the file of conversations is damaged",
            value=f"{path} ({error})",
            hint="move it away: conversations go on from their kept turns",
        ) from error
