"""`carrel models`: the table, a pull that cannot reach the hub, and files that differ."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from commands import Carrel, in_process, process
from stub_hub import stub_hub

from models import table as tables
from models.table import chat_table

SMALLEST = chat_table()[0]
DATA = b"GGUF" + b"weights" * 1000


@pytest.fixture
def carrel(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Carrel:
    monkeypatch.setenv("NO_PROXY", "*")
    return in_process(capsys, monkeypatch)


def test_the_list_names_all_with_whole_digests_in_json(carrel: Carrel, tmp_path: Path) -> None:
    found = carrel("models", "list", "--json").json
    assert found["folder"] == str(tmp_path / "models")
    rows = {row["name"]: row for row in found["models"]}
    assert rows[SMALLEST.name]["sha256"] == SMALLEST.sha256
    assert rows[SMALLEST.name]["bytes"] == SMALLEST.bytes
    assert rows[SMALLEST.name]["path"] is None
    assert rows["embedded"]["path"].endswith("e5-small-q4.bin")
    assert rows["embedded-en"]["path"].endswith("model.safetensors")
    assert rows["BAAI/bge-m3"]["sha256"] is rows["BAAI/bge-m3"]["bytes"] is None
    assert {row["kind"] for row in rows.values()} == {"chat", "embedder", "cross-encoder"}


def test_the_table_cuts_no_name(carrel: Carrel) -> None:
    found = carrel("models", "list")
    rows = carrel("models", "list", "--json").json["models"]
    assert [row["name"] for row in rows if row["name"] not in found.out] == []
    assert str(SMALLEST.sha256)[:12] in found.out
    assert "unknown" in found.out


def test_an_unknown_model_names_the_nearest(carrel: Carrel) -> None:
    carrel("models", "pull", "qwen3-4b").failed(2, "qwen3-4b", "Qwen3-4B-Instruct-2507")
    unlike = carrel("models", "verify", "zzz", "--json")
    unlike.failed(2, "zzz", "`carrel models list` shows all")
    assert "nearest" not in unlike.err


def test_no_hub_is_one_line_with_the_place_to_copy_to(
    carrel: Carrel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    place = str(tmp_path / "models" / SMALLEST.file)
    done = carrel("models", "pull", SMALLEST.name)
    done.failed(1, "127.0.0.1:9", place, "HF_ENDPOINT", f"carrel models verify {SMALLEST.name}")


def test_offline_is_said(tmp_path: Path) -> None:
    env = {"HF_HUB_OFFLINE": "1", "CARREL_LLAMA__MODEL_FOLDER": str(tmp_path)}
    process("models", "pull", SMALLEST.name, env=env).failed(1, "HF_HUB_OFFLINE is set")


def test_pull_then_verify_then_a_changed_byte(
    carrel: Carrel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    digest = hashlib.sha256(DATA).hexdigest()
    card = SMALLEST.model_copy(update={"sha256": digest, "bytes": len(DATA)})
    monkeypatch.setattr(tables, "chat_table", lambda: (card,))
    monkeypatch.setattr("models.named.chat_table", lambda: (card,))
    with stub_hub({(card.repository, card.file): DATA}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        first = carrel("models", "pull", card.name, "--json").json
        assert (first["state"], first["sha256"]) == ("fetched", digest)
    path = tmp_path / "models" / card.file
    assert first["path"] == str(path)
    assert carrel("models", "pull", card.name, "--json").json["state"] == "present"
    assert "was there already" in carrel("models", "pull", card.name).out
    assert carrel("models", "verify", card.name).code == 0
    path.write_bytes(DATA + b"!")
    done = carrel("models", "verify", "--json")
    assert done.code == 1
    state = {row["name"]: row["state"] for row in done.json["models"]}
    assert state[card.name] == "differs"
    assert state["embedded"] == "ok"
    carrel("models", "pull", card.name).failed(1, digest, "Move it away")


def test_a_named_model_that_is_missing_fails(carrel: Carrel) -> None:
    done = carrel("models", "verify", SMALLEST.name)
    assert done.code == 1
    assert f"carrel models pull {SMALLEST.name}" in done.out


def test_the_embedded_model_is_there_already(carrel: Carrel) -> None:
    done = carrel("models", "pull", "embedded", "--json").json
    assert done["state"] == "present"
    assert done["sha256"].startswith("1571fc982750")


def test_a_folder_that_cannot_be_made(carrel: Carrel, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    change = f"llama.model_folder={tmp_path / 'file' / 'below'}"
    carrel("models", "pull", SMALLEST.name, "--set", change).failed(4, "CARREL_LLAMA__MODEL_FOLDER")
