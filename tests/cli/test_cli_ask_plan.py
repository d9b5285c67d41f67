"""`carrel ask --plan`: a plan file is run whole or refused whole, and a run can be replayed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import Carrel, copied

ASKED = "What is the maximum height of the candle flame, and where does a walrus sleep?"
PLAN: dict[str, Any] = {
    "questions": [
        {"id": "q1", "text": "Which animal hunts at night?", "slot": "animal"},
        {"id": "q2", "text": "What does the {animal} hear?", "deps": ["q1"]},
    ]
}


@pytest.fixture(scope="module")
def library(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy: the runs that are kept here would fill the library of other tests."""
    return copied(library, tmp_path_factory.mktemp("plans") / "library")


def written(folder: Path, value: object) -> Path:
    path = folder / "plan.json"
    text = value if isinstance(value, str) else json.dumps(value, indent=1)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_plan_is_run_and_kept(carrel: Carrel, library: Path, tmp_path: Path) -> None:
    done = carrel("ask", ASKED, "--plan", written(tmp_path, PLAN), "--json", data=library)
    assert done.code in (0, 3)
    plan = done.json["plan"]
    assert [question["id"] for question in plan["questions"]] == ["q1", "q2"]
    assert plan["path"] == "planned"
    ops = [operation["op"] for operation in plan["operations"]]
    assert {"RETRIEVE", "EXTRACT_ANSWER", "COMPOSE_QUERY", "SYNTHESIZE"} <= set(ops)
    assert set(plan["ran"]) <= {operation["out"] for operation in plan["operations"]}
    kept = carrel("trace", done.json["run_id"], "--json", data=library).json
    assert kept["result"]["plan"] == plan


def test_what_a_run_did_can_be_run_again(carrel: Carrel, library: Path, tmp_path: Path) -> None:
    first = carrel("ask", ASKED, "--pipeline", "agentic", "--json", data=library).json
    again = carrel(
        "ask", ASKED, "--plan", written(tmp_path, first["plan"]), "--json", data=library
    ).json
    assert again["answer"] == first["answer"]
    assert again["plan"]["operations"] == first["plan"]["operations"]


def test_the_plan_of_a_question_gives_its_answer(
    carrel: Carrel, library: Path, tmp_path: Path
) -> None:
    plan = carrel("plan", ASKED, "--json", data=library).out
    planned = carrel("ask", ASKED, "--plan", written(tmp_path, plan), "--json", data=library).json
    asked = carrel("ask", ASKED, "--pipeline", "agentic", "--json", data=library).json
    assert planned["answer"] == asked["answer"]


def question(name: str, *deps: str, **values: object) -> dict[str, object]:
    return {"id": name, "text": "Who?", "deps": list(deps), **values}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"questions": [question("a", "b"), question("b", "a")]}, ("line 3", "deps form no cycle")),
        ({"questions": [question("a", calls=[{"tool": "rm"}])]}, ("known tools", "'rm'")),
        ({**PLAN, "operations": [{"op": "DELETE", "out": "x"}]}, ("DELETE",)),
        ({**PLAN, "tenant": "zoo"}, ("no key 'tenant'",)),
        ("{", ("line 1",)),
    ],
)
def test_an_invalid_plan_is_never_run(
    carrel: Carrel, library: Path, tmp_path: Path, value: object, words: tuple[str, ...]
) -> None:
    before = carrel("trace", "--json", data=library).json["runs"]
    path = written(tmp_path, value)
    carrel("ask", ASKED, "--plan", path, "--json", data=library).failed(2, "plan.json", *words)
    assert carrel("trace", "--json", data=library).json["runs"] == before


def test_the_classic_pipeline_runs_no_plan(carrel: Carrel, library: Path, tmp_path: Path) -> None:
    path = written(tmp_path, PLAN)
    done = carrel("ask", ASKED, "--plan", path, "--pipeline", "classic", data=library)
    done.failed(2, "the classic pipeline runs no plan")
    done = carrel("ask", ASKED, "--pipeline", "magic", data=library)
    done.failed(2, "magic", "auto, agentic, classic")
