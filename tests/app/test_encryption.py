"""Databases encrypted at rest: nothing of questions, answers or opinions can be read in a file."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("sqlcipher3", reason="needs the extra `encryption`")
KEY = "a key of the lighthouse keeper"
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("CARREL_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("CARREL_EMBEDDER", "embedded")
    monkeypatch.setenv("CARREL_REASONER", "rules")
    monkeypatch.setenv("CARREL_ENCRYPTION_KEY", KEY)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-m", "carrel", *arguments]
        return subprocess.run(words, capture_output=True, text=True, check=False)

    return run


def test_questions_and_opinions_are_unreadable_without_the_key(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lamps.txt").write_text("The Orrin lamp burns for 12 hours.", encoding="utf-8")
    assert command("ingest", str(tmp_path / "lamps.txt")).returncode == 0
    asked = command("ask", "How long does the Orrin lamp burn?", "--json")
    assert "12 hours" in json.loads(asked.stdout)["answer"]
    assert command("feedback", "like", "lamps.txt").returncode == 0
    backup = tmp_path / "kept.backup"
    assert command("backup", str(backup)).returncode == 0
    restored = tmp_path / "again"
    assert command("restore", str(backup), "--data", str(restored)).returncode == 0
    for folder in (tmp_path / "data", restored):
        files = [*folder.glob("*.sqlite3*")]
        assert files
        assert not any(b"Orrin" in one.read_bytes() for one in files), folder
    assert "Orrin" in command("trace", "last", "--data", str(restored)).stdout

    monkeypatch.setenv("CARREL_ENCRYPTION_KEY", "another key of the same length")
    refused = command("ask", "How long does it burn?")
    assert refused.returncode == 4
    assert "encrypted with another key" in refused.stderr
    monkeypatch.setenv("CARREL_ENCRYPTION_KEY", "short")
    assert "at least 16 characters" in command("status").stderr
