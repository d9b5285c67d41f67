"""`python -m benchmarks.multihop`: its sections on a small set, its page, and what it counts."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from benchmarks import multihop
from benchmarks.multihop_measure import SECTIONS
from benchmarks.multihop_overhead import covered_ms, decisions, nodes_ms, watching
from benchmarks.multihop_page import NOT_MEASURED, TITLES, report
from core.errors import CallerError
from core.settings import Settings
from core.trace import Step
from reasoning.rules.reasoner import RulesReasoner
from tools.toolbox import Toolbox

QUERIES = {
    "q1": "What does the owl hunt at night?",
    "q2": "Where does the walrus sleep? And what draws melted wax up the wick?",
    "q3": "Who invented the telephone exchange of Budapest?",
}
METADATA = {
    "q1": {"type": "2hop", "answer": ["mice"]},
    "q2": {"type": "3hop1", "answer": "yes"},
    "q3": {"type": "unanswerable", "answer": None},
}
QRELS = [("q1", "owl", 1), ("q2", "walrus", 1), ("q2", "candle", 1)]


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "page.md"


def test_time_that_overlaps_counts_once() -> None:
    spans = [("a", 0.0, 1.0), ("b", 0.5, 2.0), ("a", 0.6, 0.7), ("b", 5.0, 6.0), ("c", 2.0, 5.0)]
    assert covered_ms(spans, ["a"]) == 1000
    assert covered_ms(spans, ["a", "b"]) == 3000
    assert covered_ms(spans, ["a", "b", "c"]) == 6000
    assert covered_ms(spans, []) == 0
    assert covered_ms([("a", 3.0, 4.0), ("a", 0.0, 9.0)], ["a"]) == 9000


def test_methods_are_watched_only_while_the_context_is_open() -> None:
    before = (Toolbox.run, RulesReasoner.grade)
    with watching() as spans, pytest.raises(TypeError):
        assert Toolbox.run is not before[0]
        Toolbox.run()  # what fails has taken its time as well
    assert (Toolbox.run, RulesReasoner.grade) == before
    ((kind, began, ended),) = spans
    assert kind == "searching"
    assert began <= ended <= time.perf_counter()


def test_steps_of_a_node_add_up_and_decisions_are_those_of_the_stop_condition() -> None:
    trail = [
        Step(node="retrieve", decision="3 found", ms=2.0),
        Step(node="retrieve", decision="1 found", ms=3.0),
        Step(node="stop_condition", decision="replan", ms=1.0),
    ]
    assert nodes_ms(trail) == {"retrieve": 5.0, "stop_condition": 1.0}
    assert decisions(trail) == ["replan"]


def measured(dataset, settings: Settings, page: Path, *options: str) -> dict[str, dict]:
    folder = page.parent / "musique_small"
    if not folder.exists():
        dataset(queries=QUERIES, qrels=QRELS, metadata=METADATA, name=folder.name)
    results = page.parent / "results"
    given = [str(page.parent), "--results", str(results), "--write", str(page)]
    multihop.main(
        [*given, "--sets", folder.name, "--set", f"cache={settings.cache}"]
        + ["--set", "evaluation.resamples=100", *options]
    )
    return {path.name: json.loads(path.read_text(encoding="utf-8")) for path in results.iterdir()}


def test_every_section_is_measured_kept_and_drawn(dataset, settings, page) -> None:
    found = measured(dataset, settings, page)
    kept = {f"{section}-musique_small.json" for section in SECTIONS}
    left_out = {"parity-musique_small.json", "decompositions-musique_small.json"}
    assert kept - set(found) <= left_out
    ranked = found["retrieval-musique_small.json"]["found"]
    assert ranked["n"] == 2
    assert set(ranked["metrics"]) == {"agentic", "hybrid", "linked", "classic"}
    for other, gaps in ranked["differences"].items():
        gain = ranked["metrics"]["agentic"]["recall@5"] - ranked["metrics"][other]["recall@5"]
        assert gaps["recall@5"]["difference"] == pytest.approx(gain, abs=1e-5)
    answered = found["answers-musique_small.json"]["found"]
    assert answered["n"] == 3
    assert set(answered["pipelines"]) == {"auto", "agentic", "classic"}
    kinds = found["kinds-musique_small.json"]["found"]
    assert (kinds["n"], kinds["multi"]) == (3, pytest.approx(1 / 3, abs=1e-4))
    assert list(kinds["planned"].values()) == sorted(kinds["planned"].values())
    spent = found["overhead-musique_small.json"]["found"]
    assert spent["n"] == 3
    assert sum(spent["stop_reasons"].values()) == 3
    assert spent["operations"]["p95"] >= spent["operations"]["p50"] >= 1
    assert 0 < spent["overhead_ms_per_operation"]["p50"] < spent["wall_ms"]["p95"]
    text = page.read_text(encoding="utf-8")
    assert "| musique_small | 2 | agentic |" in text
    assert "| musique_small | 3hop1 | classic | 1 |" in text


def test_a_section_is_measured_again_when_it_is_named_or_asked_for_otherwise(
    dataset, settings, page
) -> None:
    options = ("--sections", "kinds")
    measured(dataset, settings, page, *options)
    path = page.parent / "results" / "kinds-musique_small.json"
    kept = json.loads(path.read_text(encoding="utf-8"))
    changed = {**kept, "found": {**kept["found"], "n": 77}}
    path.write_text(json.dumps(changed), encoding="utf-8")
    assert (
        measured(dataset, settings, page, "--sections", "retrieval")[path.name]["found"]["n"] == 77
    )
    assert "| musique_small | 77 |" in page.read_text(encoding="utf-8")
    assert measured(dataset, settings, page, *options)[path.name]["found"]["n"] == 3
    path.write_text(json.dumps({**changed, "format": 0}), encoding="utf-8")
    assert measured(dataset, settings, page)[path.name]["found"]["n"] == 3
    limited = measured(dataset, settings, page, *options, "--limit", "1")
    assert limited[path.name]["found"]["n"] == 1
    assert "The first questions only: musique_small (1)." in page.read_text(encoding="utf-8")


def test_the_report_says_what_was_not_measured() -> None:
    text = report({}, Settings())
    assert set(TITLES) == set(SECTIONS)
    assert text.count(NOT_MEASURED) == len(SECTIONS)


@pytest.mark.parametrize(("sections", "sets"), [(["best"], []), ([], ["nowhere"])])
def test_names_are_checked(sections, sets) -> None:
    with pytest.raises(CallerError, match="the name must be known"):
        list(multihop.wanted(sections, sets))
