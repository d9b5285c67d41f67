"""Record queries: conditions mean what they say, and nothing breaks out of the cage."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import pytest
from fakes import FakeEmbedder, document, write
from pydantic import ValidationError

from core.auth import AuthContext
from core.errors import CallerError
from core.language.held_words import has_words
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


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (("title", "=", "dune"), ["dune"]),
        (("title", "=", "dun"), []),
        (("title", "contains", "U"), ["dune", "ulysses"]),
        (("tags", "=", "space"), ["dune"]),
        (("tags", "contains", "o"), ["emma"]),
        (("year", "=", "1965"), ["dune"]),
        (("year", "=", 1965), ["dune"]),
        (("year", "contains", 1965), ["dune"]),
        (("year", "contains", "19"), ["dune", "ulysses"]),
        (("year", ">", 1922), ["dune"]),
        (("year", ">=", "1922"), ["dune", "ulysses"]),
        (("year", "<", 1815.5), ["emma"]),
        (("year", "<=", 1815), ["emma"]),
        (("author", ">", 0), []),
        (("year", "<", float("nan")), []),
        (("year", "<", float("inf")), ["dune", "emma", "ulysses"]),
        (("secret", "contains", ""), []),
        (("nothing", "=", "x"), []),
        (("nothing", "missing", ""), ["dune", "emma", "ulysses"]),
        (("title", "missing", ""), []),
    ],
)
def test_a_condition_means_what_it_says(find, condition, expected) -> None:
    assert find(condition) == expected


def test_one_of_several_values_in_a_cell_is_equal_to_what_is_asked(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    cells = [
        "travel; trains",
        "trains;sea",
        "sea|trains|air",
        "trains",
        "seatrains; x",
        "a, trains",
    ]
    rows = [
        document(collection, str(n), "text", fields={"subjects": cell})
        for n, cell in enumerate(cells)
    ]
    write(store, collection, rows, embedder)
    where = [Condition(field="subjects", op="=", value="trains")]
    _, total = store.catalogue.find_records(
        ANN, collection.id, where, order_by=None, descending=True, limit=20
    )
    assert total == 4


def test_all_conditions_must_hold_or_most(find) -> None:
    both = [("author", "=", "herbert"), ("year", ">", 1900)]
    assert find(*both) == ["dune"]
    assert find(*both, most=True) == ["dune", "ulysses"]
    assert find(("author", "=", "austen"), ("year", ">", 1950), ("year", ">", 1960), most=True) == [
        "dune",
        "emma",
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["dune", "emma", "ulysses"]),
        ({"order_by": "year"}, ["dune", "ulysses", "emma"]),
        ({"order_by": "year", "descending": False}, ["emma", "ulysses", "dune"]),
        ({"order_by": "author", "descending": False}, ["emma", "dune", "ulysses"]),
        ({"order_by": "year", "limit": 1}, ["dune"]),
    ],
)
def test_records_come_in_the_order_asked_for(find, options, expected) -> None:
    assert find(**options) == expected


def test_the_total_counts_all_that_match(store: Store, books: Collection) -> None:
    rows, total = store.catalogue.find_records(
        ANN, books.id, [], order_by=None, descending=True, limit=1
    )
    assert (len(rows), total) == (1, 3)


@pytest.mark.parametrize("text", INJECTIONS)
def test_sql_in_a_value_or_a_name_is_data(store: Store, books: Collection, find, text: str) -> None:
    counts = "SELECT (SELECT count(*) FROM chunks), (SELECT count(*) FROM documents)"
    before = tuple(parts(store).database.read().execute(counts).fetchone())
    assert find(("title", "=", text)) == []
    assert find(("title", "contains", text)) == []
    assert find((text, "contains", "")) == []
    assert find(order_by=text) == ["dune", "emma", "ulysses"]
    assert tuple(parts(store).database.read().execute(counts).fetchone()) == before


def test_a_stored_value_that_looks_like_sql_is_found_as_text(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    rows = [
        document(collection, str(n), "text", fields={"title": text})
        for n, text in enumerate(INJECTIONS)
    ]
    write(store, collection, rows, embedder)
    for text in INJECTIONS:
        where = [Condition(field="title", op="=", value=text)]
        rows_found, total = store.catalogue.find_records(
            ANN, collection.id, where, order_by="title", descending=True, limit=20
        )
        assert (len(rows_found), total) == (1, 1)


@pytest.mark.parametrize("op", ["<", "<=", ">", ">="])
def test_comparing_needs_a_number(find, op: str) -> None:
    with pytest.raises(CallerError, match="compares numbers"):
        find(("year", op, "old"))


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


def test_what_is_remembered_of_fields_is_of_one_caller_and_one_index(
    store: Store, books: Collection, embedder: FakeEmbedder
) -> None:
    boss = AuthContext(tenant="acme", user="boss", roles=frozenset({"boss"}))
    for _ in range(2):
        assert "secret" not in {
            info.name for info in store.catalogue.fields_of_records(ANN, books.id)
        }
        assert "secret" in {info.name for info in store.catalogue.fields_of_records(boss, books.id)}
    more = document(books, "more", "More.", fields={"shelf": "A"})
    write(store, books, [more], embedder)
    assert "shelf" in {info.name for info in store.catalogue.fields_of_records(ANN, books.id)}


def test_fields_are_described_as_the_caller_may_see_them(store: Store, books: Collection) -> None:
    fields = {info.name: info for info in store.catalogue.fields_of_records(ANN, books.id)}
    assert list(fields) == ["author", "tags", "title", "year"]
    assert fields["year"].type == "number"
    assert fields["author"].type == "text"
    assert fields["author"].values == 3
    assert fields["tags"].examples == ["Space", "love", "sand"]
    boss = AuthContext(tenant="acme", roles=frozenset({"boss"}))
    assert "secret" in {info.name for info in store.catalogue.fields_of_records(boss, books.id)}
    stranger = AuthContext(tenant="rival", roles=frozenset({"boss"}))
    assert store.catalogue.fields_of_records(stranger, books.id) == []
    assert store.catalogue.fields_of_records(boss, books.id, ["emma"])[0].examples == ["Austen"]


def test_totals_groups_and_sums_count_only_what_the_caller_may_see(
    store: Store, books: Collection
) -> None:
    boss = AuthContext(tenant="acme", user="bo", roles=frozenset({"boss"}))
    for auth, names, added in ((ANN, 3, 5702.0), (boss, 4, 7701.0)):
        groups = store.catalogue.group_records(auth, books.id, [], "author", limit=10)
        assert (len(groups.counts), groups.values) == (names, names)
        total = store.catalogue.total_of_records(auth, books.id, [], "year")
        assert total is not None
        assert (total[0], total[2]) == (added, names)
        assert bool(store.catalogue.records_having(auth, books.id, "Nobody")) is (auth is boss)
        assert (
            sum(one.records for one in store.catalogue.describe_records(auth, books.id).tables)
            == names
        )


def test_a_field_is_added_up_for_each_value_of_another(store: Store, books: Collection) -> None:
    groups = store.catalogue.group_records(ANN, books.id, [], "author", adds="year", limit=2)
    assert groups.counts == [("Herbert", 1965), ("Joyce", 1922)]
    assert groups.values == 3


@pytest.mark.parametrize(
    ("words", "found"), [("dune", ["dune"]), ("Herbert", ["dune"]), ("classified", [])]
)
def test_a_record_is_called_by_its_title_or_a_value_of_its_own(
    store: Store, books: Collection, words: str, found: list[str]
) -> None:
    keys = store.catalogue.records_called(ANN, books.id, words)
    rows = parts(store).database.read().execute("SELECT key, document_id FROM documents")
    names = {row[0]: row[1] for row in rows}
    assert [names[key] for key in keys] == found


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
