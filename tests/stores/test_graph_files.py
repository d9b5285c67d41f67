"""What a vector index does not use of its files is cleared, and nothing that it uses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from core.errors import OperatorError
from stores.chroma import ChromaVectors
from stores.erasure.graph_files import HEADER, clear_unused

SIZE = 12


def files(folder: Path, most: int, count: int, length: int, version: int = 1) -> Path:
    folder.mkdir()
    (folder / "header.bin").write_bytes(HEADER.pack(version, 0, most, count, SIZE) + b"more")
    (folder / "data_level0.bin").write_bytes(b"v" * SIZE * length)
    (folder / "length.bin").write_bytes(b"l" * 4 * length)
    return folder


@pytest.mark.parametrize(("most", "count", "length"), [(9, 0, 9), (9, 4, 9), (9, 4, 4), (4, 4, 4)])
def test_only_the_unused_end_is_cleared(tmp_path: Path, most: int, count: int, length: int) -> None:
    folder = files(tmp_path / "f", most, count, length)
    clear_unused(folder)
    left = length - count
    data = (folder / "data_level0.bin").read_bytes()
    assert data == b"v" * SIZE * count + bytes(SIZE * left)
    assert (folder / "length.bin").read_bytes() == b"l" * 4 * count + bytes(4 * left)


@pytest.mark.parametrize(("count", "length", "version"), [(5, 4, 1), (2, 10, 1), (2, 4, 2)])
def test_files_of_another_format_are_left_alone(
    tmp_path: Path, count: int, length: int, version: int
) -> None:
    folder = files(tmp_path / "f", 9, count, length, version)
    before = (folder / "data_level0.bin").read_bytes()
    with pytest.raises(OperatorError, match="another format"):
        clear_unused(folder)
    assert (folder / "data_level0.bin").read_bytes() == before
    clear_unused(tmp_path / "none")


@pytest.mark.parametrize("rows", [5, 1200])
def test_an_index_finds_all_its_vectors_afterwards(tmp_path: Path, rows: int) -> None:
    made = np.random.default_rng(rows).normal(size=(rows, 8)).astype(np.float32)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    vectors = {f"c{number}": made[number] for number in range(rows)}
    index = ChromaVectors(tmp_path / "chroma", "m", batch=500)
    index.upsert(1, vectors, dict.fromkeys(vectors, 1))
    index.close()
    folders = [one for one in (tmp_path / "chroma").iterdir() if one.is_dir()]
    assert folders
    for folder in folders:
        clear_unused(folder)
    again = ChromaVectors(tmp_path / "chroma", "m", batch=500)
    assert again.count(1) == rows
    found = [again.search(1, made[number], 1, {1}, 0)[0][0] for number in range(0, rows, rows // 5)]
    assert found == [f"c{number}" for number in range(0, rows, rows // 5)]
    again.close()
