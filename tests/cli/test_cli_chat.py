"""`carrel chat` with piped input: a follow-up knows what was asked, a bad question ends nothing."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from commands import HEIGHT, Carrel, Done, built_library, in_process

FOLLOW_UP = "And what about its safety?"


@pytest.fixture
def carrel(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Carrel:
    return in_process(capsys, monkeypatch)


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_library(tmp_path_factory.getbasetemp())


def say(
    carrel: Carrel, monkeypatch: pytest.MonkeyPatch, library: Path, *lines: str, end: str = "\n"
) -> Done:
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines) + end))
    return carrel("chat", data=library)


def test_a_follow_up_uses_what_was_asked(
    carrel: Carrel, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = say(carrel, monkeypatch, library, HEIGHT, FOLLOW_UP)
    assert done.code == 0
    assert "42 mm" in done.out
    assert "Never leave a burning candle alone" in done.out


@pytest.mark.parametrize("between", [["/new"], []])
def test_a_new_dialogue_knows_nothing_of_the_last(
    carrel: Carrel, library: Path, monkeypatch: pytest.MonkeyPatch, between: list[str]
) -> None:
    said = [HEIGHT, *between] if between else []
    done = say(carrel, monkeypatch, library, *said, FOLLOW_UP)
    assert done.code == 0
    assert "I found nothing" in done.out
    assert "Never leave a burning candle" not in done.out


@pytest.mark.parametrize("leave", ["/quit", "/exit", "/q"])
def test_leaving(
    carrel: Carrel, library: Path, monkeypatch: pytest.MonkeyPatch, leave: str
) -> None:
    done = say(carrel, monkeypatch, library, leave, HEIGHT)
    assert (done.code, done.out) == (0, "")


def test_bad_questions_do_not_end_the_dialogue(
    carrel: Carrel, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = say(carrel, monkeypatch, library, "???", "", "  ", "x" * 5000, "\ud800", HEIGHT, end="")
    assert done.code == 0
    assert "42 mm" in done.out
    errors = [line for line in done.err.splitlines() if line.startswith("carrel: ")]
    assert len(errors) == 3
    assert "5000 characters" in errors[1]


def test_an_unknown_collection_is_told_before_the_first_question(
    carrel: Carrel, library: Path
) -> None:
    carrel("chat", "-c", "nope", data=library).failed(2, "nope", "default")
