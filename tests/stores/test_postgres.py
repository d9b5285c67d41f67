"""PostgreSQL as the catalogue: what it is told, what it refuses, and moving there and back."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes import FakeEmbedder, Shelf
from postgres_server import MISSING, new_catalogue, server

from core.auth import AuthContext, reading_for
from core.errors import CallerError, CarrelError, OperatorError
from core.settings import Settings, load_settings
from stores.accounts.audit import AuditEntry
from stores.folder import CATALOGUE, POSTGRES
from stores.postgres.dialect import check_authorized, glob_pattern, translate
from stores.sqlite.records import authorize
from stores.store import Store, parts

ANN = AuthContext(tenant="acme", user="ann", roles=frozenset({"staff"}))


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT a FROM t WHERE b = ? AND c = :c", "b = %(1)s AND c = %(c)s"),
        ("SELECT ?2, '50%' FROM t WHERE user = ?1", "%(2)s , '50%%' FROM t WHERE \"user\" = %(1)s"),
        ("SELECT a IS b, a IS NOT b, a IS NULL FROM t", "a IS NOT DISTINCT FROM b"),
        ("SELECT a IS NOT b FROM t", "a IS DISTINCT FROM b"),
        ("SELECT max(a, 1), max(b) FROM t", "GREATEST(a, 1) , max(b)"),
        ("SELECT a FROM t CROSS JOIN u ON u.a = t.a", "FROM t JOIN u ON"),
        ("SELECT a FROM t CROSS JOIN u WHERE u.a = t.a", "FROM t CROSS JOIN u WHERE"),
        ("SELECT a FROM (SELECT a FROM t) WHERE a = 1", ") AS nested_"),
        ("SELECT a FROM t LIMIT -1 OFFSET ?", "FROM t OFFSET %(1)s"),
        ("SELECT a FROM t LIMIT :n", "LIMIT NULLIF(%(n)s, -1)"),
        ("INSERT OR IGNORE INTO kept_out VALUES (?, ?)", "ON CONFLICT DO NOTHING"),
        ("INSERT OR REPLACE INTO meta VALUES (?, ?)", "ON CONFLICT (key) DO UPDATE SET"),
        ("INSERT INTO erasures (at) VALUES (?)", "RETURNING id"),
        ("SELECT row_sum(CAST(a.b AS BLOB), a.c) FROM a", "row_sum(ROW(a . b, a . c)::text)"),
        ("SELECT CAST(a AS BLOB), CAST(b AS INTEGER) FROM t", "CAST(b AS BIGINT)"),
    ],
)
def test_statements_are_translated(statement: str, expected: str) -> None:
    assert expected in translate(statement).sql


@pytest.mark.parametrize(
    ("pattern", "negation", "expected"),
    [
        ("a*.md", "^", r"^(?:a.*\.md)$"),
        ("[^a]?", "^", "^(?:[^a].)$"),
        ("[!a-c]", "!", "^(?:[^a-c])$"),
        ("[]]", "!", r"^(?:[\]])$"),
        ("[", "!", r"^(?:\[)$"),
    ],
)
def test_shell_patterns_are_regular_expressions(pattern: str, negation: str, expected: str) -> None:
    assert glob_pattern(pattern, negation) == expected


def opened(folder: Path, url: str) -> Store:
    return Store(Settings(data=folder, catalogue=url), "fake", create=True)


def refused(folder: Path, url: str) -> str:
    with pytest.raises(OperatorError) as raised:
        opened(folder, url).close()
    assert "\n" not in str(raised.value)
    return str(raised.value)


def run(url: str, *statements: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT digest FROM api_keys",
        "SELECT d.id FROM documents d, api_keys k",
        "SELECT d.id FROM documents d JOIN (SELECT 1 FROM record_fields f, api_keys k) x",
        'SELECT 1 FROM "api_keys"',
        "WITH k AS (SELECT digest FROM api_keys) SELECT digest FROM k",
        "SELECT d.id FROM documents d WHERE d.id IN (SELECT run_id FROM runs)",
        "SELECT pg_read_file('x') FROM documents",
        "SELECT 1 FROM documents; DROP TABLE documents",
        "DELETE FROM documents",
    ],
)
def test_a_query_of_records_reads_nothing_else(statement: str) -> None:
    with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
        check_authorized(statement, authorize)
    check_authorized("SELECT d.id, max(f.number) FROM documents d, record_fields f", authorize)


def test_an_address_that_is_none_is_one_line() -> None:
    with pytest.raises(CallerError, match="setting 'catalogue'"):
        load_settings({"catalogue": "mysql://here"})


def test_settings_are_shown_without_the_password() -> None:
    shown = load_settings({"catalogue": "postgresql://me:secret@db/x"})[0].shown()
    assert shown["catalogue"] == "postgresql://…@db/x"


def test_a_server_that_does_not_answer_is_one_line_without_password(tmp_path: Path) -> None:
    if not server():
        pytest.skip(MISSING)
    line = refused(tmp_path / "data", "postgresql://me:secret@127.0.0.1:1/x")
    assert "127.0.0.1:1/x" in line and "secret" not in line
    assert not (tmp_path / "data" / POSTGRES).exists()


def test_two_directories_have_two_databases(tmp_path: Path) -> None:
    url = new_catalogue()
    opened(tmp_path / "one", url).close()
    assert "belongs to another data directory" in refused(tmp_path / "two", url)
    opened(tmp_path / "one", url).close()
    with pytest.raises(OperatorError, match="catalogue in PostgreSQL"):
        Store(Settings(data=tmp_path / "one"), "fake", create=True)


@pytest.mark.parametrize("found", ["3", "99"])
def test_another_format_is_refused(tmp_path: Path, found: str) -> None:
    url = new_catalogue()
    opened(tmp_path / "data", url).close()
    run(url, f"UPDATE meta SET value = '{found}' WHERE key = 'schema_format'")
    assert f"format {found}" in refused(tmp_path / "data", url)


def test_tables_of_another_program_are_left_alone(tmp_path: Path) -> None:
    url = new_catalogue()
    run(url, "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)")
    assert "another program" in refused(tmp_path / "data", url)


def test_a_role_without_rights_is_one_line(tmp_path: Path) -> None:
    url = new_catalogue()
    name = url.rsplit("%3D", 1)[1]
    run(url, f"CREATE ROLE weak_{name} LOGIN", f"GRANT USAGE ON SCHEMA {name} TO weak_{name}")
    weak = url.replace("//postgres:", f"//weak_{name}:")
    assert "must be allowed to make, read and change tables" in refused(tmp_path / "data", weak)


def test_a_role_that_only_reads_is_one_line(tmp_path: Path) -> None:
    url = new_catalogue()
    name = url.rsplit("%3D", 1)[1]
    opened(tmp_path / "data", url).close()
    run(url, f"CREATE ROLE reads_{name} LOGIN", f"GRANT USAGE ON SCHEMA {name} TO reads_{name}")
    run(url, f"GRANT SELECT ON ALL TABLES IN SCHEMA {name} TO reads_{name}")
    weak = url.replace("//postgres:", f"//reads_{name}:")
    assert "must be allowed to make, read and change" in refused(tmp_path / "data", weak)


def test_behind_every_condition_stands_the_wall_of_a_tenant(tmp_path: Path) -> None:
    embedder, own = FakeEmbedder(), new_catalogue("owner")
    with opened(tmp_path / "data", own) as store:
        for tenant in ("acme", "o'neil 5%"):
            shelf = Shelf(store, store.intake.open_collection(tenant, "main", None), embedder)
            shelf.write(shelf.row("plan", f"text of {tenant}"))
        reader = parts(store).database.read()

        def seen(query: str) -> set[str]:
            return {row[0] for row in reader.execute(query).fetchall()}

        for tenant in ("acme", "o'neil 5%"):
            with reading_for(tenant):
                assert seen("SELECT tenant FROM documents") == {tenant}
                assert seen("SELECT text FROM chunks WHERE text LIKE '%'") == {f"text of {tenant}"}
                assert seen("SELECT tenant FROM collections") == {tenant}
                assert store.catalogue.index_version()
        assert len(seen("SELECT text FROM chunks")) == 2
        store.intake.open_collection("third", "main", None)
        with reading_for("third"):
            assert seen("SELECT document_id FROM documents") == set()


def test_clocks_that_differ_are_one_line() -> None:
    from stores.postgres.database import check_clock, shown

    check_clock(time.time() - 5, "db:5432/x")
    with pytest.raises(OperatorError, match="clocks .* must agree: db:5432/x: they are 3600 s"):
        check_clock(time.time() + 3600, "db:5432/x")
    with pytest.raises(CallerError, match="no address") as raised:
        shown("postgresql://me:secret@db/x?speed=9")
    assert "secret" not in str(raised.value)


def filled(folder: Path) -> None:
    embedder = FakeEmbedder()
    with Store(Settings(data=folder), embedder.model_id, create=True) as store:
        shelf = Shelf(store, store.intake.open_collection("acme", "main", None), embedder)
        rows = [shelf.row(f"d{n}", f"text {n}", acl=["staff"] if n % 2 else []) for n in range(9)]
        shelf.write(*rows)
        store.accounts.keys.create("acme", user="ann", roles=frozenset({"staff"}))
        log = store.accounts.audit(Settings(data=folder))
        log.append([AuditEntry("login", ANN, {"n": n}) for n in range(3)])


def seen(store: Store) -> tuple[object, ...]:
    collection = store.catalogue.collection("acme", "main")
    log = store.accounts.audit(Settings(data=store.folder))
    return (
        sorted(store.catalogue.visible_documents(ANN, collection.id)),
        sorted(store.catalogue.visible_documents(AuthContext(tenant="acme"), collection.id)),
        len(store.accounts.keys.listed("acme")),
        log.verify().head,
        log.verify().problem,
        store.maintenance.check_rows().any,
        store.search.problems([collection]),
    )


def test_a_directory_moves_there_and_back(tmp_path: Path) -> None:
    from stores.postgres.moving import migrate

    folder, url = tmp_path / "data", new_catalogue()
    filled(folder)
    with Store(Settings(data=folder), "fake") as store:
        before = seen(store)
    steps = 0

    def stop(stage: str, done: int, total: int) -> None:
        nonlocal steps
        steps += 1
        if steps == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        migrate(Settings(data=folder), url, stop)
    assert "has not ended" in refused(tmp_path / "other", url)
    assert (folder / CATALOGUE).exists()
    counts = migrate(Settings(data=folder), url, lambda *_: None)
    assert (counts["documents"], counts["audit"]) == (9, 3)
    with opened(folder, url) as store:
        assert seen(store) == before
        assert store.intake.open_collection("acme", "new", None).id == 2  # numbers go on
    with pytest.raises(CarrelError, match="another place"):
        migrate(Settings(data=folder, catalogue=url), url, lambda *_: None)
    migrate(Settings(data=folder, catalogue=url), "sqlite", lambda *_: None)
    with Store(Settings(data=folder), "fake") as store:
        assert seen(store) == before
    with pytest.raises(OperatorError, match="has a catalogue already"):
        migrate(Settings(data=folder), url, lambda *_: None)


def test_a_changed_source_is_not_gone_on_with(tmp_path: Path) -> None:
    from stores.postgres.moving import migrate

    folder, url = tmp_path / "data", new_catalogue()
    filled(folder)

    def stop(stage: str, done: int, total: int) -> None:
        if done == 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        migrate(Settings(data=folder), url, stop)
    with Store(Settings(data=folder), "fake") as store:
        store.accounts.keys.create("acme", user="bob", roles=frozenset())
    with pytest.raises(OperatorError, match="has changed since"):
        migrate(Settings(data=folder), url, lambda *_: None)


def test_a_damaged_row_is_withheld(open_store: Callable[..., Store]) -> None:
    url = new_catalogue()
    store = open_store(catalogue=url)
    shelf = Shelf(store, store.intake.open_collection("acme", "main", None), FakeEmbedder())
    shelf.write(shelf.row("good", "one"), shelf.row("bad", "two"))
    run(url, "UPDATE documents SET is_open = 0, title = 'x' WHERE document_id = 'bad'")
    assert [*store.maintenance.check_rows().documents.values()] == ["bad"]
    assert store.address == url


def test_connections_that_were_cut_are_made_anew(tmp_path: Path) -> None:
    url = new_catalogue()
    with opened(tmp_path / "data", url) as store:
        store.intake.open_collection("acme", "main", None)
        run(
            url,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'carrel'",
        )
        assert [one.name for one in store.catalogue.collections()] == ["main"]
        store.intake.open_collection("acme", "later", None)
        assert len(store.catalogue.collections()) == 2
        assert store.maintenance.check_again() == []


def test_a_copy_of_the_directory_is_another_owner(tmp_path: Path) -> None:
    url = new_catalogue()
    with opened(tmp_path / "data", url):
        (tmp_path / "copy").mkdir(mode=0o700)
        shutil.copy(tmp_path / "data" / POSTGRES, tmp_path / "copy")
        assert "in use by another process" in refused(tmp_path / "copy", url)
