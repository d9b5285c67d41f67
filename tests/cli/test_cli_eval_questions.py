"""`carrel eval questions`: ranks of the right pages, before and after re-ranking, and bad rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import Carrel
from docset_files import Name, page, write_docset

PAGES = {
    "sine.html": page("Sine", "<p>The sine of an angle.</p>", Name("kite.sine")),
    "string.html": page("String", "<p>Which string holds a kite in wind.</p>", Name("kite.string")),
    "tail.html": page("Tail", "<p>How long a tail must be.</p>", Name("kite.tail")),
}


def rows(path: Path, *found: dict[str, Any]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in found), encoding="utf-8")
    return path


@pytest.fixture
def collection(carrel: Carrel, tmp_path: Path) -> Path:
    write_docset(tmp_path / "docs", PAGES, version="1.2.0")
    write_docset(tmp_path / "docs", {"sea.html": page("Sea", "<p>Waves.</p>")}, name="Ocean")
    carrel("ingest", tmp_path / "docs", "-c", "kites", data=tmp_path / "data")
    return tmp_path


def test_questions_are_ranked_timed_and_grouped(carrel: Carrel, collection: Path) -> None:
    whole = "Kite.docset/Contents/Resources/Documents/tail.html"
    file = rows(
        collection / "q.jsonl",
        {"question": "Which string holds a kite?", "pages": ["string.html"], "framework": "kite"},
        {"question": "How long must a tail be?", "pages": [whole], "version": "1.2"},
        {"question": "waves", "pages": ["Documents/sine.html"], "framework": "Kite"},
    )
    result = carrel(
        "eval", "questions", file, "-c", "kites", "--json", data=collection / "data"
    ).json
    assert result["n"] == 3
    assert [one["rank"] for one in result["questions"]][:2] == [1, 1]
    assert result["questions"][1]["pages"] == [whole]
    last = result["questions"][2]["rank"]
    assert last != 1
    assert result["top1"] == round(2 / 3, 4)
    assert result["mrr"] == round((2 + (1 / last if last else 0)) / 3, 4)
    assert set(result["before_rerank"]) == {"top1", "mrr"}
    assert 0 < result["p50_ms"] <= result["p95_ms"]
    assert (result["framework_top1"], result["wrong_version_top3"]) == (0.5, 0)
    assert {name: one["n"] for name, one in result["by_framework"].items()} == {
        "Kite": 1, "kite": 1, "unknown": 1,
    }  # fmt: skip
    assert sum(result["ranks"].values()) == sum(result["ranks_before"].values()) == 3
    within = carrel(
        *("eval", "questions", file, "-c", "kites", "--json", "--in-framework"),
        data=collection / "data",
    ).json
    assert within["in_framework"] and within["framework_top1"] == 1.0
    assert not any("Ocean" in page for page in within["questions"][2]["found"])
    shown = carrel("eval", "questions", file, "-c", "kites", "--show", data=collection / "data").out
    assert "before re-ranking" in shown and "waves" in shown


WRONG = (
    ({"question": "x", "pages": ["nowhere.html"]}, "q.jsonl:1: the page is not in the"),
    ({"question": "x", "pages": []}, "'pages' must be a list"),
    ({"question": " ", "pages": ["sine.html"]}, "'question' must be a text"),
    ({"question": "x", "pages": ["sine.html"], "version": 2}, "'version' must be a text"),
)


def test_a_wrong_row_is_named(carrel: Carrel, collection: Path) -> None:
    for row, named in WRONG:
        file = rows(collection / "q.jsonl", row)
        carrel("eval", "questions", file, "-c", "kites", data=collection / "data").failed(2, named)
