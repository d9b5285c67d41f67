"""`carrel chat` with piped input: a follow-up knows what was asked, a bad question ends nothing."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from commands import HEIGHT, Carrel, Done

FOLLOW_UP = "And what about its safety?"


def say(
    carrel: Carrel,
    monkeypatch: pytest.MonkeyPatch,
    library: Path,
    *lines: str,
    end: str = "\n",
    flags: tuple[str, ...] = (),
) -> Done:
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines) + end))
    return carrel("chat", *flags, data=library)


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
    assert "What do you mean by “its”?" in done.out
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


def test_commands_of_the_dialogue(
    carrel: Carrel, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = say(carrel, monkeypatch, library, "/foo", "/help", "/sources", HEIGHT, "/sources")
    assert "there is no command /foo; /help lists" in done.err
    assert "/sources shows the passages" in done.err and "cites anything" in done.err
    assert "draws melted wax up to the flame" in done.out  # the passage, not the answer
    assert done.out.count("run ") == 1  # nothing of it was asked


def test_an_unknown_collection_is_told_before_the_first_question(
    carrel: Carrel, library: Path
) -> None:
    carrel("chat", "-c", "nope", data=library).failed(2, "nope", "default")


def test_a_dialogue_is_kept_and_can_go_on(
    carrel: Carrel, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = say(carrel, monkeypatch, library, HEIGHT)
    name = first.err.splitlines()[-1].split()[-1]
    on = say(carrel, monkeypatch, library, FOLLOW_UP, flags=("--continue", "last"))
    assert "Never leave a burning candle alone" in on.out
    listed = carrel("conversations", "list", "--limit", 1, "--json", data=library).json
    (kept,) = listed["conversations"]
    assert kept | {"conversation_id": name, "title": HEIGHT, "turns": 2} == kept
    shown = carrel("conversations", "show", "last", "--json", data=library).json
    assert [turn["question"] for turn in shown["turns"]] == [HEIGHT, FOLLOW_UP]
    assert "42 mm" in shown["turns"][0]["answer"] and shown["waiting"] is None
    told = carrel("conversations", "show", name, data=library)
    assert HEIGHT in told.out and "42 mm" in told.out
    assert HEIGHT in carrel("conversations", "list", data=library).out
    deleted = carrel("conversations", "delete", name, "-y", "--json", data=library)
    assert carrel("doctor", "--json", data=library).json["seal"]["state"] == "equal"
    assert deleted.json["conversation_id"] == name
    carrel("conversations", "show", name, data=library).failed(2, "no such conversation", name)
    carrel("conversations", "delete", name, "-y", data=library).failed(2, "no such conversation")


def test_what_goes_with_a_note_is_shown_before_it_goes(
    carrel: Carrel, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for line in ("My team is called Quimbleford.", "What is my team called?"):
        say(carrel, monkeypatch, library, line)
    [note] = carrel("memory", "list", "--json", data=library).json["notes"]
    talk = note["provenance"]["conversation"]
    gone = "1 note, traces of it in 1 run, 1 conversation"
    stays = f"what you typed stays in conversation {talk}"
    command = ("memory", "delete", note["note_id"])
    carrel(*command, data=library).failed(2, gone, stays, "Add -y")
    carrel("conversations", "delete", talk, data=library).failed(2, "1 turn and 1 run", gone)
    assert "Quimbleford" in carrel("memory", "show", note["note_id"], data=library).out
    assert f"is deleted ({gone}); {stays}" in carrel(*command, "-y", data=library).out.replace(
        "\n", " "
    )
    assert "a note of yours that has been deleted" in carrel("trace", "last", data=library).out
    carrel("why", "last", data=library)
    carrel("replay", "last", data=library).failed(2, "erased with a document or a note")


def test_what_is_asked_back_may_be_replied_to_later(
    carrel: Carrel, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = say(carrel, monkeypatch, library, "How high is it?")
    assert "What do you mean by “it”?" in asked.out
    on = say(carrel, monkeypatch, library, "the candle flame", flags=("--continue", "last"))
    assert "What do you mean by “it”?" in on.err
    assert "42 mm" in on.out


def test_every_new_dialogue_is_a_conversation_of_its_own(
    carrel: Carrel, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = ("--user", "zoe")
    say(carrel, monkeypatch, library, "/new", "???", HEIGHT, "/new", "/new", HEIGHT, flags=flags)
    listed = carrel("conversations", "list", "--json", *flags, data=library).json
    assert [one["turns"] for one in listed["conversations"]] == [1, 1]


@pytest.mark.parametrize(("name", "words"), [("last", "no conversation yet"), ("0", "no such")])
def test_what_is_not_there_cannot_go_on(
    carrel: Carrel, library: Path, name: str, words: str
) -> None:
    carrel("chat", "--user", "nobody", "--continue", name, data=library).failed(2, words)
    carrel("conversations", "show", name, "--user", "nobody", data=library).failed(2, words)
