"""A backup that was tampered with is refused in one line, or restored exactly as it was made."""

from __future__ import annotations

import io
import random
import tarfile
import time
from pathlib import Path

import pytest
from fakes import FakeEmbedder, document, write

from core.errors import OperatorError
from stores.backup.archive import make_backup, unpack
from stores.backup.format import CATALOGUE
from stores.sqlite.catalogue import Collection
from stores.store import Store, parts

KEY = b"k" * 32
FLIPS = {None: 150, KEY: 10}  # each of a sealed one derives the key, slowly by design


@pytest.fixture
def filled(store: Store, collection: Collection, embedder: FakeEmbedder) -> Store:
    rows = [document(collection, f"d{n}", f"Text number {n}.") for n in range(5)]
    write(store, collection, rows, embedder)
    return store


def unpacked(data: bytes, place: Path, key: bytes | None = None) -> dict[str, bytes]:
    place.mkdir()
    (place / "b").write_bytes(data)
    (place / "r").mkdir()
    try:
        unpack(place / "b", place / "r", key=key, max_gb=0.01)
    finally:
        assert {path.name for path in place.iterdir()} == {"b", "r"}
    return {path.name: path.read_bytes() for path in (place / "r").iterdir()}


@pytest.mark.parametrize("key", [None, KEY])
def test_flips_and_cuts_are_found_or_do_not_matter(
    filled: Store, tmp_path: Path, key: bytes | None
) -> None:
    make_backup(parts(filled).database, tmp_path / "b", lambda *_: None, key=key)
    whole, draw = (tmp_path / "b").read_bytes(), random.Random(7)
    wanted = unpacked(whole, tmp_path / "whole", key)
    for number in range(FLIPS[key]):
        place = draw.randrange(len(whole)) if number % 3 else draw.randrange(1024)
        flipped = bytes([whole[place] ^ 1 << draw.randrange(8)])
        changed = whole[:place] + (flipped + whole[place + 1 :] if number % 5 else b"")
        try:
            assert unpacked(changed, tmp_path / f"{number}", key) == wanted
            assert key is None
        except OperatorError as error:
            assert "\n" not in str(error) and len(str(error)) < 600


def header(name: str, kind: bytes, size: bytes, content: bytes = b"") -> bytes:
    entry = tarfile.TarInfo(name)
    entry.type = kind
    block = bytearray(entry.tobuf(tarfile.USTAR_FORMAT))
    block[124:136], block[148:156] = size.ljust(12, b"\0"), b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block) + content + bytes(-len(content) % 512)


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_SPARSE, tarfile.CONTTYPE, tarfile.REGTYPE])
def test_a_declared_size_costs_nothing(tmp_path: Path, kind: bytes) -> None:
    huge = b"\x80\0\0\0\0\x04" + bytes(6)  # 2**50: skipping it took hours
    began = time.monotonic()
    with pytest.raises(OperatorError, match="damaged or was not made by Carrel"):
        unpacked(header(CATALOGUE, kind, huge) + bytes(4096), tmp_path / "r")
    assert time.monotonic() - began < 5


def test_a_sparse_member_is_refused_before_its_holes_are_written(tmp_path: Path) -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
        entry = tarfile.TarInfo(CATALOGUE)
        entry.pax_headers = {"GNU.sparse.major": "0", "GNU.sparse.minor": "1",
                             "GNU.sparse.name": CATALOGUE, "GNU.sparse.size": "9000000",
                             "GNU.sparse.numblocks": "1", "GNU.sparse.map": "0,0"}  # fmt: skip
        archive.addfile(entry, io.BytesIO())
    with pytest.raises(OperatorError, match="no plain file"):
        unpacked(file.getvalue(), tmp_path / "r")
    assert list((tmp_path / "r" / "r").iterdir()) == []


def test_headers_upon_headers_are_refused(tmp_path: Path) -> None:
    text = b"13 comment=x\n"
    one = header("h", tarfile.XHDTYPE, b"%011o" % len(text), text)
    with pytest.raises(OperatorError, match="damaged or was not made by Carrel"):
        unpacked(one * 3000 + bytes(4096), tmp_path / "r")
