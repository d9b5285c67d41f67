"""Full text and other statements that PostgreSQL has in another form.

The analysed terms of a chunk are an array beside their texts, with a GIN index. A table per
collection, as in SQLite, keeps the words of others out of all counts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from math import log
from typing import TYPE_CHECKING, Any

from stores.postgres.schema import trigger

if TYPE_CHECKING:
    from stores.postgres.connection import PostgresConnection

K1, B = 1.2, 0.75  # of BM25, those of FTS5
LEAST_IDF = 1e-6  # of a word that most chunks have, as FTS5 has it
_CREATE = re.compile(r"CREATE VIRTUAL TABLE IF NOT EXISTS (\w+) USING (fts5|fts5vocab)")
_SCORES = re.compile(r"SELECT rowid, -bm25\((\w+), .* MATCH \?")
_MATCH = re.compile(r"(\w+) MATCH :(\w+)")
_TERM = re.compile(r"SELECT doc FROM (\w+)_terms (?:WHERE term = \?|LIMIT 1)")
_COMMAND = re.compile(r"INSERT INTO (fts_\w+) \(\1(?:, rank)?\) VALUES")
_PHRASE = re.compile(r'"((?:[^"]|"")*)"')
TABLE = """CREATE TABLE IF NOT EXISTS {0} (
    rowid BIGINT PRIMARY KEY, title TEXT COLLATE "C" NOT NULL,
    keywords TEXT COLLATE "C" NOT NULL, section TEXT COLLATE "C" NOT NULL,
    body TEXT COLLATE "C" NOT NULL, words TEXT[] COLLATE "C" GENERATED ALWAYS AS (string_to_array(
    title || ' ' || keywords || ' ' || section || ' ' || body, ' ')) STORED)"""
INDEX = "CREATE INDEX IF NOT EXISTS {0}_words ON {0} USING gin (words)"


def special(sql: str, connection: PostgresConnection, values: Any) -> str | list[Any] | None:  # noqa: ANN401
    """Return what a statement gives, or one in its place; None for any other statement."""
    if sql.startswith("PRAGMA"):
        return _pragma(sql, connection)
    if sql.startswith(("CREATE TRIGGER", "DROP TRIGGER")):
        return _trigger(sql, connection)
    if "fts_" not in sql:
        return None
    if (made := _CREATE.match(sql)) is not None:
        if made[2] == "fts5":
            connection.execute_as_is(TABLE.format(made[1]))
            connection.execute_as_is(INDEX.format(made[1]))
        return []
    if re.fullmatch(r"DROP TABLE IF EXISTS fts_\d+_\w+", sql) or _COMMAND.match(sql):
        return []  # nothing is kept beside a table, nothing is to be merged
    if (term := _TERM.match(sql)) is not None:
        if not values:
            return []
        query = f"SELECT count(*) AS doc FROM {term[1]} WHERE words @> ARRAY[?]::text[]"
        return connection.execute(query, values).fetchall()
    if (scores := _SCORES.match(sql)) is not None:
        return _scores(connection, scores[1], values)
    return _matching(sql, values)


def _pragma(sql: str, connection: PostgresConnection) -> str | list[Any]:
    if "user_version" in sql:
        return "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'schema_format'"
    return []  # the server checks its own pages and references


def _trigger(sql: str, connection: PostgresConnection) -> list[Any]:
    if sql.startswith("DROP"):
        name = sql.split()[-1]
        connection.execute_as_is(f"DROP TRIGGER {name} ON {name.split('_')[0]}")
        return []
    for statement in trigger(sql):
        connection.execute_as_is(statement)
    return []


def _matching(sql: str, values: Any) -> str | None:  # noqa: ANN401
    """Put a test of words in the place of a MATCH of one phrase."""
    if (found := _MATCH.search(sql)) is None or not isinstance(values, Mapping):
        return None
    name, given = found[1], found[2]
    phrase = _PHRASE.findall(values[given])[0].replace('""', '"')
    values[given] = f" {phrase} "  # type: ignore[index] # the caller's own, made for this statement
    texts = (f"instr(' ' || {name}.{column} || ' ', :{given}) > 0" for column in COLUMNS)
    return sql.replace(found[0], f"({' OR '.join(texts)})")


COLUMNS = ("title", "keywords", "section", "body")


def _scores(connection: PostgresConnection, name: str, values: Any) -> list[Any]:  # noqa: ANN401
    """Return (row id, BM25) of the chunks with any of the terms, as FTS5 scores them."""
    weights, wanted = (
        (*values[:3], 1.0),
        [one.replace('""', '"') for one in _PHRASE.findall(values[3])],
    )
    cursor = connection.cursor()
    cursor.row_factory = None
    query = f"SELECT count(*), coalesce(sum(cardinality(words)), 0) FROM {name}"
    total, length = cursor.execute(query).fetchone()
    query = f"""SELECT rowid, title, keywords, section, body, cardinality(words) FROM {name}
        WHERE words && ?"""
    rows = cursor.execute(query, (wanted,)).fetchall()
    found: list[tuple[int, int, Counter[str]]] = []
    having: Counter[str] = Counter()
    terms = set(wanted)
    for row in rows:
        counts: Counter[str] = Counter()
        for weight, text in zip(weights, row[1:5], strict=True):
            for word in text.split(" "):
                if word in terms:
                    counts[word] += weight
        having.update(counts.keys())
        found.append((row[0], row[5], counts))
    idf = {t: max(LEAST_IDF, log((total - n + 0.5) / (n + 0.5))) for t, n in having.items()}
    mean = length / max(1, total)
    return [
        (rowid, sum(
            idf[term] * count * (K1 + 1) / (count + K1 * (1 - B + B * size / mean))
            for term, count in counts.items()
        ))
        for rowid, size, counts in found
    ]  # fmt: skip
