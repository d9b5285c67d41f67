"""`carrel eval memory`: a table by category, JSON, and results and traces as files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Carrel

CORPUS = (
    ("D1:1", "1:56 pm on 8 May, 2023", "Ann: I moved to Rome yesterday. I live in Rome now."),
    ("D1:2", "1:56 pm on 8 May, 2023", "Bob: My favourite colour is green."),
)
ASKED = (
    ("When did Ann move to Rome?", "temporal", "7 May 2023"),
    ("What is Bob's favourite colour?", "single-hop", "green"),
    ("What is Ann's favourite colour?", "adversarial", None),
)


def written(folder: Path) -> Path:
    corpus = [
        {"_id": name, "text": text, "metadata": {"conversation": "c", "date_time": when}}
        for name, when, text in CORPUS
    ]
    asked = [
        {
            "_id": f"q{place}",
            "text": text,
            "metadata": {"type": kind, "answer": gold, "conversation_id": "c"},
        }
        for place, (text, kind, gold) in enumerate(ASKED)
    ]
    for name, rows in (("corpus", corpus), ("queries", asked)):
        lines = "".join(f"{json.dumps(row)}\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    return folder


def test_memory_is_measured_by_category(
    carrel: Carrel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARREL_CACHE", str(tmp_path / "cache"))
    data, out = written(tmp_path), tmp_path / "out"
    done = carrel(
        *("eval", "memory", str(data), "--against", "retrieval", "--out", str(out), "--json"),
        *("--set", "reasoner=rules", "--set", "evaluation.resamples=100"),
    )
    result = done.json
    assert result["n"] == 3 and result["notes"] == {"turns": 2, "written": 3}
    f1 = {name: one["metrics"]["f1"] for name, one in result["by_category"].items()}
    assert (f1["temporal"], f1["adversarial"]) == (1.0, 1.0)
    assert f1["single-hop"] > 0.3  # the sentence, or its value where there is a reader
    assert set(result["against"]["differences"]) == {"f1", *f1}
    traces = [json.loads(line) for line in (out / "traces.jsonl").read_text().splitlines()]
    assert {step["node"] for step in traces[0]["trail"]} >= {"choose_action", "final_answer"}
    kept = json.loads((out / "results.json").read_text())
    assert [one["gold"] for one in kept["questions"]] == ["7 May 2023", "green", ""]


def test_what_cannot_be_measured_is_refused(carrel: Carrel, tmp_path: Path) -> None:
    done = carrel("eval", "memory", str(written(tmp_path)), "--pipeline", "other")
    assert done.code != 0 and "Choose from memory, retrieval, none" in done.err
