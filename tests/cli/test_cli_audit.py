"""`carrel audit`: the record of a server and of the command line, checked, listed, exported."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from commands import Carrel, write_files


@pytest.fixture
def data(carrel: Carrel, tmp_path: Path) -> Path:
    """Return a directory with three rows: two keys made, one revoked."""
    folder = tmp_path / "fresh"
    given = ("--tenant", "acme", "--user", "ann", "--role", "admin", "--json")
    key = carrel("keys", "create", *given, data=folder).json["id"]
    carrel("keys", "create", "--tenant", "zoo", data=folder)
    carrel("keys", "revoke", key, data=folder)
    return folder


def test_keys_of_the_command_line_are_recorded(carrel: Carrel, data: Path) -> None:
    rows = carrel("audit", "list", "--json", data=data).json["events"]
    assert [(row["kind"], row["tenant"]) for row in rows] == [
        ("key_revoked", "acme"),
        ("key_created", "zoo"),
        ("key_created", "acme"),
    ]
    assert rows[2]["facts"]["roles"] == ["admin"] and rows[2]["facts"]["user"] == "ann"
    assert {row["user"] for row in rows} == {"command.line"}
    one = carrel("audit", "list", "--tenant", "zoo", "--json", data=data).json["events"]
    assert [row["seq"] for row in one] == [2]
    shown = carrel("audit", "list", "--kind", "key_revoked", "-n", 1, data=data)
    assert "key_revoked" in shown.out and "zoo" not in shown.out
    lines = carrel("audit", "export", data=data).out.splitlines()
    assert [json.loads(line)["seq"] for line in lines] == [1, 2, 3]
    assert json.loads(lines[1])["previous"] == json.loads(lines[0])["hash"]


def test_a_whole_record_is_said_to_be_whole(carrel: Carrel, data: Path) -> None:
    done = carrel("audit", "verify", data=data)
    head = done.out.split()[-1]
    assert done.code == 0 and done.out.startswith("3 rows checked, none changed; head 3:")
    assert carrel("audit", "verify", "--expect", head, data=data).code == 0
    found = carrel("audit", "verify", "--json", data=data).json
    assert found == {"whole": True, "rows": 3, "head": head, "problem": "", "seq": None}


@pytest.mark.parametrize(
    ("trigger", "change", "row"),
    [
        ("audit_unchanged", "UPDATE audit SET user = 'bob' WHERE seq = 2", 2),
        ("audit_kept", "DELETE FROM audit WHERE seq = 3", 3),
        ("audit_kept", "DELETE FROM audit WHERE seq = 1", 1),
    ],
)
def test_a_broken_record_names_its_first_row(
    carrel: Carrel, data: Path, trigger: str, change: str, row: int
) -> None:
    with closing(sqlite3.connect(data / "catalogue.sqlite3")) as connection, connection:
        connection.execute(f"DROP TRIGGER {trigger}")
        connection.execute(change)
    carrel("audit", "verify", data=data).failed(1, f"row {row}:")
    done = carrel("audit", "verify", "--json", data=data)
    assert (done.code, json.loads(done.out)["seq"]) == (1, row)


def test_wrong_use(carrel: Carrel, data: Path, tmp_path: Path) -> None:
    for head in ("3", "x:y", "3:abc", "0:" + "0" * 64):
        carrel("audit", "verify", "--expect", head, data=data).failed(2, "number and its hash")
    carrel("audit", "verify", "--expect", "9:" + "0" * 64, data=data).failed(1, "gone")
    carrel("audit", "list", data=tmp_path / "none").failed(4, "no data here")
    (data / "audit.key").unlink()
    carrel("audit", "verify", data=data).failed(4, "key of the audit log is gone")


def test_ingests_of_the_command_line_are_recorded(carrel: Carrel, tmp_path: Path) -> None:
    folder, data = (
        write_files(tmp_path / "files", {"a.md": "# A\n\nOne fern grows."}),
        tmp_path / "d",
    )
    carrel("ingest", folder, "--tenant", "acme", data=data)
    carrel("ingest", folder, "--tenant", "acme", data=data)  # nothing has changed
    write_files(tmp_path / "files", {"b.md": "# B\n\nTwo ferns grow."})
    (tmp_path / "files" / "a.md").unlink()
    carrel("ingest", folder, "--tenant", "acme", "--prune", data=data)
    rows = carrel("audit", "list", "--json", data=data).json["events"]
    assert [row["kind"] for row in rows] == ["deletion", "upload", "upload"]
    assert rows[1]["facts"] == {"collection": "default", "files": 1, "readers": []}
    assert rows[0]["facts"]["documents"] == 1 and rows[0]["tenant"] == "acme"
