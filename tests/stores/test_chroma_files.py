"""Chroma's own files: what an erasure does to them, also while others search."""

from __future__ import annotations

import struct
import threading
from pathlib import Path

import numpy as np

from stores.index.chroma import ChromaVectors
from stores.index.port import VectorRow, VectorScope

WIDTH = 8


def filled(folder: Path, rows: int) -> tuple[ChromaVectors, list[VectorRow]]:
    """Write random vectors to a collection in a folder."""
    random = np.random.default_rng(0)
    vectors = random.normal(size=(rows, WIDTH)).astype("f4")
    written = [VectorRow(f"c{n}", n, n, "text", vector) for n, vector in enumerate(vectors)]
    index = ChromaVectors(folder, "", "x", "m", batch=100, timeout_s=9)
    index.write(1, written)
    return index, written


def test_files_are_rewritten_while_others_search(tmp_path: Path) -> None:
    index, rows = filled(tmp_path / "chroma", 1_200)  # from 1,000 on Chroma writes its graph
    found: list[object] = []
    done = threading.Event()

    def search() -> None:
        while not done.is_set():
            try:
                found.append(index.search(1, rows[5].vector, 1, VectorScope()))
            except Exception as error:
                found.append(error)

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(8):
        index.compact(1.0)
    done.set()
    for thread in threads:
        thread.join()
    assert found and all(one == [5] for one in found)
    assert index.count(1) == len(rows)
    index.close()


def test_places_that_no_vector_has_taken_are_zeros(tmp_path: Path) -> None:
    index, _ = filled(tmp_path / "chroma", 12)
    index.close()
    (graph,) = [one for one in (tmp_path / "chroma").iterdir() if one.is_dir()]
    _, _, places, taken, size = struct.unpack_from("<iQQQQ", (graph / "header.bin").read_bytes())
    data = graph / "data_level0.bin"
    kept = b"k" * taken * size
    data.write_bytes(kept + b"secret" * (size * (places - taken) // 6 + 1))
    data.write_bytes(data.read_bytes()[: places * size])
    index.compact(1.0)
    assert data.read_bytes() == kept + bytes((places - taken) * size)
    (graph / "header.bin").write_bytes(b"cut")
    index.compact(1.0)  # which leaves a damaged header to the next opening
    assert data.read_bytes() == kept + bytes((places - taken) * size)
