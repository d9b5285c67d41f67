"""What attacks share: a command line in this process, a copy of a library, and tests/serve."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from commands import Carrel, built_library, copied, in_process

sys.path.append(str(Path(__file__).parents[1] / "serve"))  # for serving.py


@pytest.fixture
def carrel(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Carrel:
    return in_process(capsys, monkeypatch)


@pytest.fixture
def data(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a library that the test may damage."""
    return copied(built_library(tmp_path_factory.getbasetemp()), tmp_path / "copy")
