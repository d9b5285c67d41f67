"""Fetching a model from a stub hub: whole, resumed, wrong, refused, and never half in place."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from filelock import FileLock
from stub_hub import StubHub, stub_hub

from core.errors import ModelError, OperatorError
from models import download
from models.download import HubError, pull_chat_model, read_digest
from models.named import NamedModel, pull_snapshot, verify_model
from models.table import ChatCard

DATA = b"GGUF" + bytes(range(256)) * 12_000  # 3 MB, more than one block
DIGEST = hashlib.sha256(DATA).hexdigest()
REPOSITORY, FILE = "acme/Tiny-GGUF", "tiny.gguf"
EMBEDDER = "acme/tiny-embedder"
FILES = {
    (REPOSITORY, FILE): DATA,
    (EMBEDDER, "model.safetensors"): b"weights" * 1000,
    (EMBEDDER, "config.json"): b"{}",
    (EMBEDDER, "pytorch_model.bin"): b"pickle",
    (EMBEDDER, "onnx/model.onnx"): b"onnx",
    ("acme/pickled", "pytorch_model.bin"): b"pickle",
}


class Disk(NamedTuple):
    total: int
    used: int
    free: int


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[StubHub]:
    with stub_hub(FILES) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.delenv("HF_TOKEN", raising=False)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setattr(download, "PAUSE_SECONDS", 0)
        yield hub


def card(**values: object) -> ChatCard:
    row = {"name": "Tiny", "repository": REPOSITORY, "file": FILE, "quantisation": "F32"}
    row |= {"licence": "MIT", "context": 512, "thinking": "none", "rank": 1, "sha256": DIGEST}
    return ChatCard.model_validate(row | {"bytes": len(DATA)} | values)


def quiet(stage: str, done: int, total: int) -> None:
    pass


def begun(folder: Path, data: bytes) -> None:
    """Leave a part of the file, as an interrupted pull does."""
    (folder / f"{FILE}.{DIGEST[:12]}.part").write_bytes(data)


def partials(folder: Path) -> list[Path]:
    return list(folder.glob("*.part"))


def named(model: ChatCard, folder: Path) -> NamedModel:
    path = model.path(folder)
    values = model.model_dump(exclude={"revision", "thinking", "rank", "slot_context"})
    return NamedModel(**values, kind="chat", path=path if path.is_file() else None)


def test_a_whole_pull_then_again_without_the_hub(hub: StubHub, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    pulled = pull_chat_model(card(), tmp_path, lambda *said: seen.append(said))
    assert (pulled.state, pulled.sha256, pulled.bytes) == ("fetched", DIGEST, len(DATA))
    assert pulled.path.read_bytes() == DATA
    assert hub.sent == len(DATA)
    assert partials(tmp_path) == []
    assert ("download", len(DATA), len(DATA)) in seen
    assert seen[-1] == ("check", len(DATA), len(DATA))
    asked = len(hub.asked)
    assert pull_chat_model(card(), tmp_path, quiet).state == "present"
    assert len(hub.asked) == asked
    assert read_digest(pulled.path) == DIGEST


def test_a_cut_connection_goes_on_where_it_was(hub: StubHub, tmp_path: Path) -> None:
    hub.cut_after = 1_000_000
    assert pull_chat_model(card(), tmp_path, quiet).sha256 == DIGEST
    assert hub.sent == len(DATA)
    ranges = [said.split()[2:] for said in hub.asked[1:]]
    assert ranges == [[], ["bytes=1000000-"], ["bytes=2000000-"], ["bytes=3000000-"]]


def test_an_interrupted_pull_is_resumed_by_the_next(hub: StubHub, tmp_path: Path) -> None:
    def interrupt(stage: str, done: int, total: int) -> None:
        if done > 1_500_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pull_chat_model(card(), tmp_path, interrupt)
    (partial,) = partials(tmp_path)
    kept = partial.stat().st_size
    assert 0 < kept < len(DATA)
    assert not card().path(tmp_path).exists()
    hub.sent = 0
    assert pull_chat_model(card(), tmp_path, quiet).sha256 == DIGEST
    assert hub.sent == len(DATA) - kept


def test_a_hub_that_sends_no_parts_sends_the_whole(hub: StubHub, tmp_path: Path) -> None:
    begun(tmp_path, b"x" * 100)
    hub.ranges = False
    assert pull_chat_model(card(), tmp_path, quiet).sha256 == DIGEST
    assert hub.sent == len(DATA)


def test_a_damaged_partial_file_is_found_and_thrown_away(hub: StubHub, tmp_path: Path) -> None:
    begun(tmp_path, b"x" * 100)
    with pytest.raises(ModelError, match=DIGEST) as error:
        pull_chat_model(card(), tmp_path, quiet)
    found = hashlib.sha256(b"x" * 100 + DATA[100:]).hexdigest()
    assert found in str(error.value)
    assert list(tmp_path.glob("*.gguf")) == partials(tmp_path) == []
    assert pull_chat_model(card(), tmp_path, quiet).sha256 == DIGEST


def test_a_partial_file_longer_than_the_file_begins_anew(hub: StubHub, tmp_path: Path) -> None:
    begun(tmp_path, b"x" * (len(DATA) + 1))
    assert pull_chat_model(card(), tmp_path, quiet).sha256 == DIGEST


def test_another_file_is_refused_before_it_is_fetched(hub: StubHub, tmp_path: Path) -> None:
    hub.announces = "a" * 64
    with pytest.raises(ModelError, match="a" * 64):
        pull_chat_model(card(), tmp_path, quiet)
    assert hub.sent == 0


def test_without_a_known_digest_the_announced_one_counts(hub: StubHub, tmp_path: Path) -> None:
    unknown = card(sha256=None, bytes=None)
    hub.announces = "a" * 64
    with pytest.raises(ModelError, match="a" * 64):
        pull_chat_model(unknown, tmp_path, quiet)
    hub.announces = ""
    assert pull_chat_model(unknown, tmp_path, quiet).sha256 == DIGEST
    assert verify_model(named(unknown, tmp_path), quiet).state == "ok"


def test_a_hub_without_digests_gives_a_recorded_one(hub: StubHub, tmp_path: Path) -> None:
    unknown = card(sha256=None, bytes=None)
    hub.digests = False
    pulled = pull_chat_model(unknown, tmp_path, quiet)
    assert read_digest(pulled.path) == DIGEST
    pulled.path.write_bytes(DATA[:-1])
    assert verify_model(named(unknown, tmp_path), quiet).state == "differs"
    with pytest.raises(ModelError, match="Move it away"):
        pull_chat_model(unknown, tmp_path, quiet)


@pytest.mark.parametrize(
    ("status", "said"), [(401, "HF_TOKEN"), (403, "terms"), (404, "no such file"), (500, "500")]
)
def test_a_refusal_says_what_to_do(hub: StubHub, tmp_path: Path, status: int, said: str) -> None:
    hub.status = status
    with pytest.raises(HubError) as error:
        pull_chat_model(card(), tmp_path, quiet)
    place = str(card().path(tmp_path))
    expected = (said, str(status), hub.url, place, "carrel models verify Tiny", "HF_ENDPOINT")
    assert [word for word in expected if word not in str(error.value)] == []
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("address", ["http://127.0.0.1:9", "not-an-address", "http://[::1"])
def test_an_address_that_does_not_answer_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, address: str
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", address)
    monkeypatch.setenv("NO_PROXY", "*")
    with pytest.raises(HubError) as error:
        pull_chat_model(card(), tmp_path, quiet)
    assert address in str(error.value)


def test_a_hub_that_dies_keeps_what_came(hub: StubHub, tmp_path: Path) -> None:
    def die(stage: str, done: int, total: int) -> None:
        hub.cut_after = 0

    hub.cut_after = 2_000_000
    with pytest.raises(HubError):
        pull_chat_model(card(), tmp_path, die)
    assert partials(tmp_path)[0].stat().st_size == 2_000_000


def test_a_full_disk_is_refused_before_a_byte_is_sent(
    hub: StubHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Disk(10**9, 10**9 - 1000, 1000))
    with pytest.raises(OperatorError, match=f"{len(DATA):,} bytes, the disk has 1,000 free"):
        pull_chat_model(card(), tmp_path, quiet)
    assert hub.sent == 0


def test_two_pulls_of_one_model_do_not_meet(hub: StubHub, tmp_path: Path) -> None:
    with FileLock(tmp_path / f"{FILE}.lock"), pytest.raises(OperatorError, match="another"):
        pull_chat_model(card(), tmp_path, quiet)


def test_a_file_copied_by_hand_is_verified(tmp_path: Path) -> None:
    assert verify_model(named(card(), tmp_path), quiet).state == "missing"
    (tmp_path / FILE).write_bytes(DATA)
    assert verify_model(named(card(), tmp_path), quiet).state == "ok"
    (tmp_path / FILE).write_bytes(DATA + b"!")
    found = verify_model(named(card(), tmp_path), quiet)
    assert found.state == "differs"
    assert DIGEST in found.problem
    assert str(found.sha256) in found.problem


def test_a_file_of_unknown_digest_must_at_least_be_whole(tmp_path: Path, tiny_model: Path) -> None:
    unknown = card(sha256=None, bytes=None)
    data = tiny_model.read_bytes()
    (tmp_path / FILE).write_bytes(data)
    assert verify_model(named(unknown, tmp_path), quiet).state == "unknown"
    (tmp_path / FILE).write_bytes(data[:-1000])
    assert verify_model(named(unknown, tmp_path), quiet).state == "differs"


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def embedder(repository: str = EMBEDDER, path: Path | None = None, **values: object) -> NamedModel:
    row = {"kind": "embedder", "file": "model.safetensors", "bytes": None, "sha256": None}
    row |= {"name": repository, "repository": repository, "licence": "MIT", "context": 512}
    return NamedModel.model_validate(row | {"path": path} | values)


def test_an_embedder_is_fetched_without_pickles(hub: StubHub, hub_cache: Path) -> None:
    pulled = pull_snapshot(embedder(), quiet)
    names = {path.name for path in pulled.path.parent.iterdir()}
    assert names == {"config.json", "model.safetensors"}
    assert pulled.path.is_relative_to(hub_cache)
    found = embedder(path=pulled.path)
    assert verify_model(found, quiet).state == "ok"
    pulled.path.resolve().write_bytes(b"other")
    assert verify_model(found, quiet).state == "differs"


def test_an_embedder_of_another_digest_is_not_kept(hub: StubHub, hub_cache: Path) -> None:
    with pytest.raises(ModelError, match="b" * 64):
        pull_snapshot(embedder(sha256="b" * 64), quiet)
    assert not list(hub_cache.rglob("model.safetensors"))


def test_only_pickles_are_no_model(hub: StubHub, hub_cache: Path) -> None:
    with pytest.raises(ModelError, match="never a pickled file"):
        pull_snapshot(embedder("acme/pickled"), quiet)


def test_an_embedder_that_the_hub_lacks_or_no_hub(hub: StubHub, hub_cache: Path) -> None:
    hub.status = 404
    with pytest.raises(HubError, match="404"):
        pull_snapshot(embedder("acme/none"), quiet)
    hub.status = 0
    hub.page = b"<html>Log in to the guest network</html>"
    with pytest.raises(HubError, match="no model hub"):
        pull_snapshot(embedder(), quiet)
