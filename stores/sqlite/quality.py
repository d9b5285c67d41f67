"""What makes a collection good to search: equal passages, the books of its texts, what it lacks.

Nothing is taken out of the catalogue or of an index. A search hides, of the equal chunks that its
caller may see, all but the first by document id, so that one who may see only the second finds it;
and when the first is deleted or changed, the next one takes its place without any work.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from core.auth import AuthContext
from stores.sqlite import sums
from stores.sqlite.catalogue import Collection
from stores.sqlite.database import CataloguePart, Database
from stores.sqlite.permissions import GIVEN_ID, IS_ROW, Parameters, permission_filter
from stores.sqlite.sums import LINK, sign

if TYPE_CHECKING:
    from stores.segments.types import Integers

BATCH = 1000  # chunks printed in one transaction; chosen, not measured
EQUAL = "SELECT print FROM chunk_prints WHERE collection_id = :c GROUP BY print HAVING count(*) > 1"

# Makes the fingerprint of a chunk's kind and text: equal for texts that say the same.
Fingerprint = Callable[[str, str], bytes]


# The rules, the surest first: the record names the file, the file is named by the record's id, both
# have the same ISBN, title and author are the same. A text of which several books are said by one
# rule belongs to none.
FILE, ID, ISBN, TITLE = 1, 2, 3, 4
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


class Arrangement(CataloguePart):
    """Number equal chunks by their fingerprints, and link full texts to records."""

    def number_duplicates(self, collection: Collection, make: Fingerprint) -> int:
        for rows in self._unprinted(collection.id):
            with self._database.write() as connection:
                connection.executemany(
                    """INSERT OR REPLACE INTO chunk_prints
                       SELECT id, collection_id, ?, 0 FROM chunks WHERE id = ?""",
                    [(make(row[1], row[2]), row[0]) for row in rows],
                )
        with self._database.write() as connection:
            return _number(connection, collection.id)

    def clear_duplicates(self, collection: Collection) -> int:
        return self._clear("chunk_prints", collection)

    def count_duplicates(
        self, collection: Collection, auth: AuthContext | None = None
    ) -> tuple[int, int]:
        visible = "TRUE"
        parameters: Parameters = {"p_collection": collection.id}
        if auth is not None:
            visible, parameters = permission_filter(auth, collection.id)
        row = self._one(
            f"""SELECT count(*) FILTER (WHERE kind = 'annotation'), count(*) FROM (
                    SELECT c.kind, row_number() OVER (
                        PARTITION BY p.print ORDER BY p.place) AS place
                    FROM chunk_prints p JOIN chunks c ON c.id = p.chunk
                    JOIN documents d ON d.id = c.document
                    WHERE p.collection_id = :p_collection AND p.place > 0 AND {visible})
                WHERE place > 1""",
            parameters,
        )
        return int(row[0]), int(row[1]) - int(row[0])

    def link_books(self, collection: Collection, text_keys: TextKeys, book_keys: BookKeys) -> int:
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
        return self._clear("book_texts", collection)

    def _clear(self, table: str, collection: Collection) -> int:
        known = f"SELECT 1 FROM {table} WHERE collection_id = ? LIMIT 1"
        if not self._one(known, (collection.id,)):
            return 0
        with self._database.write() as connection:
            query = f"DELETE FROM {table} WHERE collection_id = ?"
            return connection.execute(query, (collection.id,)).rowcount

    def _unprinted(self, collection_id: int) -> Iterator[list[Any]]:
        query = """SELECT c.id, c.kind, c.text FROM chunks c
            LEFT JOIN chunk_prints p ON p.chunk = c.id
            WHERE c.collection_id = ? AND c.id > ? AND p.chunk IS NULL
            AND c.kind <> 'record' ORDER BY c.id LIMIT ?"""
        last = 0
        while rows := self._all(query, (collection_id, last, BATCH)):
            last = rows[-1][0]
            yield rows


def _number(connection: sqlite3.Connection, collection_id: int) -> int:
    """Number equal fingerprints by document id and place in it; return the rows changed."""
    before = connection.total_changes  # a statement that begins with WITH has no row count
    connection.execute(
        f"""UPDATE chunk_prints SET place = 0
            WHERE collection_id = :c AND place > 0 AND print NOT IN ({EQUAL})""",
        {"c": collection_id},
    )
    connection.execute(
        f"""WITH ranked AS (
                SELECT p.chunk, row_number() OVER (
                    PARTITION BY p.print ORDER BY d.document_id, c.ordinal) AS place
                FROM chunk_prints p JOIN chunks c ON c.id = p.chunk
                JOIN documents d ON d.id = c.document
                WHERE p.collection_id = :c AND p.print IN ({EQUAL}))
            UPDATE chunk_prints SET place = ranked.place FROM ranked
            WHERE ranked.chunk = chunk_prints.chunk AND chunk_prints.place <> ranked.place""",
        {"c": collection_id},
    )
    return connection.total_changes - before


def equal_chunks(
    connection: sqlite3.Connection, collection_id: int
) -> tuple[Integers, Integers] | None:
    """Return the row ids of chunks that have equals, first ones first, and a number per group."""
    cursor = connection.cursor()
    cursor.row_factory = None
    rows = cursor.execute(
        """SELECT chunk, dense_rank() OVER (ORDER BY print) FROM chunk_prints
           WHERE collection_id = ? AND place > 0 ORDER BY print, place""",
        (collection_id,),
    ).fetchall()
    if not rows:
        return None
    pairs = np.array(rows, dtype=np.int64).reshape(len(rows), 2)
    return pairs[:, 0], pairs[:, 1]


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


def _documents(
    reader: sqlite3.Connection, collection_id: int, *, records: bool
) -> Iterator[tuple[int, str, str, dict[str, Any]]]:
    rows = reader.execute(
        f"""SELECT d.id, {GIVEN_ID} AS document_id, d.title, d.metadata FROM documents d
            WHERE d.collection_id = ? AND d.is_record = ? AND NOT {IS_ROW}""",
        (collection_id, records),
    )
    for row in rows:
        yield row["id"], row["document_id"], row["title"], json.loads(row["metadata"])


def _keys_of_texts(
    reader: sqlite3.Connection, collection_id: int, make: TextKeys
) -> Iterator[tuple[Key, int]]:
    for row_id, document_id, title, metadata in _documents(reader, collection_id, records=False):
        for key in make(document_id, title, metadata):
            yield key, row_id


def _keys_of_books(
    reader: sqlite3.Connection, collection_id: int, make: BookKeys
) -> Iterator[tuple[Key, int]]:
    query = "SELECT name, value FROM record_fields WHERE document = ?"
    for row_id, document_id, title, metadata in _documents(reader, collection_id, records=True):
        named = [(name, value) for name, value in reader.execute(query, (row_id,))]
        for key in make(document_id, title, metadata, named):
            yield key, row_id


def _store(connection: sqlite3.Connection, collection_id: int) -> int:
    """Make the stored links those that the keys say: of each text, by the surest rule."""
    surest = f"""
        SELECT text, CASE books WHEN 1 THEN book END AS book, CAST(rule AS TEXT) AS rule
        FROM (SELECT *, row_number() OVER (PARTITION BY text ORDER BY rule) AS place
            FROM ({_MATCHES})) WHERE place = 1"""
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


# What the records of a library have, and how the truth says that one lacks it.
_LACKS = {
    "title": "trim(d.title) = '' OR d.title = d.document_id",
    "authors": "json_extract(d.metadata, '$.authors') IS NULL",
    "year": "json_extract(d.metadata, '$.year') IS NULL",
    "keywords": "json_extract(d.metadata, '$.keywords') IS NULL",
    "udc": "json_extract(d.metadata, '$.udc') IS NULL",
}
_BOOK = f"d.is_record = 1 AND NOT {IS_ROW}"
_SAME_WORK = f"""
    SELECT group_concat(document_id, ', ') AS ids FROM (
        SELECT d.document_id, lower(d.title) AS title,
            lower(coalesce(json_extract(d.metadata, '$.authors'), '')) AS authors,
            coalesce(json_extract(d.metadata, '$.year'), '') AS year
        FROM documents d WHERE d.collection_id = :c AND {_BOOK}
        ORDER BY d.document_id)
    GROUP BY title, authors, year HAVING count(*) > 1"""
_OTHERS = {
    "bad_year": f"""{_BOOK} AND json_extract(d.metadata, '$.year') IS NOT NULL AND
        json_extract(d.metadata, '$.year') NOT BETWEEN :first AND :last""",
    "several_books": "d.id IN (SELECT text FROM book_texts WHERE book IS NULL)",
    "text_without_book": """d.is_record = 0 AND NOT EXISTS (
        SELECT 1 FROM book_texts b WHERE b.text = d.id)""",
    "book_without_text": f"""{_BOOK} AND NOT EXISTS (
        SELECT 1 FROM book_texts b WHERE b.book = d.id)""",
}

Counted = tuple[int, list[str]]


class QualityCounts:
    """Count what a collection holds and lacks, with examples."""

    def __init__(self, database: Database, collection: Collection, examples: int) -> None:
        """Give up to `examples` examples of each."""
        self._reader: sqlite3.Connection = database.read()
        self._id = collection.id
        self._examples = examples

    def totals(self) -> dict[str, int]:
        """Count files, records, texts, linked texts, and the chunks of each kind."""
        query = """SELECT (SELECT count(*) FROM files WHERE collection_id = :c) AS files,
            (SELECT count(*) FROM documents WHERE collection_id = :c AND is_record = 1) AS records,
            (SELECT count(*) FROM documents WHERE collection_id = :c AND is_record = 0) AS texts,
            (SELECT count(*) FROM book_texts WHERE collection_id = :c AND book IS NOT NULL)
                AS linked"""
        return dict(self._reader.execute(query, {"c": self._id}).fetchone())

    def kinds(self) -> dict[str, int]:
        """Count the chunks of each kind."""
        query = "SELECT kind, count(*) FROM chunks WHERE collection_id = ? GROUP BY kind ORDER BY 1"
        return dict(map(tuple, self._reader.execute(query, (self._id,))))

    def languages(self) -> dict[str, int]:
        """Count the documents of each language, most first."""
        query = """SELECT language, count(*) FROM documents WHERE collection_id = ?
                   GROUP BY language ORDER BY 2 DESC, 1"""
        return dict(map(tuple, self._reader.execute(query, (self._id,))))

    def lacking(self) -> dict[str, Counted]:
        """Count, by field, the records that lack it."""
        return {name: self._documents(f"{_BOOK} AND ({lacks})") for name, lacks in _LACKS.items()}

    def others(self, first_year: int, last_year: int) -> dict[str, Counted]:
        """Count years out of range and links that are missing or fit several books."""
        years = {"first": first_year, "last": last_year}
        return {name: self._documents(query, years) for name, query in _OTHERS.items()}

    def same_work(self) -> Counted:
        """Count groups of records with the same title, authors and year."""
        some = self._reader.execute(
            f"{_SAME_WORK} ORDER BY ids LIMIT :n", {"c": self._id, "n": self._examples}
        )
        return self._count(f"FROM ({_SAME_WORK})"), [row[0] for row in some]

    def repeated(self, *, annotations: bool) -> Counted:
        """Count annotations, or other passages, that repeat an earlier one."""
        kind = "c.kind = 'annotation'" if annotations else "c.kind <> 'annotation'"
        join = f"""FROM chunk_prints p JOIN chunks c ON c.id = p.chunk
            JOIN documents d ON d.id = c.document
            WHERE p.collection_id = :c AND p.place > 1 AND {kind}"""
        count = self._count(join)
        some = self._reader.execute(
            f"""SELECT DISTINCT d.document_id, (
                    SELECT e.document_id FROM chunk_prints f JOIN chunks g ON g.id = f.chunk
                    JOIN documents e ON e.id = g.document
                    WHERE f.collection_id = :c AND f.print = p.print
                    ORDER BY f.place LIMIT 1) AS first
                {join} ORDER BY d.document_id, first LIMIT :n""",
            {"c": self._id, "n": self._examples},
        )
        return count, [f"{row[0]} (as {row[1]})" for row in some]

    def left_out(self) -> Counted:
        """Count what was left out, with the reasons."""
        query = "FROM left_out WHERE collection_id = :c"
        some = self._reader.execute(
            f"SELECT source, reason {query} ORDER BY file, source LIMIT :n",
            {"c": self._id, "n": self._examples},
        )
        said = [f"{row[0]}: {row[1].removeprefix('left out: ')}" for row in some]
        return self._count(query), said

    def failed(self) -> Counted:
        """Count the files, and the records of files, that could not be read, with the reasons."""
        total = 0
        examples: list[str] = []
        rows = self._reader.execute(
            f"""SELECT failures FROM files f WHERE collection_id = ? AND f.sum IS {sums.FILE}
                   AND failures <> '[]'
               ORDER BY relative""",
            (self._id,),
        )
        for row in rows:
            failures = json.loads(row[0])
            total += len(failures)
            room = self._examples - len(examples)
            examples += [f"{one['path']}: {one['reason']}" for one in failures[: max(0, room)]]
        return total, examples

    def passages(self) -> Iterator[Any]:
        """Yield every chunk with its document, in reading order.

        A row has document (row id), document_id, is_record, language, kind and text.
        """
        rows = self._reader.execute(
            """SELECT d.id AS document, d.document_id, d.is_record, d.language, c.kind, c.text
               FROM documents d CROSS JOIN chunks c ON c.document = d.id
               WHERE d.collection_id = ? ORDER BY d.id, c.ordinal""",
            (self._id,),
        )
        return map(dict, rows)

    def _documents(self, condition: str, values: dict[str, int] | None = None) -> Counted:
        body = f"FROM documents d WHERE d.collection_id = :c AND {condition}"
        bound = {"c": self._id, "n": self._examples, **(values or {})}
        some = self._reader.execute(
            f"SELECT d.document_id {body} ORDER BY d.document_id LIMIT :n", bound
        )
        return self._count(body, bound), [row[0] for row in some]

    def _count(self, body: str, values: dict[str, int] | None = None) -> int:
        found = self._reader.execute(f"SELECT count(*) {body}", values or {"c": self._id})
        return int(found.fetchone()[0])
