"""What one run has come by, kept outside memory so that its size does not matter."""

from __future__ import annotations

import sqlite3
import threading
from types import TracebackType


class Seen:
    """Hold names of files and documents in a temporary database; threads may share it."""

    def __init__(self) -> None:
        """Open a database without a name, which is in memory until it grows."""
        self._lock = threading.Lock()
        self._connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        for statement in (
            "PRAGMA journal_mode=OFF",
            "PRAGMA synchronous=OFF",
            "CREATE TABLE names (kind TEXT, name TEXT, PRIMARY KEY (kind, name)) WITHOUT ROWID",
            """CREATE TABLE documents (
                document_id TEXT PRIMARY KEY, file TEXT, content_hash TEXT) WITHOUT ROWID""",
            "BEGIN",
        ):
            self._connection.execute(statement)

    def add(self, kind: str, name: str) -> None:
        """Note a name of this kind."""
        with self._lock:
            self._connection.execute("INSERT OR IGNORE INTO names VALUES (?, ?)", (kind, name))

    def has(self, kind: str, name: str) -> bool:
        """Tell whether a name of this kind was noted."""
        query = "SELECT 1 FROM names WHERE kind = ? AND name = ?"
        with self._lock:
            return self._connection.execute(query, (kind, name)).fetchone() is not None

    def add_document(self, document_id: str, file: str, content_hash: str) -> None:
        """Note that a file has this document."""
        with self._lock:
            self._connection.execute(
                "INSERT OR REPLACE INTO documents VALUES (?, ?, ?)",
                (document_id, file, content_hash),
            )

    def drop_document(self, document_id: str) -> None:
        """Take back that a file has this document."""
        with self._lock:
            self._connection.execute("DELETE FROM documents WHERE document_id = ?", (document_id,))

    def document(self, document_id: str) -> tuple[str, str] | None:
        """Return (file, content hash) of a document."""
        query = "SELECT file, content_hash FROM documents WHERE document_id = ?"
        with self._lock:
            row = self._connection.execute(query, (document_id,)).fetchone()
        return (row[0], row[1]) if row else None

    def close(self) -> None:
        """Forget everything."""
        self._connection.close()

    def __enter__(self) -> Seen:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Forget everything."""
        self.close()
