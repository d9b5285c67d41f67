"""The audit log: rows stay as they are, whoever adds at the same time, and any change is found."""

from __future__ import annotations

import datetime
import json
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from fakes import Clock
from hypothesis import given
from hypothesis import settings as searching
from hypothesis import strategies as st
from scanning import encoded, holding
from tiers import examples

from core.auth import AuthContext
from core.errors import OperatorError
from core.settings import Settings, load_settings
from stores.accounts.audit import AuditEntry, AuditLog
from stores.accounts.audit_chain import FIELDS, HEAD_FILE, KEY_FILE, Head
from stores.sqlite.database import Database
from stores.sqlite.schema import AUDIT_KEPT

ANN = AuthContext(tenant="acme", user="ann", roles=frozenset({"reader"}))
NOW = datetime.datetime(2026, 5, 1, 12, tzinfo=datetime.UTC)
FILE = "catalogue.sqlite3"
FACTS = [
    AuditEntry("login", ANN, {"key": "0a1b", "how": "key"}, NOW),
    AuditEntry("retrieval", ANN, {"tool": "search", "evidence": ["e1", "чайник#2", "茶#1"]}, NOW),
    AuditEntry("login_failed", None, {"address": "192.0.2.1"}, NOW),
    AuditEntry(
        "answer", ANN, {"run": "abc", "refused": False, "odd": "\ud800 \x00 \n \u2028"}, NOW
    ),
]


@pytest.fixture
def settings() -> Settings:
    return load_settings()[0]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(Database(tmp_path / FILE)) as opened:
        yield opened


@pytest.fixture
def log(database: Database, settings: Settings) -> AuditLog:
    return AuditLog(database, settings)


def unguarded(folder: Path) -> sqlite3.Connection:
    """Open a catalogue as somebody does who can write the file."""
    connection = sqlite3.connect(folder / FILE, isolation_level=None)
    for name in ("audit_kept", "audit_unchanged"):
        connection.execute(f"DROP TRIGGER {name}")
    return connection


def test_who_knows_a_name_finds_its_rows_and_nobody_else_reads_it(
    log: AuditLog, database: Database, tmp_path: Path
) -> None:
    name = "Зюксомарвіл\ud800.txt"
    log.append([AuditEntry("upload", ANN, {"job": "j", **log.document(name)})])
    log.append([AuditEntry("deletion", ANN, {"documents": 1, "hashes": [log.pseudonym(name)]})])
    found = log.newest("acme", document=name, limit=9)
    assert [row["kind"] for row in found] == ["deletion", "upload"]
    assert log.newest("acme", document=name + " ", limit=9) == []
    assert log.newest("zoo", document=name, limit=9) == []
    database.empty_log(5)
    assert holding(tmp_path, encoded("Зюксомарвіл")) == []


@pytest.mark.parametrize(
    "statement",
    ["UPDATE audit SET user = 'bob'", "DELETE FROM audit", "DELETE FROM audit WHERE seq = 4"],
)
def test_rows_cannot_be_changed_by_this_program(
    log: AuditLog, database: Database, statement: str
) -> None:
    log.append(FACTS)
    with pytest.raises(sqlite3.IntegrityError, match="never"), database.write() as connection:
        connection.execute(statement)
    assert log.verify().rows == 4


def test_it_goes_on_after_a_restart(tmp_path: Path, settings: Settings) -> None:
    for _ in range(3):
        with closing(Database(tmp_path / FILE)) as database:
            log = AuditLog(database, settings)
            log.append(FACTS)
            verdict = log.verify()
    assert (verdict.problem, verdict.rows) == ("", 12)
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o077 == 0


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audit")
    with closing(Database(folder / FILE)) as database:
        AuditLog(database, load_settings()[0]).append(FACTS)
    return folder


@searching(max_examples=examples(60))
@given(
    seq=st.integers(1, 4),
    name=st.sampled_from(FIELDS),
    place=st.floats(0, 1, exclude_max=True),
    flip=st.integers(1, 255),
)
def test_a_change_of_any_byte_is_found(
    written: Path,
    tmp_path_factory: pytest.TempPathFactory,
    seq: int,
    name: str,
    place: float,
    flip: int,
) -> None:
    folder = tmp_path_factory.mktemp("changed") / "data"
    shutil.copytree(written, folder)
    with closing(unguarded(folder)) as connection:
        query = f"SELECT CAST({name} AS BLOB) FROM audit WHERE seq = ?"
        before = connection.execute(query, (seq,)).fetchone()[0]
        if name == "seq":
            changed: object = seq + flip * 256
        else:
            after = bytearray(before or b"\0")
            after[int(place * len(after))] ^= flip
            changed = bytes(after)
        value = "?" if name == "seq" else "CAST(? AS TEXT)"
        connection.execute(f"UPDATE audit SET {name} = {value} WHERE seq = ?", (changed, seq))
    with closing(Database(folder / FILE)) as database:
        verdict = AuditLog(database, load_settings()[0]).verify()
    assert verdict.problem
    if name != "seq":  # a row with another number leaves a gap, or makes the first the last
        assert (verdict.seq, verdict.rows) == (seq, seq - 1)


