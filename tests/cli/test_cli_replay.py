"""`carrel replay`: its JSON, its exit codes, and one line for what cannot be replayed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from commands import HEIGHT, Carrel

from stores.sqlite.sums import register, sign


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
    assert carrel("why", run, "--json", data=data).json["cause"] == "erased"


def test_a_record_that_was_edited_is_no_run_to_replay(carrel: Carrel, data: Path) -> None:
    run = carrel("ask", HEIGHT, "--json", data=data).json["run_id"]
    for signed, words in ((False, "damaged"), (True, "cannot be read")):
        with closing(sqlite3.connect(data / "catalogue.sqlite3")) as catalogue, catalogue:
            register(catalogue)
            edited = "json_set(result, '$.recording.data', 'aGVsbG8=')"
            catalogue.execute(f"UPDATE runs SET result = {edited} WHERE run_id = ?", (run,))
            if signed:  # as a Carrel may have kept it that records something else
                sign(catalogue, "runs", "r.run_id = ?", run)
        carrel("replay", run, data=data).failed(4, words, run, "ask again" if not signed else "Ask")
    assert carrel("trace", run, "--json", data=data).code == 0
