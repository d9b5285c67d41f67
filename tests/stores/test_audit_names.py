"""Names of documents are struck out of old audit rows, and the chain stays whole."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from scanning import encoded, holding

from core.auth import AuthContext
from core.settings import Settings, load_settings
from stores.audit import AuditLog, Entry
from stores.audit_chain import STRUCK
from stores.audit_names import AT_ONCE, HASH, NAMED_UPTO
from stores.database import Database
from stores.migrations import apply_migrations

ANN = AuthContext(tenant="acme", user="ann")
FILE = "catalogue.sqlite3"
NAMES = ("Zyxomarvel.txt", "Зюксомарвел.txt", "赑淼焱垚.txt", "Зюксомарвіл\ud800.txt")
ROWS = [
    Entry("login", ANN, {"key": "0a1b", "name": "stays"}),
    *(Entry("upload", ANN, {"job": "j", "collection": "c", "name": name}) for name in NAMES),
    *(Entry("retrieval", ANN, {"tool": "passages", "document": name}) for name in NAMES),
    Entry("retrieval", ANN, {"tool": "search", "evidence": ["e1"]}),
    *(Entry("deletion", ANN, {"collection": "c", "document": name}) for name in NAMES),
    Entry("deletion", ANN, {"conversation": "0123"}),
]
STRUCK_ROWS = 3 * len(NAMES)


@pytest.fixture
def settings() -> Settings:
    return load_settings()[0]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(Database(tmp_path / FILE)) as opened:
        yield opened


def upgraded(database: Database) -> None:
    """Have rows be those of an earlier version, which the migration comes to."""
    with database.write() as connection:
        connection.execute("DELETE FROM migrations WHERE name = 'm015_audit_names'")
    with closing(sqlite3.connect(database.path, isolation_level=None)) as connection:
        assert apply_migrations(connection) == ["m015_audit_names"]


@pytest.fixture
def log(database: Database, settings: Settings) -> AuditLog:
    """Return a log with rows that name documents, brought up to date."""
    log = AuditLog(database, settings)
    log.append(ROWS)
    upgraded(database)
    return log


def test_names_are_in_no_file_afterwards_and_the_chain_is_whole(
    log: AuditLog, database: Database, tmp_path: Path, settings: Settings
) -> None:
    needles = {one for name in NAMES for one in encoded(name.partition(".")[0].strip("\ud800"))}
    old = log.verify()
    before = [row["hash"] for row in log.rows()]
    database.empty_log(5)
    assert holding(tmp_path, needles)
    assert log.strike() == STRUCK_ROWS
    database.compact(5)
    database.empty_log(5)
    assert holding(tmp_path, needles) == []
    for verdict in (log.verify(old.head), AuditLog(database, settings).verify(old.head)):
        assert (verdict.problem, verdict.rows) == ("", len(ROWS) + 1)
    assert [row["hash"] for row in log.rows()][: len(ROWS)] == before
    kept = {row["seq"]: row["facts"] for row in log.newest(None, limit=99)}
    assert kept[1] == {"key": "0a1b", "name": "stays"}
    assert kept[2] == {"job": "j", "collection": "c", HASH: log.pseudonym(NAMES[0])}
    assert kept[len(ROWS)] == {"conversation": "0123"}
    assert len(kept[len(ROWS) + 1]["rows"]) == STRUCK_ROWS


def test_who_knows_a_name_still_finds_its_rows(log: AuditLog) -> None:
    log.append([Entry("deletion", ANN, {"documents": 1, "hashes": [log.pseudonym(NAMES[0])]})])
    log.strike()
    found = log.newest("acme", document=NAMES[0], limit=9)
    assert [row["kind"] for row in found] == ["deletion", "deletion", "retrieval", "upload"]
    assert log.newest("acme", document=NAMES[0] + " ", limit=9) == []
    assert log.newest("zoo", document=NAMES[0], limit=9) == []


def test_it_is_done_once(log: AuditLog, database: Database) -> None:
    assert log.strike() == STRUCK_ROWS
    assert log.strike() == 0
    log.append([Entry("upload", ANN, {"job": "j", **log.document("new.txt")})])
    assert log.strike() == 0
    assert [row["kind"] for row in log.rows()].count(STRUCK) == 1
    assert (
        database.read().execute("SELECT 1 FROM meta WHERE key = ?", (NAMED_UPTO,)).fetchall() == []
    )


def test_a_new_log_has_nothing_to_strike(database: Database, settings: Settings) -> None:
    log = AuditLog(database, settings)
    assert log.strike() == 0
    log.append([Entry("upload", ANN, log.document("a.txt"))])
    assert (log.strike(), log.verify().rows) == (0, 1)


def change(facts: str, row: int) -> Callable[[sqlite3.Connection], None]:
    def changed(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE audit SET facts = ? WHERE seq = ?", (facts, row))

    return changed


def swap(connection: sqlite3.Connection) -> None:
    (one,) = connection.execute("SELECT facts FROM audit WHERE seq = 2").fetchone()
    (two,) = connection.execute("SELECT facts FROM audit WHERE seq = 3").fetchone()
    change(two, 2)(connection)
    change(one, 3)(connection)


def sign(connection: sqlite3.Connection) -> None:
    """Tell of another content in the row that says what the struck ones hold."""
    change(json.dumps({"rows": {"1": "0" * 64}}), len(ROWS) + 1)(connection)


def binary(connection: sqlite3.Connection) -> None:
    query = "UPDATE audit SET facts = CAST(? AS BLOB) WHERE kind = 'struck'"
    connection.execute(query, (b"\xff",))


def cut(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM audit WHERE kind = 'struck'")


@pytest.mark.parametrize(
    ("damage", "first"),
    [
        (change("{}", 2), 2),
        (change('{"job":"j"}', 3), 3),
        (change("{}", 1), 1),
        (change("no JSON", 4), 4),
        (swap, 2),
        (sign, 2),
        (binary, 2),
        (cut, 2),
    ],
)
def test_a_change_of_a_struck_row_is_found(
    log: AuditLog, tmp_path: Path, damage: Callable[[sqlite3.Connection], None], first: int
) -> None:
    log.strike()
    assert not log.verify().problem
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as connection:
        for name in ("audit_kept", "audit_unchanged"):
            connection.execute(f"DROP TRIGGER {name}")
        damage(connection)
    verdict = log.verify()
    assert verdict.problem
    assert (verdict.seq, verdict.rows) == (first, first - 1)


def test_rows_cannot_be_changed_after_it(log: AuditLog, database: Database) -> None:
    log.strike()
    with pytest.raises(sqlite3.IntegrityError, match="never"), database.write() as connection:
        connection.execute("UPDATE audit SET facts = '{}'")


def test_a_long_log_is_told_of_in_parts(database: Database, settings: Settings) -> None:
    log = AuditLog(database, settings)
    count = AT_ONCE + 1
    head = log.append([Entry("deletion", ANN, {"document": f"d{one}"}) for one in range(count)])
    upgraded(database)
    assert log.strike() == count
    verdict = log.verify(head)
    assert (verdict.problem, verdict.rows) == ("", count + 2)


def test_what_was_struck_may_be_pruned(log: AuditLog) -> None:
    log.strike()
    assert log.prune(-1) == len(ROWS)  # all but the last row
    assert log.verify().problem == ""


def test_facts_that_somebody_damaged_are_left_as_they_are(
    log: AuditLog, database: Database, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER audit_unchanged")
        change("no JSON", 2)(connection)
        change("[]", 3)(connection)
        connection.execute(
            "CREATE TRIGGER audit_unchanged BEFORE UPDATE ON audit BEGIN SELECT 1; END"
        )
    assert log.strike() == STRUCK_ROWS - 2
    verdict = log.verify()
    assert (verdict.seq, verdict.rows) == (2, 1)


def test_the_note_of_an_empty_log_is_none(database: Database) -> None:
    upgraded(database)
    query = "SELECT 1 FROM meta WHERE key = ?"
    assert database.read().execute(query, (NAMED_UPTO,)).fetchall() == []
