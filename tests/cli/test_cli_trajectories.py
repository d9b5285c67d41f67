"""`carrel eval trajectories` and `carrel why`, from end to end with the embedded model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import commands
import pytest
from commands import Carrel
from selectolax.lexbor import LexborHTMLParser

import evals.corpus

GOLD = """\
collection: default
cases:
  - id: height
    question: What is the maximum height of the candle flame?
    tools: [search]
    evidence: {document: guide/candle.md, quote: "the flame is 42 mm"}
    answer: 42 mm
  - id: opticks
    question: How many books are by Isaac Newton?
    tools: [{tool: query_records, arguments: {aggregate: count}}]
    answer: 1 of 2
  - id: absent
    question: Who is the mayor of Quarrow?
    must_refuse: true
  - id: gone
    question: What is the maximum height of the candle flame?
    answer: 77 mm
"""
MEASURES = (
    *("tool_selection_accuracy", "argument_correctness", "redundant_calls", "evidence_recall"),
    *("answer_accuracy", "citation_precision", "citation_recall", "refusal_precision"),
    *("refusal_recall", "calls", "cost", "p95_ms"),
)


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    path = tmp_path / "gold.yaml"
    path.write_text(GOLD, encoding="utf-8")
    return path


@pytest.fixture
def change(gold: Path) -> Any:
    def write(old: str, new: str) -> Path:
        text = gold.read_text(encoding="utf-8")
        assert old in text
        gold.write_text(text.replace(old, new), encoding="utf-8")
        return gold

    return write


def test_cases_are_measured_and_a_failure_has_its_cause(
    carrel: Carrel, data: Path, gold: Path, tmp_path: Path
) -> None:
    page = tmp_path / "report.html"
    found = carrel("eval", "trajectories", gold, "--report", page, "--json", data=data).json
    assert tuple(found["metrics"]) == MEASURES
    assert found["n"] == 4
    assert found["passed"] == 3
    assert found["causes"] == {"not_in_the_documents": 1}
    by_id = {one["id"]: one for one in found["cases"]}
    assert by_id["height"]["citation_recall"] == by_id["height"]["evidence_recall"] == 1
    assert by_id["height"]["tools"] == ["search"]
    assert by_id["opticks"]["argument_correctness"] == 1
    assert by_id["absent"]["refused"]
    gone = by_id["gone"]
    assert (gone["cause"], gone["step"]["node"]) == ("not_in_the_documents", "retrieve")
    # The page has a trace for every case, and nothing of it is loaded or runs.
    shown = LexborHTMLParser(page.read_text(encoding="utf-8"))
    links = [node.attributes["href"] for node in shown.css("td a")]
    assert [link for link in links if shown.css_first(str(link)) is None] == []
    assert len(links) == 4
    assert not shown.css("script, link, img")
    assert carrel("trace", gone["run_id"], data=data).code == 0


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("tools: [search]", "tools: [telephone]", ("line 3", "telephone", "query_records")),
        ("collection: default", "collection: nowhere", ("line 3", "nowhere", "default")),
        ("question: Who", "asks: Who", ("line 12", "asks", "must_refuse")),
        ("question: Who is the mayor of Quarrow?", "id: twice", ("line 13", "id", "twice")),
        ("must_refuse: true", "must_refuse: true\n    answer: Ann", ("line 12", "no answer")),
        ("    must_refuse: true\n", "", ("line 12", "expects something")),
        ("id: gone", "id: height", ("line 15", "line 3", "height")),
        ("guide/candle.md", "guide/lamp.md", ("case height", "guide/lamp.md", "carrel documents")),
        ("flame is 42 mm", "flame is 43 mm", ("case height", "the flame is 43 mm", "Copy it")),
        ("answer: 77 mm", "answer: [77 mm", ("no YAML",)),
        ("answer: 77 mm", "answer: '…'", ("line 15", "has words")),
        ("answer: 77 mm", "answers: [[]]", ("line 15", "has words")),
        ("answer: 77 mm", "evidence: [[]]", ("line 15", "has words")),
        ("answer: 77 mm", "tools: 5", ("dictionary (it is 5)",)),
        ("collection: default", "corpus: nope", ("nope", "corpora: xpay")),
        ("answer: 77 mm", "answer: 77 mm\n    roles: [a b]", ("line 15", "role", "a b")),
        (
            "must_refuse: true",
            "must_refuse: true\n    plan: [{id: q1}]",
            ("line 12", "plan", "text"),
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_line(
    carrel: Carrel, data: Path, change: Any, old: str, new: str, words: tuple[str, ...]
) -> None:
    carrel("eval", "trajectories", change(old, new), data=data).failed(2, "gold.yaml", *words)


def test_documents_of_a_file_are_ingested_or_skipped_where_optional(
    carrel: Carrel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evals.corpus, "open_embedder", commands._open_embedder)
    path = tmp_path / "gold.yaml"
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "owl.md").write_text("# Owls\n\nThe barn owl weighs 315 grams.\n")
    case = '[{question: "What does the barn owl weigh?", answer: 315 grams}]'
    path.write_text(f"documents: notes\ncases: {case}\n")
    missing = tmp_path / "missing.yaml"
    missing.write_text(f"documents: nowhere\noptional: true\ncases: {case}\n")
    arguments = ("--set", f"cache={tmp_path / 'cache'}")
    found = carrel("eval", "trajectories", path, missing, *arguments, "--json").json
    assert (found["n"], found["passed"]) == (1, 1)
    assert [one["file"] for one in found["skipped"]] == ["missing.yaml"]
    missing.write_text(f"documents: nowhere\ncases: {case}\n")
    carrel("eval", "trajectories", missing, *arguments).failed(2, "nowhere", "optional")
    (tmp_path / "nowhere").mkdir()
    carrel("eval", "trajectories", missing, *arguments).failed(2, "must be read", "nowhere")


def test_a_sentence_says_why_in_the_language_of_the_question(carrel: Carrel, data: Path) -> None:
    carrel("ask", "What is the maximum height of the candle flame?", data=data)
    found = carrel("why", "--json", data=data).json
    assert found["cause"] == "answered"
    assert found["step"]["node"] == "verify"
    assert "“Candles”" in found["sentence"]
    assert "words of the question: maximum, height, flame" in found["sentence"]
    carrel("ask", "Кто мэр города Кворроу?", data=data)
    refused = carrel("why", "last", "--json", data=data).json
    assert refused["cause"] in ("not_relevant", "nothing_found")
    assert refused["sentence"].startswith("Ответа нет")
    assert carrel("why", found["run_id"], data=data).out.strip() == found["sentence"]
    unknown = carrel("why", "0000", data=data)
    unknown.failed(2, "a run is named by its id")
    assert carrel("trace", "0000", data=data).err == unknown.err
    carrel("why", found["run_id"], "--user", "eve", data=data).failed(2, "a run is named by its id")
