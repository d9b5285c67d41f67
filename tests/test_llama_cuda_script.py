"""`scripts/llama-cuda.sh`: what it would run, and what it says when something is missing."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "scripts" / "llama-cuda.sh"


def run(*arguments: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **({"PATH": path} if path else {})}
    command = ["/bin/bash", str(SCRIPT), *arguments]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


def test_a_dry_run_prints_commands_that_can_be_typed() -> None:
    done = run("--dry-run", "--llama-cpp", "/opt/my llama", "--arch", "80;90", "--jobs", "4")
    assert done.returncode == 0
    lines = [shlex.split(line[2:]) for line in done.stdout.splitlines() if line.startswith("+ ")]
    pip, check, configure, build, devices = lines
    assert pip[:3] == ["env", "CMAKE_ARGS=-DGGML_CUDA=on -DCMAKE_CUDA_ARCHITECTURES=80;90",
                       "CMAKE_BUILD_PARALLEL_LEVEL=4"]  # fmt: skip
    assert "llama-cpp-python" in pip
    assert "llama_supports_gpu_offload" in check[-1]
    assert configure[configure.index("-B") + 1] == "/opt/my llama/build-cuda"
    assert {"-DGGML_CUDA=on", "-DCMAKE_CUDA_ARCHITECTURES=80;90"} <= set(configure)
    assert build[-2:] == ["--parallel", "4"]
    assert devices == ["/opt/my llama/build-cuda/bin/llama-server", "--list-devices"]


def test_only_the_server_is_built_when_asked() -> None:
    done = run("--dry-run", "--no-python", "--llama-cpp", "/opt/llama")
    assert done.returncode == 0
    assert "pip" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--gpu"], "unknown flag: --gpu"),
        (["--jobs", "0"], "--jobs must be"),
        (["--arch", "sm_90"], "--arch must be"),
        (["--llama-cpp"], "--llama-cpp needs a value"),
        (["--no-python"], "nothing to do"),
    ],
)
def test_wrong_use(arguments: list[str], said: str) -> None:
    done = run(*arguments, "--dry-run") if arguments[-1] != "--llama-cpp" else run(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""


def test_without_the_toolkit_nothing_is_built(tmp_path: Path) -> None:
    (tmp_path / "getconf").write_text("#!/bin/sh\necho 2\n", encoding="utf-8")
    (tmp_path / "getconf").chmod(0o755)
    done = run(path=str(tmp_path))
    assert done.returncode == 1
    assert "nvcc is not on PATH: install the CUDA toolkit" in done.stderr
    (tmp_path / "nvcc").symlink_to("/bin/true")
    assert "nvidia-smi is not on PATH" in run(path=str(tmp_path)).stderr
    (tmp_path / "nvidia-smi").symlink_to("/bin/false")
    done = run(path=str(tmp_path))
    assert done.returncode == 1
    assert "finds no GPU" in done.stderr
