"""The states that conversations go on from, in the PostgreSQL that has the catalogue."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.postgres import PostgresSaver
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

from core.errors import StorageError
from graph.state import state_serializer
from graph.threads import INTERRUPT, Threads, kept_values, read_state
from stores.postgres.connection import INSTEAD, NUL, explained

MOST_CONNECTIONS = 4  # of one process for its states; chosen, not measured
NOT_OF = "DELETE FROM {} WHERE thread_id = %s AND checkpoint_id <> %s"
WITHOUT = "DELETE FROM checkpoint_blobs WHERE thread_id = %s AND channel <> ALL(%s)"
# Values that no state refers to any more.
UNUSED = """DELETE FROM checkpoint_blobs b WHERE thread_id = %s AND NOT EXISTS (
    SELECT 1 FROM checkpoints c WHERE c.thread_id = b.thread_id
    AND c.checkpoint -> 'channel_versions' ->> b.channel = b.version)"""


class PostgresThreadSaver(PostgresSaver):
    """Let a run that is over leave its messages alone, and one that waits nothing that it found."""

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a state; raises OperatorError when it is not what was written."""
        with explained():
            return read_state(partial(super().get_tuple, config))

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint without what is not to be kept; values of earlier ones go with it."""
        values, answered = kept_values(checkpoint["channel_values"])
        # Short texts stand in JSON, which has no NUL here.
        values = {
            name: value.replace(NUL, INSTEAD) if isinstance(value, str) else value
            for name, value in values.items()
        }
        if answered:
            new_versions = new_versions | {
                name: checkpoint["channel_versions"][name]
                for name in values
                if name in checkpoint["channel_versions"]
            }
        try:
            with explained():
                done = super().put(
                    config, {**checkpoint, "channel_values": values}, metadata, new_versions
                )
                with self._cursor() as cursor:
                    thread = str(config["configurable"]["thread_id"])
                    cursor.execute(WITHOUT, (thread, list(values)))
                return done
        except StorageError:
            if not answered:
                raise
            return config


class PostgresThreads(Threads):
    """Keep one state for each conversation: the one that the catalogue names."""

    def __init__(self, folder: Path, url: str) -> None:
        """Open nothing yet."""
        super().__init__(folder)
        self._url = url
        self._pool: ConnectionPool[psycopg.Connection[dict[str, Any]]] | None = None
        self._kept: PostgresThreadSaver | None = None

    @property
    def saver(self) -> PostgresThreadSaver:  # type: ignore[override] # of another library class
        """Return LangGraph's saver, opened once."""
        with self._lock:
            if self._kept is None:
                with explained():
                    self._pool = ConnectionPool(
                        self._url,
                        connection_class=psycopg.Connection[dict[str, Any]],
                        kwargs={"autocommit": True, "row_factory": dict_row},
                        min_size=1,
                        max_size=MOST_CONNECTIONS,
                        check=ConnectionPool.check_connection,
                        open=True,
                    )
                    saver = PostgresThreadSaver(self._pool, serde=state_serializer())
                    saver.setup()
                    self._kept = saver
            return self._kept

    def _cursor(self) -> AbstractContextManager[psycopg.Cursor[dict[str, Any]]]:
        return self.saver._cursor()

    def latest(self, name: str) -> str:
        """Return the id of a thread's newest state, "" for none."""
        with explained(), self._cursor() as cursor:
            query = "SELECT max(checkpoint_id) AS newest FROM checkpoints WHERE thread_id = %s"
            row = cursor.execute(query, (name,)).fetchone()
            return (row and row["newest"]) or ""

    def keep(self, name: str, checkpoint_id: str) -> None:
        """Drop all states of a thread but one, and what a run has written on top of that one."""
        with explained(), self._cursor() as cursor, cursor.connection.transaction():
            cursor.execute(NOT_OF.format("checkpoints"), (name, checkpoint_id))
            cursor.execute(
                "DELETE FROM checkpoint_writes WHERE thread_id = %s"
                " AND (checkpoint_id <> %s OR channel <> %s)",
                (name, checkpoint_id, INTERRUPT),
            )
            cursor.execute(UNUSED, (name,))

    def delete(self, name: str) -> None:
        """Delete a thread."""
        with explained():
            self.saver.delete_thread(name)

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            if self._pool is not None:
                self._pool.close()
            self._pool = self._kept = None
