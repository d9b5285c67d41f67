"""What a command loads before it is refused, shows its help, or answers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from commands import HEIGHT, ROOT

from cli.commands import Commands, LazyCommand
from core.settings import Settings
from serve.operator.control import Control
from stores.lock import OwnerLock
from stores.sqlite.database import Database

URL = "http://127.0.0.1:8123"
# What a question needs nothing of, and what a search needs nothing of.
UNUSED = (
    "openai langchain_openai chromadb langchain_chroma torch transformers sentence_transformers"
    " huggingface_hub sklearn matplotlib onnx google.protobuf spacy pypdf pypdfium2"
    " docx openpyxl pptx ingest.pipeline fastapi uvicorn redis prometheus_client"
).split()
ANSWERING = "langgraph langchain_core langsmith requests httpx graph.build nodes.generate".split()
HEAVY = ("uvicorn", "langgraph", "onnxruntime", "graph.build")


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
