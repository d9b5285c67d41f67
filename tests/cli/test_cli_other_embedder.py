"""A data directory whose vectors another embedder made goes on, or says in one line what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Carrel

from core.settings import Settings

ENGLISH = ("--set", "embedder=embedded-en")
DEFAULT = ("--set", f"embedder={Settings().embedder}")


def test_a_directory_of_the_former_default_says_what_to_do(
    carrel: Carrel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("harbour", "library"):
        (tmp_path / f"{name}.md").write_text(f"# The {name}\n\nIt opens at six.\n", "utf-8")
    data = tmp_path / "data"
    assert carrel("ingest", tmp_path / "harbour.md", *ENGLISH, data=data).code == 0

    found = carrel("search", "harbour", *DEFAULT, data=data)
    assert "harbour" in found.out
    assert len(found.err.splitlines()) == 1
    for words in ("keywords only", "all-MiniLM-L6-v2@", "carrel reindex", "embedded-en"):
        assert words in found.err
    asked = carrel("ask", "When does the harbour open?", "--json", *DEFAULT, data=data)
    assert any("carrel reindex" in one for one in asked.json["warnings"])
    refused = carrel("ingest", tmp_path / "library.md", "--json", *DEFAULT, data=data)
    refused.failed(refused.code, "all-MiniLM-L6-v2@", "carrel reindex", "embedded-en")

    assert carrel("ingest", tmp_path / "library.md", *ENGLISH, data=data).code == 0
    assert not carrel("search", "library", *ENGLISH, data=data).err

    assert carrel("reindex", *DEFAULT, data=data).code == 0
    assert not carrel("search", "library", *DEFAULT, data=data).err
    assert carrel("ingest", tmp_path / "library.md", *DEFAULT, data=data).code == 0
    monkeypatch.setenv("CARREL_EMBEDDER", Settings().embedder)  # doctor has no --set
    assert carrel("doctor", data=data).code == 0
