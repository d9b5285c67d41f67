"""A segment on disk: raw arrays and a manifest that says what they must be.

Arrays are memory-mapped, so that opening reads only what is checked. Sizes are checked at opening
and so are the sums: of all arrays where they are small, else of those that say where things are.
`find_damaged_files` checks every sum.
"""

from __future__ import annotations

import mmap
import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from stores.folder import sync_folder
from stores.segments.postings import Postings, SortedTerms
from stores.segments.rows import SentenceVectors
from stores.segments.types import IndexedRows, Stored


class SegmentError(Exception):
    """Say why a segment cannot be used; it never reaches a caller."""


class ArrayEntry(BaseModel):
    """Say the type, shape and check sum of an array."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    dtype: str
    shape: tuple[int, ...]
    crc: int


class FileSink:
    """Write arrays of equal row shape into one file, with its check sum."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = path.open("xb")
        self._crc = 0
        self._rows = 0
        self._row: tuple[str, tuple[int, ...]] = ("|u1", ())

    def append(self, array: Any) -> None:  # noqa: ANN401 - an array of any type
        """Add rows."""
        assert self._file is not None  # nothing is added once it was read
        data = np.ascontiguousarray(array).view(np.uint8).data if array.size else b""
        self._file.write(data)
        self._crc = zlib.crc32(data, self._crc)
        self._rows += len(array)
        self._row = (array.dtype.str, array.shape[1:])

    def array(self) -> Any:  # noqa: ANN401 - an array of any type
        """End the file, make sure it is on disk, and return it mapped."""
        self.close(durable=True)
        return map_array(self._path, self.entry())

    def entry(self) -> ArrayEntry:
        """Return the manifest's entry of this array."""
        dtype, shape = self._row
        return ArrayEntry(dtype=dtype, shape=(self._rows, *shape), crc=self._crc)

    def close(self, *, durable: bool = False) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.flush()
            if durable:
                os.fsync(self._file.fileno())
            self._file.close()
            self._file = None


def map_array(path: Path, entry: ArrayEntry) -> Any:  # noqa: ANN401 - an array of any type
    """Map an array read-only; raise SegmentError unless the file has exactly its size."""
    try:
        dtype = np.dtype(entry.dtype)
        size = dtype.itemsize
        for length in entry.shape:
            size *= length
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size != size:
                raise SegmentError(f"{path.name} has the wrong size")
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
        return np.frombuffer(data, dtype=dtype).reshape(entry.shape)
    except (OSError, ValueError, TypeError) as error:
        raise SegmentError(f"{path.name} cannot be read ({error})") from None


MANIFEST = "manifest.json"
VECTORS = "vectors"
BY_ROW = ("ids", "documents", "chunk_ids", "has_vector", "sentence_ends")
CHECKED = (*BY_ROW, "term_ends", "postings_starts")
_READ = 1 << 20  # bytes at once; chosen, not measured
# Bytes of a segment whose sums are all checked when it is opened, about 1 ms for each MB; of a
# larger one the self-check of the server and `carrel doctor` look at all.
MOST_SUMMED = 64 << 20
NAMES = (
    "ids",
    "documents",
    "chunk_ids",
    "has_vector",
    VECTORS,
    "sentences",
    "sentence_norms",
    "sentence_ends",
    "terms",
    "term_ends",
    "postings_starts",
    "postings_rows",
    "postings_scores",
)


