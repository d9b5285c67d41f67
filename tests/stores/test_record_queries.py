"""Record queries: conditions mean what they say, and nothing breaks out of the cage."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import pytest
from fakes import FakeEmbedder, document, write
from pydantic import ValidationError

from core.auth import AuthContext
from core.errors import CallerError
from core.language.analysis import has_words
from stores.sqlite.catalogue import Collection
from stores.sqlite.record_conditions import Condition
from stores.store import Store, parts

ANN = AuthContext(tenant="acme", user="ann")
BOOKS = {
    "dune": {"title": "Dune", "year": 1965, "author": "Herbert", "tags": ["sand", "Space"]},
    "emma": {"title": "Emma", "year": 1815, "author": "Austen", "tags": ["love"]},
    "ulysses": {"title": "Ulysses", "year": 1922, "author": "Joyce"},
    "hidden": {"title": "Hidden", "year": 1999, "author": "Nobody", "secret": "classified"},
}
INJECTIONS = [
    "' OR '1'='1",
    "'; DROP TABLE chunks; --",
    '"; DELETE FROM documents; --',
    "year) OR 1=1 --",
    "title' UNION SELECT vector FROM embeddings --",
    ":p_tenant",
    "?",
    "%",
    "*",
    "\x00",
    "ä😀",
]


@pytest.fixture
def books(store: Store, collection: Collection, embedder: FakeEmbedder) -> Collection:
    rows = [
        document(
            collection, name, f"About {name}.", fields=fields, acl=["boss"] * (name == "hidden")
        )
        for name, fields in BOOKS.items()
    ]
    write(store, collection, [*rows, document(collection, "prose", "No record.")], embedder)
    return collection


@pytest.fixture
def find(store: Store, books: Collection) -> Callable[..., list[str]]:
    def run(*where: tuple[str, str, object], **options: object) -> list[str]:
        conditions = [Condition(field=f, op=op, value=value) for f, op, value in where]
        given = {"order_by": None, "descending": True, "limit": 10, **options}
        rows, total = store.catalogue.find_records(ANN, books.id, conditions, **given)
        assert total >= len(rows)
        names = dict(parts(store).database.read().execute("SELECT id, document_id FROM documents"))
        return [names[row] for row in rows]

    return run


@pytest.mark.parametrize("text", INJECTIONS)
def test_sql_in_a_value_or_a_name_is_data(store: Store, books: Collection, find, text: str) -> None:
    counts = "SELECT (SELECT count(*) FROM chunks), (SELECT count(*) FROM documents)"
    before = tuple(parts(store).database.read().execute(counts).fetchone())
    assert find(("title", "=", text)) == []
    assert find(("title", "contains", text)) == []
    assert find((text, "contains", "")) == []
    assert find(order_by=text) == ["dune", "emma", "ulysses"]
    assert tuple(parts(store).database.read().execute(counts).fetchone()) == before


@pytest.mark.parametrize(
    "values",
    [
        {"field": "", "value": "x"},
        {"field": "f" * 101, "value": "x"},
        {"field": "f", "op": "LIKE", "value": "x"},
        {"field": "f", "op": "= 1 OR 1", "value": "x"},
        {"field": "f", "value": None},
        {"field": "f", "value": "x", "tenant": "other"},
    ],
)
def test_a_condition_is_closed_to_anything_else(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Condition(**values)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM documents",
        "UPDATE documents SET is_open = 1",
        "INSERT INTO document_acl VALUES (1, 'user:ann')",
        "DROP TABLE chunks",
        "CREATE TABLE mine (a)",
        "CREATE TEMP TABLE mine (a)",
        "SELECT * FROM chunks",
        "SELECT vector FROM embeddings",
        "SELECT * FROM runs",
        "SELECT * FROM collections",
        "SELECT * FROM sqlite_master",
        "SELECT d.id FROM documents d JOIN chunks c ON c.document = d.id",
        "SELECT load_extension('x')",
        "SELECT hex(randomblob(1000000000))",
        "PRAGMA query_only=OFF",
        "ATTACH DATABASE ':memory:' AS other",
        "BEGIN",
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n",
    ],
)
def test_the_cage_denies_all_but_reading_records(
    store: Store, books: Collection, statement: str
) -> None:
    with pytest.raises(sqlite3.DatabaseError, match=r"not authorized|prohibited"):
        with store.catalogue._caged() as connection:
            connection.execute(statement).fetchall()
    assert parts(store).database.read().execute("SELECT count(*) FROM chunks").fetchone()[0] == 5


def test_the_cage_is_gone_after_a_query_and_after_a_refusal(
    store: Store, books: Collection, find
) -> None:
    reads = "SELECT count(*) FROM chunks"
    find(("title", "=", "dune"))
    assert parts(store).database.read().execute(reads).fetchone()[0] == 5
    with pytest.raises(CallerError):
        find(("year", "<", "old"))
    with pytest.raises(sqlite3.DatabaseError), store.catalogue._caged() as connection:
        connection.execute(reads)
    assert parts(store).database.read().execute(reads).fetchone()[0] == 5


def test_even_outside_the_cage_a_reader_cannot_write(store: Store, books: Collection) -> None:
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        parts(store).database.read().execute("DELETE FROM documents")


def test_a_query_that_takes_too_long_is_ended(
    open_store: Callable[..., Store], embedder: FakeEmbedder
) -> None:
    store = open_store(sql_timeout_s=1e-9)
    collection = store.intake.open_collection("acme", "main", None)
    rows = [document(collection, f"d{n}", "t", fields={"n": n, "m": -n}) for n in range(600)]
    write(store, collection, rows, embedder)
    where = [Condition(field="n", op=">", value=-1)]
    with pytest.raises(CallerError, match="sql_timeout_s"):
        store.catalogue.find_records(
            ANN, collection.id, where, order_by="m", descending=True, limit=5
        )
    assert parts(store).database.read().execute("SELECT count(*) FROM chunks").fetchone()[0] == 600


def test_fields_are_described_however_long_that_takes(
    open_store: Callable[..., Store], embedder: FakeEmbedder
) -> None:
    store = open_store(sql_timeout_s=1e-9)
    collection = store.intake.open_collection("acme", "main", None)
    rows = [document(collection, f"d{n}", "t", fields={"n": n, "m": -n}) for n in range(600)]
    write(store, collection, rows, embedder)
    assert [info.values for info in store.catalogue.fields_of_records(ANN, collection.id)] == [
        600,
        600,
    ]


@pytest.mark.parametrize(
    ("value", "words", "expected"),
    [
        ("stephen king; peter straub", "Stephen King", True),
        ("martin luther kingsley", "King", False),
        ("стивен кинг", "Стивена Кинга", True),
        ("printer jams", "printers", True),
        ("李明、王芳", "王芳", True),
        ("a b", "", False),
    ],
)
def test_words_are_found_in_any_form(value: str, words: str, expected: bool) -> None:
    assert has_words(value, words) is expected
