"""`carrel plan`: what a plan would do, checked and drawn, with nothing run."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from commands import Carrel, query
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from cli.terminal.answer import plan_tree
from core.types import Plan, SubQuestion

TWO = "What is the maximum height of the candle flame? And when does an owl hunt?"
HOP = {
    "questions": [
        {"id": "q1", "text": "Which team maintains it?", "slot": "team"},
        {"id": "q2", "text": "Who leads {team}?", "deps": ["q1"]},
    ]
}


def written(folder: Path, value: object) -> Path:
    path = folder / "plan.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def test_a_question_is_planned_and_not_run(carrel: Carrel, library: Path) -> None:
    before = query(library, "SELECT count(*) FROM runs")
    done = carrel("plan", TWO, "--tenant", "default", "--json", data=library)
    assert (done.code, done.err) == (0, "")
    made = done.json
    assert set(made) == {"questions", "operations", "kind", "reasoner", "warnings"}
    assert (made["kind"], made["reasoner"], made["warnings"]) == ("multi", "rules", [])
    for item in made["questions"]:
        assert set(item) >= {"id", "text", "deps", "slot", "query", "calls"}
        assert item["calls"]
    searches = [item["question"] for item in made["operations"] if item["op"] == "RETRIEVE"]
    # The whole question first, then each part.
    assert searches == ["q1", *[item["id"] for item in made["questions"]]] == ["q1", "q1", "q2"]
    assert made["operations"][0]["query"] == TWO
    assert made["operations"][-1]["op"] == "SYNTHESIZE"
    assert query(library, "SELECT count(*) FROM runs") == before
    assert "tenant" not in done.out and "auth" not in done.out


def test_its_json_is_a_plan_file(carrel: Carrel, library: Path, tmp_path: Path) -> None:
    made = carrel("plan", TWO, "--json", data=library)
    again = carrel("plan", "--file", written(tmp_path, made.out), "--json", data=library)
    assert again.code == 0
    for key in ("questions", "operations", "kind"):
        assert again.json[key] == made.json[key]
    assert again.json["reasoner"] == "file"


def test_a_plan_for_people(carrel: Carrel, library: Path) -> None:
    done = carrel("plan", "When does an owl [bold] hunt in {burrow}?", data=library)
    assert (done.code, done.err) == (0, "")
    assert "search · q1 · “When does an owl" in done.out
    assert "answer · q1\n" in done.out and "RETRIEVE" not in done.out
    assert "owl [bold] hunt in {burrow}" in done.out
    assert "Picture\nq1 When does" in done.out


def test_a_file_without_tools_needs_no_collection(carrel: Carrel, tmp_path: Path) -> None:
    done = carrel("plan", "--file", written(tmp_path, HOP), data=tmp_path / "nothing")
    assert (done.code, done.err) == (0, "")
    assert "complete the question · q2 · “Who leads {team}?”" in done.out
    assert "Picture\nq1 → team" in done.out and "└── q2" in done.out
    assert not (tmp_path / "nothing").exists()


def test_tools_of_a_file_are_those_of_the_collection(
    carrel: Carrel, library: Path, tmp_path: Path
) -> None:
    path = written(tmp_path, {"questions": [{**HOP["questions"][0], "slot": None}]})
    assert carrel("plan", "--file", path, data=library).code == 0
    asked = {"id": "q1", "text": "Who?", "calls": [{"tool": "search_everything"}]}
    bad = carrel("plan", "--file", written(tmp_path, {"questions": [asked]}), data=library)
    bad.failed(2, "plan.json: line 1: question 'q1'", "search_everything", "query_records")
    asked["calls"] = [{"tool": "search", "arguments": {"query": "x", "tenant": "zoo"}}]
    bad = carrel("plan", "--file", written(tmp_path, {"questions": [asked]}), data=library)
    bad.failed(2, "tool search has no argument 'tenant'")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ('{"questions":\n[{"id": "q1"]}', "line 2: this is no JSON"),
        ('{"questions": [], "tenant": "zoo"}', "a plan has no key 'tenant'"),
        ("[" * 10_000_000, "at most 256 KiB"),
    ],
)
def test_a_wrong_file_ends_with_2(
    carrel: Carrel, tmp_path: Path, value: object, words: str
) -> None:
    carrel("plan", "--file", written(tmp_path, value), "--json").failed(2, words)


def test_nothing_in_a_plan_commands_the_terminal(carrel: Carrel, tmp_path: Path) -> None:
    evil = "\u001b[31mred\u202e [/cyan]"
    first = {"id": evil, "text": f"Who{evil}?", "slot": "s"}
    second = {"id": "q2", "text": f"{{s}}{evil}", "deps": [evil]}
    done = carrel("plan", "--file", written(tmp_path, {"questions": [first, second]}))
    assert done.code == 0
    assert done.out.replace("\n", "").isprintable()


def test_wrong_use(carrel: Carrel, library: Path, tmp_path: Path) -> None:
    carrel("plan").failed(2, "a question or --file is needed")
    carrel("plan", "…", data=library).failed(2, "at least one word")
    carrel("plan", "Who?", "-c", "nowhere", data=library).failed(2, "nowhere")
    carrel("plan", "--file", tmp_path / "none.json").failed(2, "none.json")
    carrel("plan", "--file", tmp_path).failed(2, "this is a folder")


def asked(name: str, deps: str = "", text: str = "x") -> SubQuestion:
    return SubQuestion(id=name, text=text, query=text, deps=deps.split())


def drawn(plan: Plan, width: int = 100) -> list[str]:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(plan_tree(plan))
    return console.export_text().splitlines()


def test_a_question_stands_below_what_it_waits_for() -> None:
    plan = Plan(questions=[asked("a"), asked("b"), asked("c", "a b"), asked("d", "c")])
    assert drawn(plan) == ["a x", "b x", "└── c after a, b x", "    └── d x"]


@given(st.lists(st.text(max_size=40), min_size=1, max_size=5), st.data())
def test_a_tree_has_every_question_once(texts: list[str], data: st.DataObject) -> None:
    questions: list[SubQuestion] = []
    for place, text in enumerate(texts):
        ids = [question.id for question in questions]
        deps = data.draw(st.lists(st.sampled_from(ids), unique=True)) if ids else []
        questions.append(asked(f"question{place}", " ".join(deps), text))
    lines = drawn(Plan(questions=questions), 200)
    heads = [re.sub(r"^[ │├└─]*", "", line).split(" ")[0] for line in lines]
    assert sorted(one for one in heads if one.startswith("question")) == [q.id for q in questions]
    assert all(line.isprintable() for line in lines)
    for question in questions:
        own = next(n for n, head in enumerate(heads) if head == question.id)
        assert ("──" in lines[own].split("question")[0]) == bool(question.deps)
