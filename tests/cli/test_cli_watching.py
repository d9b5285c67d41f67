"""What a terminal shows of a run before its answer: a moving line that gives way to sentences."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

import cli.terminal.answer
import cli.terminal.progress
from cli.terminal.progress import StageBars, Watching
from core.trace import Step, StreamEvent

RESULT = {
    "run_id": "r",
    "answer": "One [1] Two [1]",
    "claims": [],
    "refused": False,
    "stop_reason": "enough_evidence",
    "evidence": [],
    "usage": {"steps": 3, "tool_calls": 1, "model_calls": 0, "degraded": 0, "ms": 5.0},
    "warnings": [],
}


class Screens:
    """Hold what reaches stdout and stderr."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, terminal: bool) -> None:
        self._out, self._err = io.StringIO(), io.StringIO()
        out = Console(file=self._out, soft_wrap=True, highlight=False)
        err = Console(file=self._err, force_terminal=terminal, soft_wrap=True, highlight=False)
        for module in (cli.terminal.answer, cli.terminal.progress):
            monkeypatch.setattr(module, "stderr", lambda: err)
        monkeypatch.setattr(cli.terminal.answer, "stdout", lambda: out)

    @property
    def out(self) -> str:
        return self._out.getvalue()

    @property
    def err(self) -> str:
        return self._err.getvalue()


def sentence(text: str) -> StreamEvent:
    return StreamEvent(kind="sentence", text=text)


def test_a_terminal_sees_what_is_done_until_the_first_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    screens = Screens(monkeypatch, terminal=True)
    with Watching(steps=False, quiet=False) as watching:
        watching.step(Step(node="retrieve", decision="7 found"))
        watching.stream(sentence("One [1]"))
        shown = screens.err
        watching.step(Step(node="generate", decision="2 claims"))
    assert "7 found" in shown and "retrieve" not in shown
    assert screens.err == shown  # nothing moves beside the answer
    watching.finish(RESULT)
    assert screens.out.startswith("One [1] Two [1]\n")


def test_a_pipe_sees_no_moving_line(monkeypatch: pytest.MonkeyPatch) -> None:
    screens = Screens(monkeypatch, terminal=False)
    with Watching(steps=False, quiet=False) as watching:
        watching.step(Step(node="retrieve", decision="7 found"))
    assert screens.err == ""


def test_steps_are_lines_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    screens = Screens(monkeypatch, terminal=True)
    with Watching(steps=True, quiet=False) as watching:
        watching.step(Step(node="retrieve", decision="7 found"))
    assert "7 found" in screens.err
    assert screens.err.count("\n") == 1


def test_quiet_shows_nothing_of_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    screens = Screens(monkeypatch, terminal=True)
    with Watching(steps=False, quiet=True) as watching:
        watching.stream(sentence("One [1]"))
        watching.finish(RESULT)
    assert screens.out == screens.err == ""


def test_an_answer_that_went_another_way_is_printed_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    screens = Screens(monkeypatch, terminal=False)
    with Watching(steps=False, quiet=False) as watching:
        watching.stream(sentence("Two [1]"))
        watching.finish(RESULT)
    assert screens.out.startswith("Two [1]\n\nOne [1] Two [1]\n")


def test_a_draft_goes_to_stderr_and_ends_before_the_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    screens = Screens(monkeypatch, terminal=False)
    with Watching(steps=False, quiet=False) as watching:
        watching.stream(StreamEvent(kind="token", text="On"))
        watching.stream(StreamEvent(kind="token", text="e"))
        watching.stream(sentence("One [1]"))
    assert screens.err == "One\n"
    assert screens.out == "One [1]"


def test_a_bar_names_no_total_that_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    screens = Screens(monkeypatch, terminal=True)
    with StageBars(quiet=False) as progress:
        progress("words", 3, 0)
        progress("files", 1, 4)
    assert "/?" not in screens.err and "words" in screens.err and "1/4" in screens.err
