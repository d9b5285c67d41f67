"""Fixtures of the command line: `carrel` runs a command, over a library that is made once.

- `carrel`: runs one command in this process.
- `library`: the data directory of the ingested FILES, which tests of a whole run share.
- `data`: a copy of it, for a test that changes it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Carrel, built_library, copied, in_process


@pytest.fixture
def carrel(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Carrel:
    return in_process(capsys, monkeypatch)


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = built_library(tmp_path_factory.getbasetemp())
    return copied(built, tmp_path_factory.mktemp("cli") / "library")


@pytest.fixture
def data(library: Path, tmp_path: Path) -> Path:
    return copied(library, tmp_path / "copy")
