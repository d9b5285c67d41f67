"""`carrel forget` erases what it is told, says what it did, and nothing else is lost."""

from __future__ import annotations

import io
import os
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from commands import (
    DOCUMENTS,
    HEIGHT,
    Carrel,
    built_library,
    copied,
    in_process,
    query,
    write_files,
)
from scanning import encoded, holding, rows_with

from core.auth import AuthContext
from core.settings import load_settings
from stores.audit import AuditLog, Entry
from stores.audit_names import NAMED_UPTO
from stores.database import Database


@pytest.fixture
def carrel(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Carrel:
    return in_process(capsys, monkeypatch)


@pytest.fixture
def data(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied(built_library(tmp_path_factory.getbasetemp()), tmp_path / "copy")


def deletions(carrel: Carrel, data: Path) -> list[dict[str, Any]]:
    said = carrel("audit", "list", "--kind", "deletion", "--json", data=data).json
    return list(said["events"])


def test_a_document_is_forgotten_with_what_was_asked_about_it(carrel: Carrel, data: Path) -> None:
    before = deletions(carrel, data)
    assert "42 mm" in carrel("ask", HEIGHT, data=data).out
    done = carrel("forget", "guide/candle.md", "--json", data=data).json
    erased = done["erased"]
    assert (erased["documents"], erased["files"]) == (1, 1)
    assert erased["chunks"] > 0 and erased["runs"] > 0
    needles = encoded("wick draws") | encoded("42 mm") | encoded("candle.md") | encoded("Ann Wick")
    assert holding(data, needles) == []
    assert carrel("search", "candle flame", "--json", data=data).json["results"][0]["source"] != (
        "guide/candle.md"
    )
    report = carrel("doctor", "--json", data=data).json
    assert (report["ok"], report["documents"]) == (True, DOCUMENTS - 1)
    after = deletions(carrel, data)
    (event,) = after[: len(after) - len(before)]  # the newest first
    assert event["facts"]["documents"] == 1 and len(event["facts"]["hashes"]) == 1
    assert carrel("audit", "verify", data=data).code == 0


@pytest.mark.parametrize("by", [("guide/candle.md",), ("--tenant", "default", "--yes")])
@pytest.mark.parametrize("audit", ["true", "false"])
def test_rows_of_an_earlier_version_name_it_no_more(
    carrel: Carrel, data: Path, by: tuple[str, ...], audit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "guide/candle.md"
    with closing(Database(data / "catalogue.sqlite3")) as database:
        log = AuditLog(database, load_settings()[0])
        facts = {"collection": "default", "document": name}
        head = log.append([Entry("deletion", AuthContext(tenant="default", user="ann"), facts)])
        with database.write() as connection:
            note = (NAMED_UPTO, str(head.seq))
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", note)
    monkeypatch.setenv("CARREL_AUDIT", audit)
    assert carrel("forget", *by, "--json", data=data).json["erased"]["documents"]
    assert holding(data, encoded("candle.md")) == []
    assert carrel("audit", "verify", "--expect", head, data=data).code == 0
    rows = carrel("audit", "list", "--document", name, "--json", data=data).json["events"]
    assert head.seq in [row["seq"] for row in rows]


def test_a_source_a_tenant_and_nothing(carrel: Carrel, data: Path) -> None:
    # What was asked stays as a run, whose plan names the thing in a filter of records.
    assert "два литра" in carrel("ask", "Какой объём чайника?", data=data).out
    done = carrel("forget", "--source", "books.csv", "--source", "guide/*", data=data)
    assert (done.code, done.out.startswith("erased: ")) == (0, True)
    assert query(data, "SELECT DISTINCT file FROM documents") == [("notes.jsonl",)]
    left = holding(data, encoded("Opticks") | encoded("чайник"))
    assert not left, [rows_with(data / file, needle) for file, needle in left]
    done = carrel("forget", "--tenant", "default", "--json", data=data).json
    assert done["erased"]["documents"] == 2
    assert query(data, "SELECT count(*) FROM collections") == [(0,)]
    assert holding(data, encoded("walrus")) == []
    carrel("forget", "--tenant", "default", data=data).failed(2, "tenant must have something")


def test_what_is_not_there_is_named_with_the_nearest(carrel: Carrel, data: Path) -> None:
    carrel("forget", "guide/candel.md", data=data).failed(2, "guide/candel.md", "'guide/candle.md'")
    carrel("forget", "--source", "gide/*", data=data).failed(2, "source must be in the collection")
    carrel("forget", "b1", "-c", "other", data=data).failed(2, "collection must exist")
    carrel("forget", data=data).failed(2, "name what is to be forgotten")
    carrel("forget", "b1", "--source", "x", data=data).failed(2, "not both")
    carrel("forget", "b1", "--let-in", data=data).failed(2, "no such document is kept out")
    assert query(data, "SELECT count(*) FROM documents") == [(DOCUMENTS,)]


def test_a_person_is_asked_before_more_than_one_goes(
    carrel: Carrel, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.forgetting.asks", lambda: True)
    monkeypatch.setattr("sys.stdin", io.StringIO("n\nn\n"))
    assert carrel("forget", "--source", "guide/*", data=data).code == 130
    assert carrel("forget", "--tenant", "default", data=data).code == 130
    assert query(data, "SELECT count(*) FROM documents") == [(DOCUMENTS,)]
    assert carrel("forget", "b1", data=data).code == 0
    monkeypatch.setattr("sys.stdin", io.StringIO("Y\n"))
    assert carrel("forget", "--source", "guide/*", data=data).code == 0
    assert query(data, "SELECT count(*) FROM documents") == [(DOCUMENTS - 5,)]


def test_a_file_that_is_still_there_comes_back_unless_it_is_kept_out(
    carrel: Carrel, tmp_path: Path
) -> None:
    data, files = tmp_path / "fresh", write_files(tmp_path / "files")
    carrel("ingest", files, data=data)
    done = carrel("forget", "guide/candle.md", data=data)
    assert f"still at {os.path.realpath(files / 'guide/candle.md')}" in done.err
    assert carrel("ingest", files, "--json", data=data).json["documents"] == DOCUMENTS
    kept = carrel("forget", "guide/candle.md", "--keep-out", "--json", data=data).json
    assert kept["still_there"] == []
    again = carrel("ingest", files, "--json", data=data).json
    assert again["documents"] == DOCUMENTS - 1
    assert [one["path"] for one in again["left_out"]] == ["guide/candle.md"]
    assert holding(data, encoded("wick draws") | encoded("candle.md")) == []
    let_in = carrel("forget", "guide/candle.md", "--let-in", data=data)
    assert (let_in.code, let_in.out) == (0, "guide/candle.md may be ingested again\n")
    assert carrel("ingest", files, "--json", data=data).json["documents"] == DOCUMENTS
