"""What a search asks of an index, and what an index asks of a place for vectors.

A search index is made of the catalogue and can be made again from it. Every index counts words in
the same arrays (`stores.segments`); implementations differ in where the vectors lie: `memmap` keeps
them in those arrays, any other in a `VectorIndex`. At no time are there two copies beside the
catalogue's own.
"""

from __future__ import annotations

from collections.abc import Collection as AbstractCollection
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from core.errors import OperatorError

if TYPE_CHECKING:
    from core.auth import AuthContext
    from stores.segments.channels import Links, Name
    from stores.segments.types import Candidates, Floats, Progress
    from stores.sqlite.catalogue import Collection


class IndexUnavailableError(OperatorError):
    """Say that a place for vectors does not answer, or not as it must; the catalogue has all."""

    retryable = True


@dataclass(frozen=True)
class VectorRow:
    """Hold what a vector index keeps of one chunk: ids, what searches are narrowed by, a vector."""

    chunk_id: str
    row: int
    document: int
    kind: str
    vector: Floats


@dataclass(frozen=True)
class VectorScope:
    """Say what a search may find: chunks of `documents` but not of `hidden` ones, of `kinds`.

    `documents` is None for all; an empty `kinds` allows every kind.
    """

    documents: Sequence[int] | None = None
    hidden: Sequence[int] = ()
    kinds: Sequence[str] = ()


class VectorIndex(Protocol):
    """Keep the vectors of collections and find the nearest ones.

    Every method may raise IndexUnavailableError, whose line says what to do. `torn` says why files
    must not be opened, "" for no reason; `server` is the address of a server that has the vectors,
    "" for none; `timeout_s` is how long all requests of one search may take.
    """

    torn: str
    server: str
    timeout_s: float

    def write(self, collection_id: int, rows: Sequence[VectorRow]) -> None:
        """Keep vectors by chunk id; one that is there already is replaced."""

    def delete(self, collection_id: int, chunk_ids: Sequence[str]) -> None:
        """Forget chunks; unknown ids are ignored."""

    def search(
        self, collection_id: int, vector: Floats, limit: int, scope: VectorScope, until: float = ...
    ) -> list[int]:
        """Return the row ids of up to `limit` chunks within the scope, nearest first.

        Fewer than `limit` mean that the scope has no more, or that the index cannot look further.
        A server is not waited for after `until`, by `time.monotonic()`.
        """

    def count(self, collection_id: int) -> int:
        """Count the chunks of a collection."""

    def rows(self, collection_id: int) -> Mapping[str, int]:
        """Return the row id of every chunk of a collection, by chunk id."""

    def drop(self, collection_id: int) -> None:
        """Remove a collection with everything that was in it."""

    def clear(self) -> None:
        """Remove all collections of this data directory."""

    def doubt(self, reason: str) -> None:
        """Take files for damaged for a reason; without one have them proved before their use."""

    def compact(self, wait_s: float) -> None:
        """Take what was deleted out of files, as far as they are in the data directory."""

    def close(self) -> None:
        """Let go of files and connections."""


class SearchIndex(Protocol):
    """Find chunks of a collection by words and by vectors, among those that a caller may see.

    What was written to the catalogue is found by the next search, what was deleted by none.
    `folders` are those of a data directory that it may use.
    """

    folders: tuple[str, ...]

    def candidates(
        self,
        auth: AuthContext,
        collection_id: int,
        *,
        terms: Sequence[AbstractCollection[str]],
        vector: Floats | None,
        pool: int,
        sources: Sequence[str] = (),
        kinds: Sequence[str] = (),
        term_weights: Sequence[float] | None = None,
    ) -> Candidates:
        """Return the `pool` best visible chunks by words and by vector, with all their scores.

        `terms` are the alternatives for each word of the question; an indexed one adds its score
        once, times the largest of its groups' `term_weights`. `vector` has length 1.
        """

    def links(
        self,
        auth: AuthContext,
        collection_id: int,
        *,
        names: Sequence[Name],
        words: Sequence[AbstractCollection[str]],
        seeds: Sequence[str],
        limit: int,
        sources: Sequence[str] = (),
        kinds: Sequence[str] = (),
    ) -> Links | None:
        """Return the visible chunks that say these names, None where that is not known now."""

    def vectors(self, collection_id: int, chunk_ids: Sequence[str]) -> Floats:
        """Return vectors of shape (len(chunk_ids), dimension), NaN rows for those without one."""

    def sentence_vectors(self, collection_id: int, chunk_ids: Sequence[str]) -> dict[str, Floats]:
        """Return the unit vectors of the sentences of chunks, in their order, by chunk id.

        What the view does not hold is left out; of a single sentence it is the chunk's own vector.
        """

    def languages(self, collection_id: int) -> frozenset[str]:
        """Return the languages of a collection's documents."""

    def models(self, collection_id: int) -> tuple[str, ...]:
        """Return the models of a collection's vectors, the index's own alone where it has any."""

    def idf(self, collection_id: int, terms: Sequence[str]) -> dict[str, float]:
        """Return log(1 + N/(1 + df)) of each term over the collection's chunks."""

    def shares(self, collection_id: int, terms: Sequence[str]) -> dict[str, float]:
        """Return in which share of the collection's chunks each term occurs, 0..1."""

    def write_new(self, collection_id: int) -> None:
        """Take over what is new in the catalogue, as far as searches need it at once."""

    def refresh(self, collection: Collection, progress: Progress | None = None) -> bool:
        """Bring the index up to date where that is worth it; return whether files were built."""

    def refresh_in_background(self, collection: Collection) -> None:
        """Do what `refresh` does on another thread."""

    def rebuild(self, collection: Collection, progress: Progress | None = None) -> bool:
        """Make the index of a collection again; return False for one too small for files."""

    def erase(self, collection: Collection, progress: Progress | None = None) -> None:
        """Write the index of a collection again, so that nothing deleted is left in its files."""

    def remove(self, collection_id: int) -> None:
        """Forget a collection that is gone, in memory and on disk."""

    def problems(self, collections: Sequence[Collection]) -> list[str]:
        """Compare the index with its check sums and the catalogue; say what to do."""

    def doubt(self, reason: str) -> None:
        """Take files of vectors for damaged for a reason; without one have them proved first."""

    @property
    def server(self) -> str:
        """Return the address of a server that has the vectors, "" for none."""

    def check_server(self, collection: Collection) -> None:
        """Raise IndexUnavailableError where a server that has the vectors does not answer."""

    def warnings(self) -> list[str]:
        """Say why the last search by vector had to do without the index."""

    def close(self) -> None:
        """Stop working and let go of the files."""
