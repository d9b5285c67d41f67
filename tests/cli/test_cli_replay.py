"""`carrel replay`: its JSON, its exit codes, and one line for what cannot be replayed."""

from __future__ import annotations

from pathlib import Path

from commands import HEIGHT, Carrel


def test_a_run_is_replayed_and_a_changed_document_shows(carrel: Carrel, data: Path) -> None:
    run = carrel("ask", HEIGHT, "--json", data=data).json["run_id"]
    done = carrel("replay", run, "--json", data=data)
    steps = len(carrel("trace", run, "--json", data=data).json["trail"])
    assert done.code == 0
    assert done.json == {
        "run_id": run,
        "identical": True,
        "steps": steps,
        "differences": [],
        "notes": [],
    }
    assert "identical" in carrel("replay", "last", data=data).out
    assert carrel("replay", run, "--live-tools", "--live-model", data=data).code == 0
    carrel("replay", run, "--user", "bob", data=data).failed(2, "a run is named by its id")
    carrel("replay", "nothing", data=data).failed(2, "a run is named by its id")
    assert carrel("forget", "guide/candle.md", "-y", data=data).code == 0
    carrel("replay", run, data=data).failed(2, "erased with a document")
