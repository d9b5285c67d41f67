"""The change that lets a document be kept beside a hidden one of the same name."""

from __future__ import annotations

import sqlite3

from stores.migrations import migration


@migration
def m017_aliases(connection: sqlite3.Connection) -> None:
    """Note under which names documents and files came that are kept under others, and who sent.

    `stored` is the id of a document, or the name of a file, within the collection; `alias` is what
    its writer called it. A job's `caller` is empty for jobs of earlier versions.
    """
    for statement in (
        """CREATE TABLE aliases (
            collection_id INTEGER NOT NULL, kind TEXT NOT NULL CHECK (kind IN ('document', 'file')),
            stored TEXT NOT NULL, alias TEXT NOT NULL, sum INTEGER,
            PRIMARY KEY (collection_id, kind, stored)) WITHOUT ROWID""",
        "CREATE INDEX aliases_alias ON aliases (collection_id, kind, alias)",
        """CREATE TRIGGER documents_aliases AFTER DELETE ON documents BEGIN
            DELETE FROM aliases WHERE collection_id = OLD.collection_id AND kind = 'document'
                AND stored = OLD.document_id; END""",
        """CREATE TRIGGER files_aliases AFTER DELETE ON files BEGIN
            DELETE FROM aliases WHERE collection_id = OLD.collection_id AND kind = 'file'
                AND stored = OLD.relative; END""",
        """CREATE TRIGGER collections_aliases AFTER DELETE ON collections BEGIN
            DELETE FROM aliases WHERE collection_id = OLD.id; END""",
        "ALTER TABLE jobs ADD COLUMN caller TEXT NOT NULL DEFAULT ''",
    ):
        connection.execute(statement)