COLUMNS = "at, kind, tenant, user, facts, hash, previous"
REWRITTEN = {  # what somebody does to the rows, and the first that is wrong afterwards
    "put aside": (["DELETE FROM audit WHERE seq > 2"], 3),
    "cut": (["DELETE FROM audit WHERE seq = 4"], 4),
    "all cut": (["DELETE FROM audit"], 1),
    "beginning cut": (["DELETE FROM audit WHERE seq < 3"], 1),
    "swapped": (
        [
            "UPDATE audit SET seq = seq + 100 WHERE seq IN (2, 3)",
            "UPDATE audit SET seq = 105 - (seq - 100) - 100 WHERE seq > 100",
        ],
        2,
    ),
    "added": ([f"INSERT INTO audit SELECT 5, {COLUMNS} FROM audit WHERE seq = 4"], 5),
    "of another type": (["UPDATE audit SET facts = CAST(facts AS BLOB) WHERE seq = 2"], 2),
}


@pytest.mark.parametrize(("statements", "seq"), REWRITTEN.values(), ids=REWRITTEN)
def test_rows_that_are_gone_moved_or_added_are_found(
    log: AuditLog, tmp_path: Path, statements: list[str], seq: int
) -> None:
    log.append(FACTS)
    with closing(unguarded(tmp_path)) as connection:
        for statement in statements:
            connection.execute(statement)
    verdict = log.verify()
    assert verdict.problem and verdict.seq == seq


def test_a_tail_that_is_cut_is_found_also_after_more_was_written(
    tmp_path: Path, settings: Settings
) -> None:
    with closing(Database(tmp_path / FILE)) as database:
        AuditLog(database, settings).append(FACTS)
    with closing(unguarded(tmp_path)) as connection:
        connection.execute("DELETE FROM audit WHERE seq = 4")
        connection.execute(AUDIT_KEPT)
    with closing(Database(tmp_path / FILE)) as database:
        log = AuditLog(database, settings)
        log.append(FACTS)
        verdict = log.verify()
        assert (verdict.seq, "gone" in verdict.problem) == (4, True)
        assert json.loads([*log.rows()][3]["facts"])["known"] == 4


def test_an_older_copy_of_everything_is_found_by_a_head_kept_elsewhere(
    log: AuditLog, tmp_path: Path
) -> None:
    log.append(FACTS[:2])
    note = (tmp_path / HEAD_FILE).read_bytes()
    later = log.append(FACTS[2:])
    assert not log.verify(later).problem
    with closing(unguarded(tmp_path)) as connection:
        connection.execute("DELETE FROM audit WHERE seq > 2")
        connection.execute("UPDATE meta SET value = '2' WHERE key = 'audit_rows'")
    (tmp_path / HEAD_FILE).write_bytes(note)
    assert not log.verify().problem
    assert log.verify(later).seq == 3
    assert log.verify(Head(2, "f" * 64)).seq == 2


def test_the_note_of_the_last_row_must_be_there(log: AuditLog, tmp_path: Path) -> None:
    log.append(FACTS)
    (tmp_path / HEAD_FILE).write_text("{")
    assert log.verify().problem
    (tmp_path / HEAD_FILE).unlink()
    assert "note" in log.verify().problem


def test_another_key_signs_nothing_here(
    log: AuditLog, database: Database, tmp_path: Path, settings: Settings
) -> None:
    log.append(FACTS)
    other = load_settings({"audit_key": "x" * 32})[0]
    assert AuditLog(database, other).verify().seq == 1
    (tmp_path / KEY_FILE).write_text("walrus")
    with pytest.raises(OperatorError, match="damaged"):
        AuditLog(database, settings)
    (tmp_path / KEY_FILE).unlink()
    with pytest.raises(OperatorError, match="gone"):
        AuditLog(database, settings)
    with pytest.raises(OperatorError, match="32 bytes") as short:
        AuditLog(database, load_settings({"audit_key": "short secret"})[0])
    assert "short secret" not in str(short.value)


@searching(max_examples=examples(10))
@given(st.lists(st.integers(1, 6), min_size=2, max_size=4))
def test_those_who_write_at_once_make_one_chain(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("together")
    settings = load_settings()[0]
    ready = threading.Barrier(len(sizes))

    def write(size: int) -> None:
        with closing(Database(folder / FILE)) as database:  # as another process has it
            log = AuditLog(database, settings)
            ready.wait()
            for _ in range(size):
                log.append(FACTS[:2])

    with closing(Database(folder / FILE)) as database:
        AuditLog(database, settings).append(FACTS[:1])
        threads = [threading.Thread(target=write, args=(size,)) for size in sizes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        verdict = AuditLog(database, settings).verify()
    assert (verdict.problem, verdict.rows) == ("", 1 + 2 * sum(sizes))


@searching(max_examples=examples(20))
@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 9)), max_size=6))
def test_pruning_keeps_the_chain_and_cannot_be_feigned(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[tuple[int, int]]
) -> None:
    folder = tmp_path_factory.mktemp("pruned")
    clock = Clock(NOW)
    with closing(Database(folder / FILE)) as database:
        log = AuditLog(database, load_settings()[0], clock)
        log.append([AuditEntry("login", ANN, {}, NOW)])
        for day, (rows, days) in enumerate(rounds):
            clock.now = NOW + datetime.timedelta(days=day)
            log.append([AuditEntry("login", ANN, {"day": day}, clock.now)] * rows)
            log.prune(days)
            left = [*log.rows()]
            oldest = clock.now - datetime.timedelta(days=days)
            assert all(row["at"] >= oldest.isoformat()[:19] for row in left)
            assert not log.verify().problem
        with pytest.raises(sqlite3.IntegrityError), database.write() as connection:
            connection.execute("DELETE FROM audit")
        first = [*log.rows()][0]["seq"]
        if len([*log.rows()]) > 1:
            with closing(unguarded(folder)) as connection:
                connection.execute("DELETE FROM audit WHERE seq = ?", (first,))
            assert "without a checkpoint" in log.verify().problem
