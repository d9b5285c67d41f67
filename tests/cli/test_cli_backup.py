"""`carrel backup` and `carrel restore`: a new directory answers as the old one did."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from commands import DOCUMENTS, HEIGHT, Carrel
from postgres_server import new_catalogue

import cli.upkeep.backup
from core.errors import OperatorError
from stores.backup import archive
from stores.backup.format import facts_of


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


def test_a_backup_is_restored_into_postgres_and_moved_back(
    carrel: Carrel, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = carrel("ask", HEIGHT, "--json", data=data).json["answer"]
    carrel("backup", tmp_path / "b", data=data)
    there = tmp_path / "there"
    monkeypatch.setenv("CARREL_CATALOGUE", "postgresql://me:secret@127.0.0.1:1/x")
    away = carrel("restore", tmp_path / "b", data=there)
    away.failed(4, "does not let this program in", "127.0.0.1:1/x")
    assert not list(tmp_path.glob("there*"))
    monkeypatch.setenv("CARREL_CATALOGUE", new_catalogue())
    assert carrel("restore", tmp_path / "b", "--json", data=there).json["documents"] == DOCUMENTS
    assert {one.name for one in there.glob("cat*")} == {"catalogue.postgres"}
    assert carrel("ask", HEIGHT, "--json", data=there).json["answer"] == answer
    moved = carrel("migrate", "--to", "sqlite", "--json", data=there).json
    assert moved["conversations_without_state"] == 0
    monkeypatch.delenv("CARREL_CATALOGUE")
    assert carrel("doctor", "--json", data=there).json["ok"]


@pytest.mark.parametrize(
    "command",
    [
        ("ask", HEIGHT),
        ("search", "candle"),
        ("ingest", "."),
        ("doctor",),
        ("quality",),
        ("reindex",),
        ("keys", "list"),
        ("keys", "create"),
        ("audit", "verify"),
        ("forget", "b1"),
        ("backup", "b"),
        ("serve", "--port", "0"),
    ],
)
def test_a_directory_of_an_earlier_format_is_refused_and_left_as_it_is(
    carrel: Carrel, data: Path, command: tuple[str, ...]
) -> None:
    with closing(sqlite3.connect(data / "catalogue.sqlite3")) as connection:
        connection.execute("PRAGMA user_version = 0")
    before = {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}
    hint = "`carrel ingest PATH --data DIRECTORY`"
    carrel(*command, data=data).failed(
        4, "data directory has an earlier format: format 0", str(data), "Nothing was changed", hint
    )
    assert {path: path.read_bytes() for path in data.rglob("*") if path.is_file()} == before


def test_a_backup_of_an_earlier_format_is_refused(
    carrel: Carrel, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(archive, "facts_of", lambda copied: {**facts_of(copied), "format": 1})
        carrel("backup", tmp_path / "b", data=data)
    there = tmp_path / "there"
    carrel("restore", tmp_path / "b", data=there).failed(4, "backup has an earlier format")
    assert not there.exists()


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
        patch.setattr(cli.upkeep.backup, "_completed", _fails)
        carrel("restore", tmp_path / "b", data=there).failed(4, "the disk is full")
    assert not there.exists() and not left.exists()
    assert carrel("restore", tmp_path / "b", data=there).code == 0
    assert carrel("doctor", data=there).code == 0


def _fails(*given: object) -> None:
    raise OperatorError("the disk is full")
