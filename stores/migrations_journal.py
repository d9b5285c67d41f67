"""The change of the catalogue that brought the journal of ingest."""

from __future__ import annotations

import sqlite3

from stores.migrations import migration


@migration
def m012_journal(connection: sqlite3.Connection) -> None:
    """Keep the set of documents on their way in; what was there before is read back once."""
    for statement in (
        """CREATE TABLE journal (
            collection_id INTEGER NOT NULL, document_id TEXT NOT NULL, file TEXT NOT NULL,
            stage TEXT NOT NULL CHECK (stage IN ('parsed', 'chunked', 'embedded', 'indexed')),
            chunks INTEGER NOT NULL, PRIMARY KEY (collection_id, document_id)) WITHOUT ROWID""",
        """INSERT INTO journal SELECT d.collection_id, d.document_id, d.file, 'indexed',
            (SELECT count(*) FROM chunks c WHERE c.document = d.id) FROM documents d""",
        """CREATE TRIGGER collections_journal AFTER DELETE ON collections BEGIN
            DELETE FROM journal WHERE collection_id = OLD.id; END""",
        """CREATE TRIGGER documents_journal AFTER DELETE ON documents BEGIN
            DELETE FROM journal
                WHERE collection_id = OLD.collection_id AND document_id = OLD.document_id; END""",
        "ALTER TABLE documents ADD COLUMN body_hash TEXT NOT NULL DEFAULT ''",
        "CREATE INDEX chunks_hash ON chunks (content_hash)",
        "CREATE INDEX files_fingerprint ON files (collection_id, fingerprint)",
        "INSERT INTO meta VALUES ('unswept', '1')",
    ):
        connection.execute(statement)
