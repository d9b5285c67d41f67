"""`carrel quality`: a report to read, to keep and to compute with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Carrel

RECORDS = [
    {"_id": "b1", "title": "Candles", "authors": ["Ann Wick"], "annotation": "Wax. " * 60},
    {"_id": "b2", "title": "Owls <b>[red]", "annotation": "Wax. " * 60},
    {"_id": "b3", "title": "茶", "year": 3000, "annotation": "A book about tea. " * 30},
]


@pytest.fixture
def library(carrel: Carrel, tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    lines = [json.dumps(row, ensure_ascii=False) for row in RECORDS]
    (folder / "books.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (folder / "[b2].txt").write_text("Only five words in here.", encoding="utf-8")
    done = carrel("ingest", folder, "-c", "books", "--profile", "library", data=tmp_path / "d")
    assert done.code == 0 and "left out" in done.out
    return tmp_path / "d"


def test_the_report_can_be_read(carrel: Carrel, library: Path) -> None:
    done = carrel("quality", "-c", "books", data=library)
    assert done.code == 0 and done.err == ""
    assert "1 files → 3 records" in done.out or "2 files → 3 records" in done.out
    for words in (
        "[b2].txt: 5 words; the profile keeps texts of 200 or more",
        "annotations are those of other records: 1 of 3 (33.3%)",
        "b2 (as b1)",
        "records have no author: 2 of 3",
        "→ add a field `authors`",
        "annotations, characters: n = 3",
        "█",
    ):
        assert words in done.out, words


def test_the_report_as_data_and_as_a_page(carrel: Carrel, library: Path, tmp_path: Path) -> None:
    report = carrel("quality", "-c", "books", "--json", data=library).json
    found = {finding["code"]: finding for finding in report["findings"]}
    assert report["records"] == 3 and report["profile"] == "library"
    assert found["bad_year"]["examples"] == ["b3"]
    for name in ("report.json", "report.html"):
        done = carrel("quality", "-c", "books", "--out", tmp_path / name, data=library)
        assert done.code == 0 and name in done.out
    kept = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert kept["findings"] == report["findings"]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and page.count("<svg") >= 4
    assert "default-src &#x27;none&#x27;" in page and "<script" not in page
    assert "annotations are those of other records" in page


def test_wrong_use(carrel: Carrel, library: Path, tmp_path: Path) -> None:
    carrel("quality", "-c", "none", data=library).failed(2, "none", "books")
    carrel("quality", "-c", "books", "--out", tmp_path / "r.txt", data=library).failed(2, ".html")
    carrel("quality", "-c", "books", "--out", tmp_path / "no" / "r.html", data=library).failed(2)
    carrel("quality", "-c", "books", data=tmp_path / "nothing").failed(4, "there is no data")
