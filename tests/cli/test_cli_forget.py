"""`carrel forget` erases what it is told, says what it did, and nothing else is lost."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path
from typing import Any

import pytest
from commands import (
    DOCUMENTS,
    HEIGHT,
    ROOT,
    Carrel,
    query,
    write_files,
)
from scanning import encoded, holding, rows_with


def deletions(carrel: Carrel, data: Path) -> list[dict[str, Any]]:
    said = carrel("audit", "list", "--kind", "deletion", "--json", data=data).json
    return list(said["events"])


def test_a_document_is_forgotten_with_what_was_asked_about_it(carrel: Carrel, data: Path) -> None:
    before = deletions(carrel, data)
    assert "42 mm" in carrel("ask", HEIGHT, data=data).out
    done = carrel("forget", "guide/candle.md", "-y", "--json", data=data).json
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


def test_a_source_a_tenant_and_nothing(carrel: Carrel, data: Path) -> None:
    # What was asked stays as a run, whose plan names the thing in a filter of records.
    assert "два литра" in carrel("ask", "Какой объём чайника?", data=data).out
    done = carrel("forget", "--source", "books.csv", "--source", "guide/*", "-y", data=data)
    assert (done.code, done.out.startswith("erased: ")) == (0, True)
    assert query(data, "SELECT DISTINCT file FROM documents") == [("notes.jsonl",)]
    left = holding(data, encoded("Opticks") | encoded("чайник.txt") | encoded("литра"))
    assert not left, [rows_with(data / file, needle) for file, needle in left]
    done = carrel("forget", "--tenant", "default", "-y", "--json", data=data).json
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


@pytest.mark.parametrize("typed", ["{folder}/guide/candle.md", "./{folder}/guide/candle.md", ""])
def test_a_document_is_named_by_the_path_that_was_ingested(
    carrel: Carrel, data: Path, typed: str
) -> None:
    ((path,),) = query(data, "SELECT path FROM files WHERE relative = 'guide/candle.md'")
    folder = Path(path).parents[1]
    carrel("forget", "other/guide/candle.md", "-y", data=data).failed(2, "must be in the coll")
    carrel("forget", folder / "notes.jsonl", "-y", data=data).failed(2, "2 have this path")
    named = typed.format(folder=folder.name) or path
    carrel("forget", named, "-y", "--json", data=data)
    assert query(data, "SELECT 1 FROM documents WHERE file = 'guide/candle.md'") == []
    assert query(data, "SELECT count(*) FROM documents") == [(DOCUMENTS - 1,)]


def test_a_person_is_told_what_goes_and_asked(
    carrel: Carrel, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.terminal.output.asks", lambda: True)
    assert "42 mm" in carrel("ask", HEIGHT, data=data).out
    monkeypatch.setattr("sys.stdin", io.StringIO("n\nn\nn\n"))
    done = carrel("forget", "guide/candle.md", data=data)
    assert (done.code, done.out.strip()) == (1, "") and "nothing was erased" in done.err
    assert re.search(
        r"This goes for good: guide/candle\.md from collection 'default' \(1 document, \d+ chunks,"
        r" 1 file, \d+ vectors, traces of it in \d+ runs?(, \d+ conversations?)?\); what people"
        r" typed stays\.",
        done.err,
    )
    page = (ROOT / "serve/page/views/documents.js").read_text(encoding="utf-8")
    assert "what people typed stays" in page  # as the command says
    assert "n1, n2 from collection" in carrel("forget", "--source", "notes*", data=data).err
    said = carrel("forget", "--tenant", "default", data=data)
    assert said.code == 1
    assert f"tenant 'default', its collections default ({DOCUMENTS} documents, " in said.err
    assert query(data, "SELECT count(*) FROM documents") == [(DOCUMENTS,)]
    assert carrel("doctor", "--json", data=data).json["problems"] == []
    monkeypatch.setattr("sys.stdin", io.StringIO("Y\n"))
    done = carrel("forget", "--source", "guide/*", data=data)
    assert done.code == 0
    (told,) = re.findall(r"\((4 documents, .*)\); what people typed stays", done.err)
    assert done.out.strip().startswith(f"erased: {told}; nothing of it is left")
    assert query(data, "SELECT count(*) FROM documents") == [(DOCUMENTS - 4,)]


@pytest.mark.parametrize("what", [("b1",), ("--source", "guide/*"), ("--tenant", "default")])
def test_without_a_terminal_nothing_goes_unless_it_is_said(
    carrel: Carrel, data: Path, monkeypatch: pytest.MonkeyPatch, what: tuple[str, ...]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    for given in (what, (*what, "--json")):
        carrel("forget", *given, data=data).failed(
            2, "without a terminal", "chunk", "-y to erase it"
        )
    assert query(data, "SELECT count(*) FROM documents") == [(DOCUMENTS,)]


def test_what_a_person_typed_is_never_edited(carrel: Carrel, data: Path) -> None:
    question = "Candles: what is the maximum height of the flame, and never mind the wick?"
    ask = carrel("ask", question, "--json", data=data).json
    assert "guide/candle.md" in str(ask["evidence"])
    assert carrel("forget", "guide/candle.md", "-y", "--json", data=data).json["erased"]["runs"]
    kept = carrel("trace", "last", "--json", data=data).json
    assert kept["question"] == question
    assert "42 mm" not in str(kept)


def test_a_file_that_is_still_there_comes_back_unless_it_is_kept_out(
    carrel: Carrel, tmp_path: Path
) -> None:
    data, files = tmp_path / "fresh", write_files(tmp_path / "files")
    carrel("ingest", files, data=data)
    done = carrel("forget", "guide/candle.md", "-y", data=data)
    assert f"still at {os.path.realpath(files / 'guide/candle.md')}" in done.err
    assert carrel("ingest", files, "--json", data=data).json["documents"] == DOCUMENTS
    kept = carrel("forget", "guide/candle.md", "--keep-out", "-y", "--json", data=data).json
    assert kept["still_there"] == []
    again = carrel("ingest", files, "--json", data=data).json
    assert again["documents"] == DOCUMENTS - 1
    assert [one["path"] for one in again["left_out"]] == ["guide/candle.md"]
    assert holding(data, encoded("wick draws") | encoded("candle.md")) == []
    let_in = carrel("forget", "guide/candle.md", "--let-in", data=data)
    assert (let_in.code, let_in.out) == (0, "guide/candle.md may be ingested again\n")
    assert carrel("ingest", files, "--json", data=data).json["documents"] == DOCUMENTS
