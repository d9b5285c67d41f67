"""The change that lets the catalogue tell books, repeats and what was left out."""

from __future__ import annotations

import sqlite3

from stores.migrations import migration


@migration
def m013_quality(connection: sqlite3.Connection) -> None:
    """Keep which texts were left out, which passages repeat others, and whose book a text is.

    `place` counts equal passages from 1, 0 where nothing is equal. `book` is NULL where several
    books fit. All rows go with the file or the document that they are about.
    """
    for statement in (
        """CREATE TABLE left_out (
            collection_id INTEGER NOT NULL, file TEXT NOT NULL, source TEXT NOT NULL,
            document_id TEXT NOT NULL, reason TEXT NOT NULL,
            PRIMARY KEY (collection_id, file, source)) WITHOUT ROWID""",
        """CREATE TRIGGER files_left AFTER DELETE ON files BEGIN
            DELETE FROM left_out WHERE collection_id = OLD.collection_id AND file = OLD.relative;
            END""",
        """CREATE TRIGGER files_renamed AFTER UPDATE OF relative ON files
            WHEN OLD.relative <> NEW.relative BEGIN
            UPDATE OR REPLACE left_out SET file = NEW.relative
                WHERE collection_id = OLD.collection_id AND file = OLD.relative; END""",
        """CREATE TABLE chunk_prints (
            chunk INTEGER PRIMARY KEY REFERENCES chunks ON DELETE CASCADE,
            collection_id INTEGER NOT NULL, print BLOB NOT NULL, place INTEGER NOT NULL)""",
        "CREATE INDEX chunk_prints_print ON chunk_prints (collection_id, print)",
        "CREATE INDEX chunk_prints_repeated ON chunk_prints (collection_id, print, place)"
        " WHERE place > 0",
        "CREATE INDEX chunks_kind ON chunks (collection_id, kind)",
        """CREATE TABLE book_texts (
            text INTEGER PRIMARY KEY REFERENCES documents ON DELETE CASCADE,
            book INTEGER REFERENCES documents ON DELETE CASCADE,
            collection_id INTEGER NOT NULL, rule TEXT NOT NULL)""",
        "CREATE INDEX book_texts_book ON book_texts (book)",
        "CREATE INDEX book_texts_collection ON book_texts (collection_id)",
    ):
        connection.execute(statement)
