"""`carrel backup` and `carrel restore`: a new directory answers as the old one did."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from commands import DOCUMENTS, HEIGHT, Carrel, built_library, copied, in_process, query

import cli.restore
from core.errors import OperatorError


@pytest.fixture
def carrel(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Carrel:
    return in_process(capsys, monkeypatch)


@pytest.fixture
def data(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied(built_library(tmp_path_factory.getbasetemp()), tmp_path / "copy")


def test_a_restored_directory_answers_and_is_whole(
    carrel: Carrel, data: Path, tmp_path: Path
) -> None:
    run = carrel("ask", HEIGHT, "--json", data=data).json
    key = carrel("keys", "create", "--json", data=data).json
    (tmp_path / "key").write_text("correct horse battery staple", encoding="utf-8")
    sealed = ("--key-file", tmp_path / "key")
    made = carrel("backup", tmp_path / "b", *sealed, "--json", data=data).json
    assert (made["documents"], made["sealed"]) == (DOCUMENTS, True)
    there = tmp_path / "there"
    done = carrel("restore", tmp_path / "b", *sealed, "--json", data=there).json
    assert (done["documents"], done["embedded"], done["checked"]) == (DOCUMENTS, 0, True)
    assert done["vectors"] == done["chunks"] == made["chunks"]
    report = carrel("doctor", "--json", data=there).json
    assert (report["ok"], report["vectors"]) == (True, made["chunks"])
    again = carrel("ask", HEIGHT, "--json", data=there).json
    assert (again["answer"], again["claims"]) == (run["answer"], run["claims"])
    assert run["run_id"] in carrel("trace", data=there).out
    listed = carrel("keys", "list", "--json", data=there).json["keys"]
    assert [one["id"] for one in listed] == [key["id"]]
    assert carrel("audit", "verify", data=there).code == 0
    assert there.stat().st_mode & 0o777 == 0o700
    assert not list(tmp_path.glob("*.restoring"))


def test_an_older_backup_is_brought_up_to_date(carrel: Carrel, data: Path, tmp_path: Path) -> None:
    from stores.backup.snapshot import placed  # what is left out of a copy is made again

    assert placed("index", "CREATE UNIQUE INDEX i ON t (a)").startswith("CREATE UNIQUE INDEX ")
    with closing(sqlite3.connect(data / "catalogue.sqlite3")) as connection:
        for name in ("erasures", "erasure_leftovers", "kept_out"):
            connection.execute(f"DROP TABLE {name}")
        later = "('m014_erasure', 'm018_id_secret')"  # the second looks at what the first makes
        connection.execute(f"DELETE FROM migrations WHERE name IN {later}")
        connection.execute("DELETE FROM meta WHERE key = 'id_secret'")
        connection.commit()
    older = _backup_without_opening(data, tmp_path / "b")
    there = tmp_path / "there"
    assert carrel("restore", older, "--json", data=there).json["documents"] == DOCUMENTS
    assert ("m014_erasure",) in query(there, "SELECT name FROM migrations")
    assert query(there, "SELECT value FROM meta WHERE key = 'id_secret'") == [("",)]  # as it was


def _backup_without_opening(data: Path, target: Path) -> Path:
    """Back up as the program that wrote the directory would have done."""
    import stores.database
    from stores.backup.pack import make_backup

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stores.database, "apply_migrations", lambda connection: [])
        with closing(stores.database.Database(data / "catalogue.sqlite3")) as database:
            make_backup(database, target, lambda stage, done, total: None)
    return target


def test_only_an_empty_directory_is_restored_into(
    carrel: Carrel, data: Path, tmp_path: Path
) -> None:
    assert "not sealed" in carrel("backup", tmp_path / "b", data=data).out
    carrel("backup", tmp_path / "b", data=data).failed(4, "does not overwrite", "--force")
    assert carrel("backup", tmp_path / "b", "--force", data=data).code == 0
    carrel("restore", tmp_path / "b", data=data).failed(4, "empty directory")
    empty = tmp_path / "empty"
    empty.mkdir()
    done = carrel("restore", tmp_path / "b", data=empty)
    assert done.code == 0 and "who made it is not proven" in done.err
    carrel("restore", tmp_path / "none", data=tmp_path / "x").failed(4, "backup must be readable")
    assert not (tmp_path / "x").exists() and not (tmp_path / "x.restoring").exists()


def test_a_restore_that_ends_leaves_nothing_that_looks_whole(
    carrel: Carrel, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    carrel("backup", tmp_path / "b", data=data)
    there = tmp_path / "there"
    left = tmp_path / "there.restoring"
    (left / "chroma").mkdir(parents=True)  # as a kill leaves it
    (left / "catalogue.sqlite3").write_text("half", encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(cli.restore, "_completed", _fails)
        carrel("restore", tmp_path / "b", data=there).failed(4, "the disk is full")
    assert not there.exists() and not left.exists()
    assert carrel("restore", tmp_path / "b", data=there).code == 0
    assert carrel("doctor", data=there).code == 0


def _fails(*given: object) -> None:
    raise OperatorError("the disk is full")
