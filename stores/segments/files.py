"""A segment on disk: raw arrays and a manifest that says what they must be.

Arrays are memory-mapped, so that opening reads only what is checked. Sizes are checked at opening
and so are the sums: of all arrays where they are small, else of those that say where things are.
`damaged_files` checks every sum.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from stores.segments.arrays import ArrayEntry, FileSink, SegmentError, mapped
from stores.segments.postings import Postings
from stores.segments.sentences import SentenceVectors
from stores.segments.terms import SortedTerms
from stores.segments.types import Part

MANIFEST = "manifest.json"
BY_ROW = ("ids", "documents", "chunk_ids", "has_vector", "sentence_ends")
CHECKED = (*BY_ROW, "term_ends", "postings_starts")
_READ = 1 << 20
# Bytes of a segment whose sums are all checked when it is opened, about 1 ms for each MB; of a
# larger one the self-check of the server and `carrel doctor` look at all.
MOST_SUMMED = 64 << 20
NAMES = (
    "ids",
    "documents",
    "chunk_ids",
    "has_vector",
    "vectors",
    "sentences",
    "sentence_norms",
    "sentence_ends",
    "terms",
    "term_ends",
    "postings_starts",
    "postings_rows",
    "postings_scores",
)


class Manifest(BaseModel):
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


def small_arrays(part: Part, terms: Iterable[bytes]) -> dict[str, Any]:
    """Return the arrays of a part, without its vectors, by file name."""
    import numpy as np

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


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest last, so that a folder without one is known to be unfinished."""
    with (folder / MANIFEST).open("x", encoding="utf-8") as file:
        file.write(manifest.model_dump_json(indent=1))
        file.flush()
        os.fsync(file.fileno())
    for place in (folder, folder.parent):
        sync_folder(place)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the system has that notion."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        return
    finally:
        os.close(descriptor)


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest; raise SegmentError when there is none that can be read."""
    try:
        return Manifest.model_validate_json((folder / MANIFEST).read_bytes())
    except OSError as error:
        raise SegmentError(f"{MANIFEST} cannot be read ({error.strerror})") from None
    except ValidationError:
        raise SegmentError(f"{MANIFEST} is damaged or of another version") from None


def open_part(folder: Path, manifest: Manifest, *, sums: bool = False) -> Part:
    """Map the arrays of a segment; raise SegmentError when anything does not fit.

    With `sums` those of all arrays are checked, where the segment is small enough for that.
    """
    entries = manifest.arrays
    try:
        arrays = {name: mapped(folder / name, entries[name]) for name in NAMES}
    except KeyError as error:
        raise SegmentError(f"{MANIFEST} names no {error}") from None
    if sums and sum(array.nbytes for array in arrays.values()) <= MOST_SUMMED:
        if damaged := damaged_files(folder, manifest):  # not through the map: it would stay there
            raise SegmentError(f"{damaged[0]} is damaged")
    for name in CHECKED:
        if zlib.crc32(arrays[name]) != entries[name].crc:
            raise SegmentError(f"{name} is damaged")
    if any(len(arrays[name]) != manifest.rows for name in (*BY_ROW, "vectors")):
        raise SegmentError("the arrays do not belong together")
    return Part(
        ids=arrays["ids"],
        documents=arrays["documents"],
        chunk_ids=arrays["chunk_ids"],
        vectors=arrays["vectors"],
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


def damaged_files(folder: Path, manifest: Manifest) -> list[str]:
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
