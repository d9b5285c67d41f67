"""Books of a library: which full texts belong to which bibliographic record, and by which rule."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from stores.sqlite.aliases import GIVEN_ID
from stores.sqlite.catalogue import Collection
from stores.sqlite.database import Database
from stores.sqlite.sums import LINK, sign

# The rules, the surest first. A text of which several books are said by one rule belongs to none.
FILE, ID, ISBN, TITLE = 1, 2, 3, 4
RULES = {
    FILE: "the record names the file",
    ID: "the file is named by the record's id",
    ISBN: "both have the same ISBN",
    TITLE: "title and author are the same",
}
Key = tuple[int, str]
TextKeys = Callable[[str, str, dict[str, Any]], Iterable[Key]]
BookKeys = Callable[[str, str, dict[str, Any], Iterable[tuple[str, str]]], Iterable[Key]]

_MATCHES = """
    SELECT t.document AS text, t.rule AS rule, min(b.document) AS book,
        count(DISTINCT b.document) AS books
    FROM temp.text_keys t JOIN temp.book_keys b ON b.rule = t.rule AND b.key = t.key
    WHERE t.rule <> 1 OR (SELECT count(DISTINCT u.document) FROM temp.text_keys u
                          WHERE u.rule = 1 AND u.key = t.key) = 1
    GROUP BY t.document, t.rule"""


class Books:
    """Link full texts to records."""

    def __init__(self, database: Database) -> None:
        """Use the catalogue's `database`."""
        self._database = database

    def link_books(self, collection: Collection, text_keys: TextKeys, book_keys: BookKeys) -> int:
        """Link the texts of a collection again by their keys; return how many rows changed.

        Keys are compared as hashes in temporary tables, so that memory does not grow with them.
        """
        with self._database.write() as connection:
            _temporary(connection)
            reader = self._database.read()
            _fill(connection, "book_keys", _keys_of_books(reader, collection.id, book_keys))
            _fill(connection, "text_keys", _keys_of_texts(reader, collection.id, text_keys))
            changed = _store(connection, collection.id)
            for name in ("book_keys", "text_keys"):
                connection.execute(f"DELETE FROM temp.{name}")
            return changed

    def clear_books(self, collection: Collection) -> int:
        """Forget all links of a collection; return how many there were."""
        known = "SELECT 1 FROM book_texts WHERE collection_id = ? LIMIT 1"
        if not self._database.read().execute(known, (collection.id,)).fetchone():
            return 0
        with self._database.write() as connection:
            query = "DELETE FROM book_texts WHERE collection_id = ?"
            return connection.execute(query, (collection.id,)).rowcount


def _temporary(connection: sqlite3.Connection) -> None:
    for name in ("book_keys", "text_keys"):
        connection.execute(
            f"""CREATE TEMP TABLE IF NOT EXISTS {name} (
                rule INTEGER NOT NULL, key BLOB NOT NULL, document INTEGER NOT NULL,
                PRIMARY KEY (rule, key, document)) WITHOUT ROWID"""
        )
        connection.execute(f"DELETE FROM temp.{name}")


def _fill(connection: sqlite3.Connection, name: str, keys: Iterator[tuple[Key, int]]) -> None:
    for (rule, key), document in keys:
        hashed = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        connection.execute(
            f"INSERT OR IGNORE INTO temp.{name} VALUES (?, ?, ?)", (rule, hashed, document)
        )


def _keys_of_texts(
    reader: sqlite3.Connection, collection_id: int, make: TextKeys
) -> Iterator[tuple[Key, int]]:
    rows = reader.execute(
        f"SELECT d.id, {GIVEN_ID} AS document_id, d.title, d.metadata FROM documents d"
        " WHERE d.collection_id = ? AND d.is_record = 0",
        (collection_id,),
    )
    for row in rows:
        for key in make(row["document_id"], row["title"], json.loads(row["metadata"])):
            yield key, row["id"]


def _keys_of_books(
    reader: sqlite3.Connection, collection_id: int, make: BookKeys
) -> Iterator[tuple[Key, int]]:
    rows = reader.execute(
        f"SELECT d.id, {GIVEN_ID} AS document_id, d.title, d.metadata FROM documents d"
        " WHERE d.collection_id = ? AND d.is_record = 1",
        (collection_id,),
    )
    for row in rows:
        fields = reader.execute(
            "SELECT name, value FROM record_fields WHERE document = ?", (row["id"],)
        ).fetchall()
        named = [(field["name"], field["value"]) for field in fields]
        metadata = json.loads(row["metadata"])
        for key in make(row["document_id"], row["title"], metadata, named):
            yield key, row["id"]


def _store(connection: sqlite3.Connection, collection_id: int) -> int:
    """Make the stored links those that the keys say: of each text, by the surest rule."""
    surest = f"""
        SELECT text, CASE books WHEN 1 THEN book END AS book, CAST(rule AS TEXT) AS rule,
            min(rule) FROM ({_MATCHES}) GROUP BY text"""
    connection.execute(f"CREATE TEMP TABLE new_links AS {surest}")
    try:
        gone = connection.execute(
            f"""DELETE FROM book_texts AS b WHERE collection_id = ? AND (b.sum IS NOT {LINK}
                OR NOT EXISTS (SELECT 1 FROM temp.new_links n
                    WHERE n.text = b.text AND n.book IS b.book AND n.rule = b.rule))""",
            (collection_id,),
        )
        made = connection.execute(
            """INSERT INTO book_texts (text, book, collection_id, rule)
               SELECT text, book, ?, rule FROM temp.new_links
               WHERE text NOT IN (SELECT text FROM book_texts)""",
            (collection_id,),
        )
        sign(connection, "book_texts", "b.collection_id = ? AND b.sum IS NULL", collection_id)
        return gone.rowcount + made.rowcount
    finally:
        connection.execute("DROP TABLE temp.new_links")
