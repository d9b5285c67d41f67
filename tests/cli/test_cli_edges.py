"""Small things of the command line: values that a shell completes, "-", near names, defaults."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from commands import HEIGHT, Carrel, Done, write_files
from typer._completion_classes import BashComplete
from typer.main import get_command

import app.session
from cli.commands import app as commands
from cli.terminal.output import complete_command


def completed(*words: str) -> list[str]:
    shell = BashComplete(get_command(commands), {}, "carrel", "_CARREL_COMPLETE")
    return [one.value for one in shell.get_completions([*words[:-1]], words[-1])]


def test_a_shell_completes_values(
    carrel: Carrel, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = carrel("ask", HEIGHT, "--json", data=library).json
    monkeypatch.setenv("CARREL_DATA", str(library))
    assert completed("ask", "-c", "") == completed("documents", "-c", "") == ["default"]
    assert completed("ask", "--pipeline", "s") == ["single"]
    assert completed("search", "--pipeline", "l") == ["linked"]
    assert {"library", "xpay"} <= set(completed("ingest", "--profile", ""))
    assert completed("models", "pull", "Qwen3-0") == ["Qwen3-0.6B"]
    assert completed("config", "retrieval.top") == ["retrieval.top_k"]
    for command in ("trace", "why", "replay"):
        assert completed(command, "")[:2] == ["last", asked["run_id"]]
    monkeypatch.setenv("CARREL_DATA", str(library / "nowhere"))
    assert completed("ask", "-c", "") == [] and not (library / "nowhere").exists()


def test_a_dialogue_completes_its_commands() -> None:
    offered = [complete_command("/q", state) for state in range(3)]
    assert offered == ["/q", "/quit", None]
    assert complete_command("what", 0) is None


def test_a_question_may_come_from_a_pipe(
    carrel: Carrel, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for command in ("ask", "search"):
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{HEIGHT}\n"))
        assert "42 mm" in carrel(command, "-", data=library).out
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    carrel("ask", "-", data=library).failed(2, "at least one word")


KETTLE = b"# Kettle\n\nThe kettle boils in %s minutes.\n"


def test_a_document_may_come_from_a_pipe(
    carrel: Carrel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def piped(content: bytes, *arguments: str) -> Done:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        return carrel("ingest", "-", "-c", "pipe", *arguments, data=tmp_path / "data")

    embedded = ("--set", "embedder=embedded")
    for minutes in (b"four", b"five"):  # the second replaces the first
        done = piped(KETTLE % minutes, "--name", "kettle.md", *embedded)
        assert "1 indexed" in done.out and "1 documents" in done.out
    listed = carrel("documents", "-c", "pipe", "--json", data=tmp_path / "data").json
    assert [one["source"] for one in listed["documents"]] == ["kettle.md"]
    small = ("--set", "ingest.max_file_mb=1")
    piped(b"x" * 2_000_000, "--name", "x.txt", *small).failed(2, "at most 1 MB", "x.txt")
    piped(b"", "--name", "x.txt").failed(2, "standard input was empty")
    piped(b"x").failed(2, "needs a name", "--name FILE.md")
    piped(b"x", "--name", "x.exe").failed(1, "format .exe")
    piped(b"x", "--name", "../x.md").failed(2, "begin with a dot")
    piped(b"x", "--name", "x.md", "--prune").failed(2, "--prune")
    carrel("ingest", tmp_path, "--name", "x.md", data=tmp_path / "data").failed(2, "Give -")


def test_a_wrong_collection_is_refused_before_a_model_is_loaded(
    carrel: Carrel, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(settings: object) -> None:
        raise AssertionError("a model was loaded")

    monkeypatch.setattr(app.session, "open_embedder", load)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    for command in (["ask", "x"], ["search", "x"], ["plan", "x"], ["chat"], ["recommend", "x"]):
        carrel(*command, "-c", "nowhere", data=library).failed(2, "nowhere", "default")


def test_the_only_collection_needs_no_name(
    carrel: Carrel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "d"
    cups = "id,name,colour\n" + "".join(f"c{n},Cup {n},red\n" for n in range(9))
    files = write_files(tmp_path, {"cups.csv": cups, "note.md": "# Tea\n\nTea is hot.\n"})
    monkeypatch.setenv("CARREL_COLLECTION", "cups")
    assert carrel("ingest", files / "cups.csv", data=data).code == 0
    assert carrel("ingest", files / "note.md", "-c", "tea", data=data).code == 0
    assert len(carrel("documents", data=data).out.splitlines()) == 9
    monkeypatch.setenv("CARREL_COLLECTION", "nowhere")
    carrel("documents", data=data).failed(2, "nowhere")
    monkeypatch.delenv("CARREL_COLLECTION")
    carrel("documents", data=data).failed(2, "default", "cups, tea")
    absent = carrel("forget", "zzz", "-y", "-c", "cups", data=data)
    absent.failed(2, "`carrel documents -c cups` lists what is there")
    assert carrel("forget", "note.md", "-y", "-c", "tea", data=data).code == 0
    assert len(carrel("documents", data=data).out.splitlines()) == 9  # the only one now
    report = json.dumps(carrel("quality", "-c", "cups", "--json", data=data).json["findings"])
    assert "lacks_udc" not in report and "lacks_annotation" not in report
