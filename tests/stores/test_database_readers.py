"""One reading connection per thread, for as long as the thread lives."""

from __future__ import annotations

import sqlite3
from threading import Thread

import pytest

from stores.store import Store, parts


def test_the_connection_of_a_thread_ends_with_it(store: Store) -> None:
    mine = parts(store).database.read()
    seen: list[sqlite3.Connection] = []

    def work() -> None:
        connection = parts(store).database.read()
        assert connection is parts(store).database.read()
        connection.execute("SELECT count(*) FROM chunks").fetchone()
        seen.append(connection)

    for _ in range(3):
        thread = Thread(target=work)
        thread.start()
        thread.join(60)
    assert len(seen) == 3
    assert mine not in seen
    for connection in seen:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")
    assert parts(store).database.read() is mine
    assert mine.execute("SELECT 1").fetchone()[0] == 1


def test_a_reader_cannot_write(store: Store) -> None:
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        parts(store).database.read().execute("DELETE FROM chunks")
