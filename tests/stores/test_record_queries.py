"""Record queries: conditions and names mean what they say, and nothing breaks out of the cage."""

from __future__ import annotations

import sqlite3

import pytest
from behind import count
from fakes import OpenShelf
from pydantic import ValidationError
from record_books import ANN, INJECTIONS

from core.errors import CallerError
from core.language.analysis import has_words
from stores.sqlite.catalogue import Collection
from stores.sqlite.record_conditions import Condition, RecordScope, sounds_like
from stores.store import Store


@pytest.mark.parametrize("text", INJECTIONS)
def test_sql_in_a_value_or_a_name_is_data(store: Store, books: Collection, find, text: str) -> None:
    before = count(store, "chunks"), count(store, "documents")
    assert find(("title", "=", text)) == []
    assert find(("title", "contains", text)) == []
    assert find((text, "contains", "")) == []
    assert find(order_by=text) == ["dune", "emma", "ulysses"]
    assert (count(store, "chunks"), count(store, "documents")) == before


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
    assert count(store, "chunks") == 5


def test_the_cage_is_gone_after_a_query_and_after_a_refusal(
    store: Store, books: Collection, find
) -> None:
    reads = "SELECT count(*) FROM chunks"
    find(("title", "=", "dune"))
    assert count(store, "chunks") == 5
    with pytest.raises(CallerError):
        find(("year", "<", "old"))
    with pytest.raises(sqlite3.DatabaseError), store.catalogue._caged() as connection:
        connection.execute(reads)
    assert count(store, "chunks") == 5


def test_a_query_that_takes_too_long_is_ended_and_fields_are_described(
    open_shelf: OpenShelf,
) -> None:
    shelf = open_shelf(sql_timeout_s=1e-9)
    rows = [shelf.row(f"d{n}", "t", fields={"n": n, "m": -n}) for n in range(600)]
    shelf.write(*rows)
    where, asked = [Condition(field="n", op=">", value=-1)], {"order_by": "m", "descending": True}
    with pytest.raises(CallerError, match="sql_timeout_s"):
        shelf.catalogue.find_records(RecordScope(ANN, shelf.id), where, limit=5, **asked)
    assert count(shelf.store, "chunks") == 600
    described = shelf.catalogue.fields_of_records(ANN, shelf.id)
    assert [info.values for info in described] == [600, 600]


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


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("Fyodor Dostoyevsky", "Достоевского"),
        ("William Shakespeare", "Шекспіра"),
        ("Stephen King", "Стивена Кинга"),
        ("Agatha Christie", "Агаты Кристи"),
        ("Ernest Hemingway", "Хемингуэй"),
        ("Достоевский", "Достоевского"),
    ],
)
def test_a_name_in_any_case_of_any_script(value: str, name: str) -> None:
    assert sounds_like(value, name)


@pytest.mark.parametrize(
    ("value", "name"),
    [("Neil Gaiman", "Гоголя"), ("Stephen King", "Стивена Крейна"), ("Fiction", "Ян")],
)
def test_another_name_is_none(value: str, name: str) -> None:
    assert not sounds_like(value, name)
