"""The seal notices every change of the files, and forgives a copy."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from stores.integrity.file_manifest import NAME, OPENED, FileManifest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home = tmp_path / "data"
    for name in ("catalogue.sqlite3", "chroma/chroma.sqlite3", "segments/1/x/ids"):
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode() * 10)
    return home


def sealed(folder: Path) -> Path:
    seal = FileManifest(folder, most_mb=1)
    seal.open()
    seal.write({})
    return folder


def test_a_folder_without_a_seal(folder: Path, tmp_path: Path) -> None:
    report = FileManifest(folder, most_mb=1).open()
    assert (report.state, len(report.files)) == ("none", 3)
    (tmp_path / "empty").mkdir()
    assert FileManifest(tmp_path / "empty", most_mb=1).open().state == "new"


def test_an_untouched_folder_is_equal(folder: Path) -> None:
    assert FileManifest(sealed(folder), most_mb=1).open().state == "equal"
    assert not (folder / NAME).exists()


def test_a_process_that_did_not_close_leaves_an_open_seal(folder: Path) -> None:
    FileManifest(sealed(folder), most_mb=1).open()
    (folder / "catalogue.sqlite3-wal").write_bytes(b"log")
    report = FileManifest(folder, most_mb=1).open()
    assert (report.state, report.files) == ("open", ("catalogue.sqlite3-wal",))
    assert not report.touched("chroma")


def flipped(path: Path) -> None:
    before = path.stat()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # as if nothing had been


def longer(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


@pytest.mark.parametrize("change", [flipped, longer, Path.unlink])
@pytest.mark.parametrize("name", ["catalogue.sqlite3", "chroma/chroma.sqlite3", "segments/1/x/ids"])
def test_every_change_is_named(folder: Path, name: str, change: Callable[[Path], None]) -> None:
    change(sealed(folder) / name)
    report = FileManifest(folder, most_mb=1).open()
    assert (report.state, report.files) == ("changed", (name,))
    assert report.touched(name.split("/")[0])


def test_a_new_file_is_a_change(folder: Path) -> None:
    (sealed(folder) / "chroma" / "more.bin").write_bytes(b"x")
    assert FileManifest(folder, most_mb=1).open().files == ("chroma/more.bin",)


def test_a_copy_is_equal(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(sealed(folder), tmp_path / "copy")
    assert FileManifest(tmp_path / "copy", most_mb=1).open().state == "equal"


def test_a_damaged_seal_is_none(folder: Path) -> None:
    flipped(sealed(folder) / NAME)
    assert FileManifest(folder, most_mb=1).open().state == "none"


def test_what_is_left_out_is_not_vouched_for(folder: Path) -> None:
    seal = FileManifest(folder, most_mb=1)
    seal.open()
    seal.write({"chroma": "torn"})
    (folder / "chroma" / "chroma.sqlite3").unlink()
    report = FileManifest(folder, most_mb=1).open()
    assert (report.state, report.left_out) == ("equal", {"chroma": "torn"})


def test_an_open_log_keeps_the_seal_open(folder: Path) -> None:
    seal = FileManifest(folder, most_mb=1)
    seal.open()
    (folder / "catalogue.sqlite3-wal").write_bytes(b"log")
    seal.write({})
    assert not (folder / NAME).exists()
    assert (folder / OPENED).exists()