class SegmentManifest(BaseModel):
    """Say what a segment holds and under which settings it was built."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    format: Literal[1] = 1
    collection_id: int
    index_version: int
    model: str
    settings: dict[str, float]
    rows: int
    mean_length: float
    arrays: dict[str, ArrayEntry]


def write_arrays(folder: Path, arrays: dict[str, Any]) -> dict[str, ArrayEntry]:
    """Write arrays into the folder, durably, and return their entries."""
    entries = {}
    for name, array in arrays.items():
        sink = FileSink(folder / name)
        sink.append(array)
        sink.close(durable=True)
        entries[name] = sink.entry()
    return entries


def small_arrays(part: IndexedRows, terms: Iterable[bytes]) -> dict[str, Any]:
    """Return the arrays of a part, without its vectors, by file name."""
    assert part.postings is not None  # a segment on disk counts words
    stored = list(terms)
    return {
        "ids": part.ids,
        "documents": part.documents,
        "chunk_ids": part.chunk_ids,
        "has_vector": part.has_vector,
        "sentence_norms": part.sentences.norms,
        "sentence_ends": part.sentences.ends,
        "terms": np.frombuffer(b"".join(stored), dtype=np.uint8),
        "term_ends": np.cumsum([len(term) for term in stored], dtype=np.int64),
        "postings_starts": part.postings.starts,
        "postings_rows": part.postings.rows,
        "postings_scores": part.postings.scores,
    }


def write_manifest(folder: Path, manifest: SegmentManifest) -> None:
    """Write the manifest last, so that a folder without one is known to be unfinished."""
    with (folder / MANIFEST).open("x", encoding="utf-8") as file:
        file.write(manifest.model_dump_json(indent=1))
        file.flush()
        os.fsync(file.fileno())
    for place in (folder, folder.parent):
        sync_folder(place)


def read_manifest(folder: Path) -> SegmentManifest:
    """Return the manifest; raise SegmentError when there is none that can be read."""
    try:
        return SegmentManifest.model_validate_json((folder / MANIFEST).read_bytes())
    except OSError as error:
        raise SegmentError(f"{MANIFEST} cannot be read ({error.strerror})") from None
    except ValidationError:
        raise SegmentError(f"{MANIFEST} is damaged or of another version") from None


def open_part(
    folder: Path, manifest: SegmentManifest, *, sums: bool = False, stored: Stored | None = None
) -> IndexedRows:
    """Map the arrays of a segment; raise SegmentError when anything does not fit.

    With `sums` those of all arrays are checked, where the segment is small enough for that.
    `stored` gives the vectors of rows by their ids where a segment has none.
    """
    entries = manifest.arrays
    try:
        names = [name for name in NAMES if stored is None or name != VECTORS]
        arrays = {name: map_array(folder / name, entries[name]) for name in names}
    except KeyError as error:
        raise SegmentError(f"{MANIFEST} names no {error}") from None
    if sums and sum(array.nbytes for array in arrays.values()) <= MOST_SUMMED:
        if damaged := find_damaged_files(
            folder, manifest
        ):  # not through the map: it would stay there
            raise SegmentError(f"{damaged[0]} is damaged")
    for name in CHECKED:
        if zlib.crc32(arrays[name]) != entries[name].crc:
            raise SegmentError(f"{name} is damaged")
    by_row = BY_ROW if stored else (*BY_ROW, VECTORS)
    if any(len(arrays[name]) != manifest.rows for name in by_row):
        raise SegmentError("the arrays do not belong together")
    return IndexedRows(
        ids=arrays["ids"],
        documents=arrays["documents"],
        chunk_ids=arrays["chunk_ids"],
        vectors=stored(arrays["ids"]) if stored else arrays[VECTORS],
        has_vector=arrays["has_vector"],
        sentences=SentenceVectors(
            arrays["sentences"], arrays["sentence_norms"], arrays["sentence_ends"]
        ),
        postings=Postings(
            SortedTerms(memoryview(arrays["terms"]), arrays["term_ends"]),
            arrays["postings_starts"],
            arrays["postings_rows"],
            arrays["postings_scores"],
            manifest.mean_length,
        ),
    )


def find_damaged_files(folder: Path, manifest: SegmentManifest) -> list[str]:
    """Return the names of the files whose check sum is not that of the manifest."""
    damaged = []
    for name, entry in manifest.arrays.items():
        crc = 0
        try:
            with (folder / name).open("rb") as file:
                while block := file.read(_READ):
                    crc = zlib.crc32(block, crc)
        except OSError:
            crc = -1
        if crc != entry.crc:
            damaged.append(name)
    return damaged
