"""`carrel llm exam`: it is kept, goes on, and is shown by status and doctor."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Carrel, in_process
from stub_llm import MODEL, stub_llm

from reasoning.llm.exam import exam_items


@pytest.fixture
def carrel(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Carrel:
    monkeypatch.setenv("CARREL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CARREL_LLAMA__HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CARREL_EMBEDDER", "nowhere/none")
    return in_process(capsys, monkeypatch)


def test_an_exam_is_kept_and_returned_at_once(
    carrel: Carrel, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stub_llm("good") as stub:
        monkeypatch.setenv("CARREL_LLM_URL", stub.url)
        first = carrel("llm", "exam", "--json")
        assert first.code == 0, first.err
        asked = len(stub.requests)
        again = carrel("llm", "exam", "--json")
        assert again.json == first.json
        assert len(stub.requests) == asked
        shown = carrel("llm", "exam")
        assert "80 of 80 items" in shown.out and "decides: nothing" in shown.out
    result = first.json
    assert (result["model"], result["finished"], result["items"]) == (MODEL, True, 80)
    assert result["tokens"] > 0 and result["digest"]
    answer = result["decisions"]["answer"]
    assert answer["items"] == answer["of"] == 28
    assert not answer["chosen"]


def test_an_exam_stops_in_time_and_goes_on(carrel: Carrel, monkeypatch: pytest.MonkeyPatch) -> None:
    with stub_llm("good") as stub:
        monkeypatch.setenv("CARREL_LLM_URL", stub.url)
        cut = carrel("llm", "exam", "--json", "--set", "llm.exam_seconds=0.05")
        assert cut.code == 0
        assert not cut.json["finished"] and cut.json["items"] < len(exam_items().items)
        assert carrel("llm", "exam", "--json").json["finished"]


def test_another_name_and_a_missing_server_are_said(
    carrel: Carrel, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stub_llm("good") as stub:
        monkeypatch.setenv("CARREL_LLM_URL", stub.url)
        carrel("llm", "exam", "qwen-of-nobody").failed(1, "qwen-of-nobody", MODEL)
    carrel("llm", "exam").failed(1, "carrel llm serve")
