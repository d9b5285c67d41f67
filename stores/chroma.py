"""Chroma: the derived vector index, one Chroma collection per collection and model.

Everything in it can be rebuilt from the catalogue. It is opened only when something needs it,
and only by the process that owns the data directory.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from core.errors import OperatorError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]
else:
    Vector = Any

OVERFETCH = 4
# Chroma asks SQLite for all that it found with one variable for each; SQLite allows 32,766.
MOST = 30_000
TORN, UNPROVED = "torn", "unproved"
DAMAGED = "the vector index is damaged or cannot be written"
REBUILD = "the documents are safe in the catalogue; check free disk, then `carrel reindex`"


class ChromaVectors:
    """Write, search and count vectors; raise OperatorError when the index is damaged."""

    def __init__(self, folder: Path, model: str, *, batch: int) -> None:
        """Use `folder` for the index; nothing is opened yet. `batch` rows are written at once."""
        self._folder = folder
        self._model = hashlib.sha256(model.encode()).hexdigest()[:8]
        self._batch = batch
        self._doubt: Callable[[], str] | None = None
        self._torn_by = ""
        self._client: Any = None  # chromadb's Client, whose protocol lacks close()

    def distrust(self, prove: Callable[[], str]) -> None:
        """Have the index proved before it is next opened here; `prove` returns a reason or ""."""
        self._doubt = prove

    def condemn(self, reason: str) -> None:
        """Note that the index is not to be opened, whatever it seems to know."""
        self._torn_by, self._doubt = reason, lambda: reason

    def trust(self) -> None:
        """Note that the index was proved."""
        self._doubt, self._torn_by = None, ""

    @property
    def torn(self) -> str:
        """Return why the index is known to be damaged, "" when it is not known to be."""
        return self._torn_by

    @property
    def doubted(self) -> str:
        """Return TORN or UNPROVED when the index has still to be proved, "" otherwise."""
        if self._torn_by:
            return TORN
        return UNPROVED if self._doubt is not None else ""

    def unsound(self) -> str:
        """Prove the index when it is doubted; return what is wrong with it, "" for nothing."""
        if self._doubt is None:
            return ""
        reason = self._doubt()
        if reason:
            self._torn_by, self._doubt = reason, lambda: reason
        else:
            self.trust()
        return reason

    def client(self) -> Any:  # noqa: ANN401 - chromadb's own type
        """Open the index with telemetry off, never one that was found damaged."""
        if self._client is None and (reason := self.unsound()):
            raise OperatorError(DAMAGED, value=reason, hint=REBUILD)
        if self._client is None:
            import chromadb
            from chromadb.config import Settings

            try:
                self._client = chromadb.PersistentClient(
                    str(self._folder), settings=Settings(anonymized_telemetry=False)
                )
            except BaseException as error:
                self._forget_half_started()
                raise _rebuildable(error) from error
        return self._client

    def _forget_half_started(self) -> None:
        """Chroma hands a client that failed to start to the next one that asks for the folder."""
        from chromadb.api.shared_system_client import SharedSystemClient

        SharedSystemClient._identifier_to_system.pop(str(self._folder), None)

    def _collection(self, collection_id: int) -> Any:  # noqa: ANN401 - chromadb's own type
        name = f"collection-{int(collection_id)}-{self._model}"
        return self.client().get_or_create_collection(
            name, metadata={"hnsw:space": "cosine"}, embedding_function=None
        )

    def upsert(
        self,
        collection_id: int,
        vectors: Mapping[str, Vector],
        documents: Mapping[str, int],
        kinds: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Write vectors by chunk id, with the document row id that permissions are checked on.

        `kinds` tell annotations from content.
        """
        try:
            collection = self._collection(collection_id)
            ids = list(vectors)
            for start in range(0, len(ids), self._batch):
                part = ids[start : start + self._batch]
                collection.upsert(
                    ids=part,
                    embeddings=[vectors[key] for key in part],
                    metadatas=[
                        {"document": documents[key], "kind": kinds.get(key, "text")} for key in part
                    ],
                )
        except Exception as error:
            raise self._torn(error) from error

    def _torn(self, error: Exception) -> OperatorError:
        """Note that a write failed: on a full disk that tears the index for good."""
        explained = _rebuildable(error)
        self._torn_by = f"a write to it failed ({explained.value})"
        self._doubt = lambda: self._torn_by
        self._client, client = None, self._client
        if client is not None:
            with contextlib.suppress(Exception):
                client.close()
        return explained

    def delete(self, collection_id: int, chunk_ids: Sequence[str]) -> None:
        """Forget chunks by id; unknown ids are ignored."""
        try:
            collection = self._collection(collection_id)
            for start in range(0, len(chunk_ids), self._batch):
                collection.delete(ids=list(chunk_ids[start : start + self._batch]))
        except Exception as error:
            raise self._torn(error) from error

    def stored(
        self, collection_id: int, chunk_ids: Sequence[str] | None
    ) -> dict[str, tuple[Vector, int]]:
        """Return the vector and document row id of those of these chunks that are there, or all."""
        try:
            found = self._collection(collection_id).get(
                ids=None if chunk_ids is None else list(chunk_ids),
                include=["embeddings", "metadatas"],
            )
            rows = zip(found["ids"], found["embeddings"], found["metadatas"], strict=True)
            return {key: (vector, int(meta["document"])) for key, vector, meta in rows}
        except Exception as error:
            raise _rebuildable(error) from error

    def count(self, collection_id: int) -> int:
        """Count the vectors of a collection."""
        try:
            return int(self._collection(collection_id).count())
        except Exception as error:
            raise _rebuildable(error) from error

    def ids(self, collection_id: int) -> list[str]:
        """Return the chunk ids of a collection."""
        try:
            return list(self._collection(collection_id).get(include=[])["ids"])
        except Exception as error:
            raise _rebuildable(error) from error

    def exists(self) -> bool:
        """Tell whether there is an index at all."""
        return self._folder.exists()

    def search(
        self, collection_id: int, vector: Vector, limit: int, visible: set[int], version: int
    ) -> list[tuple[str, float]]:
        """Return (chunk id, cosine) pairs of visible documents, best first.

        Filters inside Chroma cost 250 to 460 ms at 100,000 vectors, so more is fetched than asked
        for and filtered here, doubling until enough is visible or everything has been seen. Raises
        OperatorError where that would be too much.
        """
        if not visible or limit < 1:
            return []
        try:
            collection = self._collection(collection_id)
            total = collection.count()
            wanted = limit * OVERFETCH
            while True:
                wanted = min(wanted, total, MOST)
                pairs = _visible_pairs(collection, vector, wanted, visible) if wanted else []
                if len(pairs) >= limit or wanted == total:
                    return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:limit]
                if wanted == MOST:
                    raise OperatorError(
                        "the vector index is asked where many of the nearest vectors may be seen",
                        value=f"{len(pairs)} of {MOST}",
                    )
                wanted *= 2
        except Exception as error:
            raise _rebuildable(error) from error

    def knows(self, collection_id: int, vector: Vector, chunk_id: str) -> bool:
        """Tell whether a chunk is found by its own vector, looking further where others are near.

        An approximate index may miss what is nearest among few, but not among many.
        """
        try:
            collection = self._collection(collection_id)
            most, wanted = min(collection.count(), MOST), 0
            while wanted < most:
                wanted = min(max(1, wanted) * OVERFETCH, most)
                found = collection.query(query_embeddings=[vector], n_results=wanted, include=[])
                if chunk_id in found["ids"][0]:
                    return True
            return False
        except Exception as error:
            raise _rebuildable(error) from error

    def drop(self) -> None:
        """Remove the whole index from disk, so that it can be rebuilt."""
        if self._client is not None:
            self._client.close()
            self._client = None
        self.trust()
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._folder.is_symlink() or self._folder.is_file():
            self._folder.unlink()

    def close(self) -> None:
        """Let go of the files."""
        if self._client is not None:
            self._client.close()
            self._client = None


def _visible_pairs(
    collection: Any,  # noqa: ANN401 - chromadb's own type
    vector: Vector,
    wanted: int,
    visible: set[int],
) -> list[tuple[str, float]]:
    found = collection.query(
        query_embeddings=[vector], n_results=wanted, include=["metadatas", "distances"]
    )
    rows = zip(found["ids"][0], found["metadatas"][0], found["distances"][0], strict=True)
    return [(key, 1.0 - float(gap)) for key, meta, gap in rows if meta["document"] in visible]


def _rebuildable(error: BaseException) -> OperatorError:
    if isinstance(error, KeyboardInterrupt | SystemExit):
        raise error
    if isinstance(error, OperatorError):
        return error
    return OperatorError(
        DAMAGED,
        value=f"{type(error).__name__}: {error}",
        hint=REBUILD,
    )
