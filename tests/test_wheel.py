"""What is installed from a wheel has all that a clone has: rooms, page, prompts, sample corpora."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from commands import ROOT

ROOMS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
NOT_RUN = ("examples/README.md", "examples/other_tenant")


def of_rooms() -> list[Path]:
    """Return the files of the rooms, as far as they are not made by running them."""
    rooms = {name.split(".")[0] for name in ROOMS["tool"]["setuptools"]["packages"]}
    files = [path for room in rooms for path in (ROOT / room).rglob("*") if path.is_file()]
    files += [path for path in (ROOT / "examples").rglob("*") if path.is_file()]
    return [path.relative_to(ROOT) for path in files if "__pycache__" not in path.parts]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel in a copy: setuptools leaves a build folder, with what it found last time."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for name in [*of_rooms(), *map(Path, ("pyproject.toml", "README.md", "LICENSE"))]:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    build = [sys.executable, "-m", "pip", "wheel", ".", "--no-deps", "--no-build-isolation", "-q"]
    done = subprocess.run(
        [*build, "--no-index", "-w", str(folder)], cwd=source, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return built


def test_a_wheel_holds_every_file_of_the_rooms(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
    wanted = [path.as_posix() for path in of_rooms()]
    placed = {name: re.sub(r"^examples/", "cli/examples/", name) for name in wanted}
    assert [
        one for one, at in placed.items() if at not in names and not one.startswith(NOT_RUN)
    ] == []


def test_demo_and_serve_are_in_the_base(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path / "site")
    program = (
        "import sys, cli.demo, cli.server.serve, serve.server, serve.app;"
        "print(cli.demo.EXAMPLES); sys.exit(not cli.demo.EXAMPLES.joinpath('xpay').is_dir())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout.strip()) == (
        0,
        str(tmp_path / "site" / "cli" / "examples"),
    ), done.stderr
    (described,) = metadata.distributions(path=[str(tmp_path / "site")])
    base = [one for one in described.requires or [] if "extra ==" not in one]
    for name in ("fastapi", "uvicorn", "sse-starlette", "PyJWT", "prometheus_client", "limits"):
        assert any(one.startswith(name) for one in base), name
