"""BM25 through SQLite FTS5: one table of analysed terms per collection.

A table per collection keeps another tenant's words out of the statistics as well as out of the
results. The tables are derived and can be rebuilt from the chunks.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Collection as AbstractCollection
from math import log
from typing import Any

from core.language.analysis import terms
from stores.segments.postings import KEYWORDS_WEIGHT, SECTION_WEIGHT, TITLE_WEIGHT
from stores.sqlite.database import CataloguePart, Database, decoded

# Punctuation inside analysed terms (code identifiers, versions) must not split them again.
TOKENIZER = "unicode61 remove_diacritics 0 tokenchars ''.-_+#@/:&$%*~^=<>!?|\\''"

SHADOWS = ("data", "idx", "content", "docsize", "config")  # the tables behind an FTS5 table


def table(collection_id: int) -> str:
    """Return the table name of a collection; the id is a number from the catalogue."""
    return f"fts_{int(collection_id)}"


def create_table(connection: sqlite3.Connection, collection_id: int) -> None:
    """Create the tables of a collection when they are missing."""
    name = table(collection_id)
    connection.execute(
        f"CREATE VIRTUAL TABLE IF NOT EXISTS {name} USING fts5"
        f"(title, keywords, section, body, tokenize = '{TOKENIZER}')"
    )
    connection.execute(
        f"CREATE VIRTUAL TABLE IF NOT EXISTS {name}_terms USING fts5vocab({name}, row)"
    )


def drop_table(connection: sqlite3.Connection, collection_id: int) -> None:
    """Drop the tables of a collection, also those that are too damaged to be opened."""
    name = table(collection_id)
    try:
        connection.execute(f"DROP TABLE IF EXISTS {name}_terms")
        connection.execute(f"DROP TABLE IF EXISTS {name}")
    except sqlite3.DatabaseError:
        # SQLite opens a virtual table to drop it, so take it out of the schema by hand.
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute(
            "DELETE FROM sqlite_schema WHERE name IN (?, ?)", (name, f"{name}_terms")
        )
        connection.execute("PRAGMA writable_schema=RESET")
        for part in SHADOWS:
            connection.execute(f"DROP TABLE IF EXISTS {name}_{part}")


def delete(connection: sqlite3.Connection, collection_id: int, rowids: Iterable[int]) -> None:
    """Forget chunks by row id."""
    connection.executemany(
        f"DELETE FROM {table(collection_id)} WHERE rowid = ?", [(rowid,) for rowid in rowids]
    )


def match_expression(query: Sequence[AbstractCollection[str]]) -> str:
    """Return an FTS5 expression that matches any of the terms; every term is quoted."""
    # An expression ends at its first NUL, and no term that was indexed has one.
    alternatives = dict.fromkeys(
        term for group in query for term in sorted(group) if "\x00" not in term
    )
    return " OR ".join('"' + term.replace('"', '""') + '"' for term in alternatives)


class FullText(CataloguePart):
    """Score chunks by their analysed terms, and count in how many each term is."""

    def scores(
        self,
        connection: sqlite3.Connection,
        collection_id: int,
        query: Sequence[AbstractCollection[str]],
    ) -> list[tuple[int, float]]:
        """Return (row id, BM25 score) of every chunk that matches, whoever may see it."""
        expression = match_expression(query)
        if not expression:
            return []
        name = table(collection_id)
        cursor = connection.cursor()
        cursor.row_factory = None
        return cursor.execute(
            f"SELECT rowid, -bm25({name}, ?, ?, ?, 1.0) FROM {name} WHERE {name} MATCH ?",
            (TITLE_WEIGHT, KEYWORDS_WEIGHT, SECTION_WEIGHT, expression),
        ).fetchall()

    def frequencies(self, collection_id: int, wanted: Sequence[str]) -> dict[str, int]:
        """Return how many chunks of the collection contain each term."""
        connection = self._database.read()
        query = f"SELECT doc FROM {table(collection_id)}_terms WHERE term = ?"
        found = {}
        for term in dict.fromkeys(wanted):
            row = connection.execute(query, (term,)).fetchone()
            found[term] = int(row[0]) if row else 0
        return found

    def inverse_frequencies(self, collection_id: int, wanted: Sequence[str]) -> dict[str, float]:
        """Return log(1 + N/(1 + df)) of each term over the collection's chunks."""
        query = "SELECT count(*) FROM chunks WHERE collection_id = ?"
        total = self._value(query, (collection_id,))
        counts = self.frequencies(collection_id, wanted)
        return {term: log(1 + total / (1 + count)) for term, count in counts.items()}


def keyword_text(metadata: str) -> str:
    """Return the keywords and authors of a document's metadata, given as JSON."""
    loaded: dict[str, Any] = json.loads(metadata)
    values: list[str] = []
    for name in ("keywords", "authors"):
        value = loaded.get(name)
        values += value if isinstance(value, list) else [value] if isinstance(value, str) else []
    return " ".join(str(value) for value in values)


CHUNKS = """SELECT c.id, c.section, c.text, c.context, d.title, d.language, d.metadata
    FROM chunks c JOIN documents d ON d.id = c.document
    WHERE c.collection_id = ?"""
STEP = 100  # chunks between two words of progress; chosen, not measured


def rebuild_fulltext(
    database: Database, collection_id: int, progress: Callable[[int, int], None] | None = None
) -> int:
    """Drop the index, write it in one transaction, and return the number of chunks."""
    with database.write() as connection:
        drop_table(connection, collection_id)
        create_table(connection, collection_id)
        connection.text_factory = decoded  # a damaged text may be none
        try:
            chunks = connection.execute(f"{CHUNKS} ORDER BY c.id", (collection_id,)).fetchall()
        finally:
            connection.text_factory = str
        for done, chunk in enumerate(chunks, start=1):
            insert(connection, collection_id, chunk)
            if progress is not None and (done % STEP == 0 or done == len(chunks)):
                progress(done, len(chunks))
    return len(chunks)


def write_again(
    connection: sqlite3.Connection, collection_id: int, which: str, value: object
) -> None:
    """Write the full text of the chunks c of documents d that `which` says once more."""
    query = f"{CHUNKS} AND {which}"
    chunks = connection.execute(query, (collection_id, value)).fetchall()
    delete(connection, collection_id, [chunk["id"] for chunk in chunks])
    for chunk in chunks:
        insert(connection, collection_id, chunk)


def insert(connection: sqlite3.Connection, collection_id: int, chunk: Any) -> None:  # noqa: ANN401
    """Index one chunk, a row of `CHUNKS`: its own text twice, its context once.

    BM25 sums frequencies over columns, so a neighbour's word counts half as much as its own.
    """
    text, context = chunk["text"], chunk["context"]
    try:
        keywords = keyword_text(chunk["metadata"])
    except (ValueError, AttributeError):  # damaged, and withheld
        keywords = ""
    body = f"{text}\n{text}\n{context}" if context else text
    parts = (chunk["title"], keywords, chunk["section"], body)
    analysed = [" ".join(terms(part, chunk["language"])) for part in parts]
    connection.execute(
        f"INSERT INTO {table(collection_id)} (rowid, title, keywords, section, body)"
        " VALUES (?, ?, ?, ?, ?)",
        (chunk["id"], *analysed),
    )
