"""Match files with those a collection has: new, unchanged, moved or renamed."""

from __future__ import annotations

import threading
from pathlib import Path

from ingest.discover import SourceFile
from ingest.loaders.formats import suffix_of
from ingest.usable import IngestContext
from stores.sqlite.connections import connect
from stores.sqlite.rows import FileRow


class RunIndex:
    """Names of files and documents in a temporary SQLite database; threads may share it."""

    def __init__(self) -> None:
        """Open a database without a name, which is in memory until it grows."""
        self._lock = threading.Lock()
        self._connection = connect("", shared=True)
        for statement in (
            "PRAGMA journal_mode=OFF",
            "PRAGMA synchronous=OFF",
            "CREATE TABLE names (kind TEXT, name TEXT, PRIMARY KEY (kind, name)) WITHOUT ROWID",
            """CREATE TABLE documents (
                document_id TEXT PRIMARY KEY, file TEXT, content_hash TEXT) WITHOUT ROWID""",
            "BEGIN",
        ):
            self._connection.execute(statement)

    def _run(self, statement: str, *values: str) -> tuple[str, ...] | None:
        with self._lock:
            row: tuple[str, ...] | None = self._connection.execute(statement, values).fetchone()
        return row

    def add(self, kind: str, name: str) -> None:
        """Note a name of this kind."""
        self._run("INSERT OR IGNORE INTO names VALUES (?, ?)", kind, name)

    def has(self, kind: str, name: str) -> bool:
        """Tell whether a name of this kind was noted."""
        found = self._run("SELECT 1 FROM names WHERE kind = ? AND name = ?", kind, name)
        return found is not None

    def add_document(self, document_id: str, file: str, content_hash: str) -> None:
        """Note that a file has this document."""
        statement = "INSERT OR REPLACE INTO documents VALUES (?, ?, ?)"
        self._run(statement, document_id, file, content_hash)

    def drop_document(self, document_id: str) -> None:
        """Take back that a file has this document."""
        self._run("DELETE FROM documents WHERE document_id = ?", document_id)

    def document(self, document_id: str) -> tuple[str, ...] | None:
        """Return (file, content hash) of a document."""
        query = "SELECT file, content_hash FROM documents WHERE document_id = ?"
        return self._run(query, document_id)

    def close(self) -> None:
        """Forget everything."""
        self._connection.close()


# Kinds of names in `RunIndex`: places given, names given, names given or made, names renamed.
GIVEN, LISTED, NAMED, TAKEN = "given", "listed", "named", "taken"


class Known:
    """Compare given files with those that a collection has."""

    def __init__(self, reading: IngestContext, seen: RunIndex, *, prune: bool) -> None:
        self._intake, self._collection = reading.intake, reading.collection
        self._access = reading.access
        self._seen = seen
        self._prune = prune

    def stored(self, name: str) -> str:
        """Return the name in the collection of a file that its writer calls `name`."""
        return self._intake.name_for(self._collection, name, self._access)

    def staying(self, relative: str) -> FileRow | None:
        """Return what is known of a file that is on the disk and not pruned."""
        row = self._intake.find_file(self._collection, relative)
        return row if row is not None and self._stays(row) else None

    def _stays(self, row: FileRow) -> bool:
        if not self._prune and self._intake.is_synced(self._collection, row.path):
            return True  # whose file is read and deleted
        return Path(row.path).exists() and (not self._prune or self._seen.has(GIVEN, row.path))

    def leaves(self, relative: str) -> bool:
        """Tell whether others may take the documents over that come from a file of this name."""
        row = self._intake.find_file(self._collection, relative)
        return row is not None and not self._needed(relative) and not self._stays(row)

    def _needed(self, relative: str) -> bool:
        called = self._intake.original_name(self._collection, relative)
        return self._seen.has(LISTED, called) or self._seen.has(NAMED, relative)

    def unchanged(self, relative: str, fingerprint: str) -> FileRow | None:
        """Return what is known of a file when it is in the collection as it is now."""
        row = self._intake.find_file(self._collection, relative)
        same = row is not None and row.fingerprint == fingerprint
        return row if same and not self._seen.has(TAKEN, relative) else None

    def name(self, source: SourceFile, path: str) -> str:
        """Return a relative path that no other file of those that stay has.

        A path that belongs to another file gets the names of the folders above it until it is its
        own; a file that does not stay gives its name up. `path` is where the file really is.
        """
        relative, folder = source.relative, Path(path).parent
        for _ in range(len(relative.split("/")) - 1):
            folder = folder.parent
        while (
            (row := self.staying(self.stored(relative))) is not None
            and row.path != path
            and folder.name
        ):
            relative, folder = f"{folder.name}/{relative}", folder.parent
        return relative

    def previous(self, relative: str, fingerprint: str) -> FileRow | None:
        """Return the file of the same bytes and kind that is no longer where it was, if any.

        Each is returned once.
        """
        suffix = suffix_of(relative)
        for row in self._intake.files_with_fingerprint(self._collection, fingerprint):
            same_kind = suffix_of(row.relative) == suffix
            if row.relative == relative or not same_kind or self._stays(row):
                continue
            if not self._needed(row.relative) and not self._seen.has(TAKEN, row.relative):
                self._seen.add(TAKEN, row.relative)
                return row
        return None
