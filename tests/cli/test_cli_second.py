"""A second server is turned away by the first one, before anything heavy is loaded."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import typer
from commands import ROOT

from cli.commands import app
from cli.second import FLAGS, GIVEN, data_meant, refuse_second, refuse_server
from core.settings import Settings
from serve.control import Control
from stores.database import Database
from stores.lock import OwnerLock
from stores.owner import OWNER_FILE, OwnedError

URL = "http://127.0.0.1:8123"
HEAVY = ("typer", "pydantic", "asyncio", "uvicorn", "fastapi", "numpy", "langgraph", "yaml")


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
    heavy: tuple[str, ...], variables: dict[str, str], *given: str
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
    heavy = ("numpy", "chromadb", "langgraph", "stores.store", "tools.toolbox")
    with closing(Database(tmp_path / "catalogue.sqlite3")):
        pass
    variables = {"CARREL_DATA": str(tmp_path), "CARREL_LOCK_WAIT_S": "0"}
    with OwnerLock(tmp_path, wait_s=0):
        done = loading(heavy, variables, command, "How high is the flame?")
    assert done.returncode == 4, done.stderr
    assert f"in use by process {os.getpid()} " in done.stderr
    assert done.stdout == "[]\n"


def test_commands_are_read_without_their_libraries() -> None:
    heavy = ("pydantic_settings", "uvicorn", "fastapi", "numpy", "langgraph", "importlib.metadata")
    code = f"import sys, cli.commands; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    "given",
    [
        ["--port", "0"],
        ["--port=0", "--log", "--mode", "prod"],
        ["--port", "8124", "--host", "127.0.0.1", "--allow-anonymous"],
    ],
)
def test_what_is_refused_at_once(tmp_path: Path, given: list[str]) -> None:
    with announced(tmp_path):
        with pytest.raises(OwnedError, match=f"process {os.getpid()} "):
            refuse_server(["serve", *given, "--data", str(tmp_path)])


@pytest.mark.parametrize(
    "given",
    [
        ["ask", "--port", "0"],
        ["serve"],  # the port that is meant may be the owner's
        ["serve", "--port", "8123"],
        ["serve", "--port", "65536"],
        ["serve", "--port", "x"],
        ["serve", "--port"],
        ["serve", "--port", "0", "--unknown"],
        ["serve", "--port", "0", "--set", "data=elsewhere"],
        ["serve", "--port", "0", "--mode", ""],
        ["serve", "--port", "0", "--help"],
        [],
    ],
)
def test_what_is_left_to_typer_and_the_lock(
    tmp_path: Path, given: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARREL_DATA", str(tmp_path))
    with announced(tmp_path):
        with pytest.raises(OwnedError):
            refuse_server(["serve", "--port", "0"])
        refuse_server(given)


def test_the_options_are_those_of_the_command() -> None:
    group = typer.main.get_command(app)
    command = group.commands["serve"]  # type: ignore[attr-defined]
    named = {name: one.is_flag for one in command.params for name in one.opts if len(name) > 2}
    named.pop("--help", None)
    assert {name for name, flag in named.items() if flag} == FLAGS
    assert {name for name, flag in named.items() if not flag} == GIVEN | {"--set"}


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
