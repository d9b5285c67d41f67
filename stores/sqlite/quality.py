"""What a report on the quality of a collection counts in the catalogue, row by row."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

from stores.sqlite.catalogue import Collection
from stores.sqlite.database import Database
from stores.sqlite.sums import FILE

# What the records of a library have, and how the truth says that one lacks it.
_LACKS = {
    "title": "trim(d.title) = '' OR d.title = d.document_id",
    "authors": "json_extract(d.metadata, '$.authors') IS NULL",
    "year": "json_extract(d.metadata, '$.year') IS NULL",
    "keywords": "json_extract(d.metadata, '$.keywords') IS NULL",
    "udc": "json_extract(d.metadata, '$.udc') IS NULL",
}
_SAME_WORK = """
    SELECT group_concat(document_id, ', ') AS ids FROM (
        SELECT d.document_id, lower(d.title) AS title,
            lower(coalesce(json_extract(d.metadata, '$.authors'), '')) AS authors,
            coalesce(json_extract(d.metadata, '$.year'), '') AS year
        FROM documents d WHERE d.collection_id = :c AND d.is_record = 1
        ORDER BY d.document_id)
    GROUP BY title, authors, year HAVING count(*) > 1"""
_OTHERS = {
    "bad_year": """d.is_record = 1 AND json_extract(d.metadata, '$.year') IS NOT NULL AND
        json_extract(d.metadata, '$.year') NOT BETWEEN :first AND :last""",
    "several_books": "d.id IN (SELECT text FROM book_texts WHERE book IS NULL)",
    "text_without_book": """d.is_record = 0 AND NOT EXISTS (
        SELECT 1 FROM book_texts b WHERE b.text = d.id)""",
    "book_without_text": """d.is_record = 1 AND NOT EXISTS (
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
            (SELECT count(*) FROM documents WHERE collection_id = :c AND is_record) AS records,
            (SELECT count(*) FROM documents WHERE collection_id = :c AND NOT is_record) AS texts,
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
        return {
            name: self._documents(f"d.is_record = 1 AND ({lacks})")
            for name, lacks in _LACKS.items()
        }

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
            f"""SELECT failures FROM files f WHERE collection_id = ? AND f.sum IS {FILE}
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
        """Count the documents that meet a condition (SQL of this module)."""
        body = f"FROM documents d WHERE d.collection_id = :c AND {condition}"
        bound = {"c": self._id, "n": self._examples, **(values or {})}
        some = self._reader.execute(
            f"SELECT d.document_id {body} ORDER BY d.document_id LIMIT :n", bound
        )
        return self._count(body, bound), [row[0] for row in some]

    def _count(self, body: str, values: dict[str, int] | None = None) -> int:
        """Count the rows of a query (SQL of this module)."""
        found = self._reader.execute(f"SELECT count(*) {body}", values or {"c": self._id})
        return int(found.fetchone()[0])
