"""What others may build on: exported names, the quickstart, LangChain's interfaces, rooms."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import ROOT
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import StructuredTool

import carrel
from carrel.rooms import ROOMS
from core.errors import CallerError

NAMES = [
    *("Answer", "AuthContext", "CarrelError", "Citation", "Claim", "Evidence", "Library"),
    "RunRecord",
]
GATE = "The gate of the harbour opens at 7:15 in the morning.\n"
SAFE = "The code of the safe of the harbour is 7321.\n"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[carrel.Library]:
    folder = tmp_path_factory.mktemp("texts")
    (folder / "gate.md").write_text(GATE, encoding="utf-8")
    (folder / "safe.md").write_text(SAFE, encoding="utf-8")
    with carrel.Library(user="ann", reasoner="rules") as opened:
        opened.ingest(folder / "gate.md")
        opened.ingest(folder / "safe.md", readers=["keeper"])
        yield opened


def test_the_exported_names_are_these() -> None:
    assert carrel.__all__ == NAMES == dir(carrel)
    assert [getattr(carrel, name).__name__ for name in NAMES] == NAMES
    with pytest.raises(AttributeError, match="has no attribute 'Session'"):
        _ = carrel.Session  # type: ignore[attr-defined]


def test_every_exported_name_says_what_it_is() -> None:
    for name in NAMES:
        assert getattr(carrel, name).__doc__, name


def test_a_retriever_is_langchains_and_sees_what_its_caller_sees(library: carrel.Library) -> None:
    retriever = library.retriever(k=2)
    assert isinstance(retriever, BaseRetriever)
    (found,) = retriever.invoke("the code of the safe of the harbour")
    assert isinstance(found, Document)
    assert found.page_content == GATE.strip()
    assert found.metadata["source"] == "gate.md" and found.id == found.metadata["chunk_id"]
    assert found.metadata["score"] > 0 and "document_key" not in found.metadata
    keeper = library.as_caller("kay", roles=["keeper"])
    sources = [one.metadata["source"] for one in keeper.retriever().invoke("the harbour")]
    assert sorted(sources) == ["gate.md", "safe.md"]
    assert len(keeper.retriever(k=1, pipeline="keyword").invoke("harbour")) == 1
    with pytest.raises(CallerError, match="must exist"):
        library.as_caller("kay", tenant="zoo").retriever().invoke("harbour")


def test_a_caller_can_be_confined_to_sources(library: carrel.Library) -> None:
    confined = library.as_caller("kay", roles=["keeper"], sources=["safe*"])
    assert [one.source for one in confined.search("harbour")] == ["safe.md"]
    assert [one.metadata["source"] for one in confined.retriever().invoke("harbour")] == ["safe.md"]
    tool = next(one for one in confined.tools() if one.name == "search")
    assert [one["source"] for one in tool.invoke({"query": "harbour"})] == ["safe.md"]


def test_tools_are_langchains_and_bound_to_their_caller(library: carrel.Library) -> None:
    tools = {tool.name: tool for tool in library.tools()}
    assert all(isinstance(tool, StructuredTool) for tool in tools.values())
    assert {"search", "search_text", "search_vector"} <= set(tools)
    found = tools["search"].invoke({"query": "the code of the safe"})
    assert [one["source"] for one in found] == ["gate.md"]
    fields = {name for tool in tools.values() for name in tool.args}
    assert not {"tenant", "user", "roles", "auth"} & fields


def test_a_retriever_finds_what_is_ingested_later(tmp_path: Path) -> None:
    (tmp_path / "one.md").write_text(GATE, encoding="utf-8")
    (tmp_path / "two.md").write_text(SAFE, encoding="utf-8")
    with carrel.Library(reasoner="rules") as library:
        library.ingest(tmp_path / "one.md")
        retriever = library.retriever()
        assert len(retriever.invoke("harbour")) == 1
        library.ingest(tmp_path / "two.md")
        assert len(retriever.invoke("harbour")) == 2


def quickstart() -> str:
    """Return the Python sample of the README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (found,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    return str(found)


def test_the_quickstart_of_the_readme_runs(tmp_path: Path) -> None:
    sample = quickstart()
    assert len(sample.strip().splitlines()) <= 10
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "retries.md").write_text(
        "# Retries\n\nWe decided to retry every call three times.\n", encoding="utf-8"
    )
    done = subprocess.run(
        [sys.executable, "-c", sample],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "three times" in done.stdout and "retries.md" in done.stdout


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run Python with a folder before our own on its path."""
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("room", ["tools", "models"])
def test_a_package_that_hides_one_of_ours_is_named_in_one_line(tmp_path: Path, room: str) -> None:
    (tmp_path / room).mkdir()
    (tmp_path / room / "__init__.py").touch()
    done = run(tmp_path, "-m", "carrel", "--version")
    assert done.returncode == 4
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"carrel: Carrel's package '{room}' is hidden by {tmp_path / room}: ")
    imported = run(tmp_path, "-c", "from carrel import Library")
    assert f"ImportError: Carrel's package '{room}' is hidden" in imported.stderr


def test_a_package_of_ours_that_was_overwritten_is_named_in_one_line(tmp_path: Path) -> None:
    gone = "import sys; sys.modules['tools.toolbox'] = None\n"
    words = "Carrel's package 'tools' is not as it was installed (import of tools.toolbox"
    (tmp_path / "notes.md").write_text(GATE, encoding="utf-8")
    command = f"sys.argv = ['carrel', 'ingest', '{tmp_path}', '--data', '{tmp_path / 'data'}']\n"
    done = run(tmp_path, "-c", f"{gone}{command}from carrel.__main__ import main; main()")
    assert done.returncode == 4
    assert done.stderr.splitlines()[-1].startswith(f"carrel: {words}")
    imported = run(tmp_path, "-c", f"{gone}from carrel import Library")
    assert f"ImportError: {words}" in imported.stderr


def test_all_rooms_are_looked_for() -> None:
    packages = {
        path.parent.name for path in ROOT.glob("*/__init__.py") if path.parent.name != "benchmarks"
    }
    assert {*ROOMS, "carrel"} == packages - {"tests", "scripts"}


def test_the_import_loads_nothing_heavy() -> None:
    code = "import sys, carrel; print(len({'pydantic', 'numpy', 'app.session'} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "0\n"
