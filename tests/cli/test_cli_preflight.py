"""A second server is turned away by the first one, before anything heavy is loaded."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from commands import HEIGHT, ROOT

from cli.commands import Commands, LazyCommand
from cli.server.remote import data_meant, refuse_second
from core.settings import Settings
from serve.operator.control import Control
from stores.lock import OWNER_FILE, OwnedError, OwnerLock
from stores.sqlite.database import Database

URL = "http://127.0.0.1:8123"
# What a question needs nothing of, and what a search needs nothing of.
UNUSED = (
    "openai langchain_openai chromadb langchain_chroma torch transformers sentence_transformers"
    " huggingface_hub sklearn matplotlib onnx google.protobuf spacy pypdf pypdfium2"
    " docx openpyxl pptx ingest.pipeline fastapi uvicorn redis prometheus_client"
).split()
ANSWERING = "langgraph langchain_core langsmith requests httpx graph.build nodes.generate".split()
HEAVY = ("core.settings", "asyncio", "uvicorn", "fastapi", "numpy", "langgraph", "yaml")


@contextmanager
def announced(folder: Path) -> Iterator[OwnerLock]:
    """Own a directory as a server does, which takes commands."""
    folder.mkdir(exist_ok=True)
    control = Control(Settings(data=folder), lambda command: 0)
    with OwnerLock(folder, wait_s=0) as lock:
        control.open(lock.announce(URL, control.bind()).secret)
        try:
            yield lock
        finally:
            control.close()


def loading(
    heavy: Sequence[str], variables: dict[str, str], *given: str
) -> subprocess.CompletedProcess[str]:
    """Run a command in a process that prints which of these modules it has loaded."""
    code = (
        "import sys; from cli.app import run; code = run(sys.argv[1:])\n"
        f"print([name for name in {heavy} if name in sys.modules])\n"
        "sys.exit(code)"
    )
    return subprocess.run(
        [sys.executable, "-c", code, *given],
        cwd=ROOT,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_second_server_is_refused_before_anything_heavy_is_loaded(tmp_path: Path) -> None:
    given = ["serve", "--port", "0", "--allow-anonymous", "--host=127.0.0.1"]
    variables = {"CARREL_DATA": str(tmp_path / "data")}
    with announced(tmp_path / "data"):
        done = loading(HEAVY, variables, *given)
    assert done.returncode == 4, done.stderr
    assert f"in use by process {os.getpid()} " in done.stderr and URL in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("command", ["ask", "search"])
def test_a_question_is_refused_before_an_index_is_loaded(tmp_path: Path, command: str) -> None:
    heavy = ("chromadb", "langgraph", "onnxruntime", "stores.store", "tools.toolbox")
    with closing(Database(tmp_path / "catalogue.sqlite3")):
        pass
    variables = {"CARREL_DATA": str(tmp_path), "CARREL_STORAGE__LOCK_WAIT_S": "0"}
    with OwnerLock(tmp_path, wait_s=0):
        done = loading(heavy, variables, command, "How high is the flame?")
    assert done.returncode == 4, done.stderr
    assert f"in use by process {os.getpid()} " in done.stderr
    assert done.stdout == "[]\n"


def test_the_help_imports_no_library_that_only_commands_need() -> None:
    heavy = (
        *("langgraph", "numpy", "onnxruntime", "fastapi", "yaml", "core.settings"),
        *("matplotlib", "scipy", "sklearn", "ir_measures", "torch"),
    )
    for given in (["--help"], ["eval", "--help"]):
        done = loading(heavy, {}, *given)
        assert done.returncode == 0, done.stderr
        assert "Commands:" in done.stdout
        assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(("command", "unused"), [("ask", UNUSED), ("search", UNUSED + ANSWERING)])
def test_a_question_imports_only_what_it_needs(
    library: Path, command: str, unused: list[str]
) -> None:
    done = loading(unused, {"CARREL_DATA": str(library)}, command, HEIGHT, "--json")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", Commands.places)
def test_a_command_has_one_line_in_the_help_of_its_group_and_in_its_own(name: str) -> None:
    command = Commands().commands[name]
    assert isinstance(command, LazyCommand)
    line = command.get_short_help_str(200)
    assert len(line) > 20
    assert line == command.loaded.get_short_help_str(200)


@pytest.mark.parametrize("more", [[], ["--log", "--mode", "prod"], ["--settings", ""]])
def test_what_is_refused_at_once(tmp_path: Path, more: list[str]) -> None:
    given = ["serve", "--port", "8124", *more, "--data", str(tmp_path)]
    with announced(tmp_path):
        done = loading(("core.settings",), {}, *given)
    assert (done.returncode, done.stdout) == (4, "[]\n"), done.stderr
    assert f"process {os.getpid()} " in done.stderr


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (["--port", "65536"], 2),
        (["--port", "x"], 2),
        (["--port", "0", "--unknown"], 2),
        (["--port", "0", "--help"], 0),
        ([], 4),  # the port that is meant may be the owner's
        (["--port", "0", "--set", "storage.lock_wait_s=0"], 4),
    ],
)
def test_what_is_left_to_typer_and_the_lock(tmp_path: Path, given: list[str], code: int) -> None:
    with announced(tmp_path):
        done = loading(("cli.server.serving",), {"CARREL_DATA": str(tmp_path)}, "serve", *given)
    assert done.returncode == code, done.stderr
    assert done.stdout.splitlines()[-1] == str(["cli.server.serving"] if code == 4 else [])


def test_the_port_of_the_owner_is_left_to_the_socket(tmp_path: Path) -> None:
    with announced(tmp_path):
        refuse_second(tmp_path, port=8123)
        with pytest.raises(OwnedError):
            refuse_second(tmp_path, port=8124)


def test_a_copy_of_an_owned_directory_is_nobodys(tmp_path: Path) -> None:
    with announced(tmp_path / "data"):
        copy = shutil.copytree(tmp_path / "data", tmp_path / "copy")
        refuse_second(copy)
        with pytest.raises(OwnedError):
            refuse_second(tmp_path / "data")


@pytest.mark.parametrize("changed", [{"port": 0}, {"secret": "0" * 64}, {"host": "elsewhere"}])
def test_who_does_not_answer_is_not_believed(tmp_path: Path, changed: dict[str, object]) -> None:
    note = tmp_path / OWNER_FILE
    with announced(tmp_path):
        held = json.loads(note.read_text())
        note.write_text(json.dumps(held | changed))
        refuse_second(tmp_path)
        note.write_text(json.dumps(held))
        with pytest.raises(OwnedError):
            refuse_second(tmp_path)


def test_a_server_that_has_ended_is_not_asked(tmp_path: Path) -> None:
    with announced(tmp_path):
        held = (tmp_path / OWNER_FILE).read_text()
    refuse_second(tmp_path)
    (tmp_path / OWNER_FILE).write_text(held)  # as one that was killed leaves it
    refuse_second(tmp_path)


def test_the_directory_that_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("CARREL_")]:
        monkeypatch.delenv(name)
    assert data_meant(None, None) == Settings().data
    monkeypatch.setenv("CARREL_DATA", "here")
    assert data_meant(None, None) == Path("here")
    assert data_meant(tmp_path, "any.yaml") == tmp_path  # a flag wins
    assert data_meant(None, "any.yaml") is None
    monkeypatch.setenv("CARREL_SETTINGS", "any.yaml")
    assert data_meant(None, None) is None
