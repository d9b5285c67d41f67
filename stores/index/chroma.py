"""Vectors in Chroma, through langchain-chroma: in the data directory, or on a Chroma server.

A collection here is one in Chroma, named by the data directory, the collection and the model. The
text of a document in Chroma is the chunk's id: passages stay in the catalogue. Run as a program it
opens a folder and reads it, because a damaged one can end the process that does:
`python -m stores.index.chroma FOLDER`.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import shutil
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import chromadb
from chromadb.api.shared_system_client import SharedSystemClient
from chromadb.config import Settings
from langchain_chroma import Chroma

from core.budget import current_limit
from core.errors import CarrelError
from stores.index.port import IndexUnavailableError, VectorRow, VectorScope
from stores.index.server import no_answer, too_slow
from stores.segments.types import Floats
from stores.sqlite.connections import compact, connect

T = TypeVar("T")
PAGE = 10_000  # rows that are listed at once; chosen, not measured
# Chroma asks SQLite with one variable for each value; SQLite allows 32,766.
MOST = 30_000
REST_S = 10.0  # how long a server that did not answer is left alone; chosen, not measured
PROOF_S = 120.0  # for a process to read a whole folder; chosen, not measured
# Wider than Chroma's own choice (100, 100, 16), which misses more of the nearest (docs/evals).
GRAPH: Any = {"space": "cosine", "ef_search": 400, "ef_construction": 200, "max_neighbors": 32}
BUSY_S = 30.0  # for a lock of Chroma's own catalogue; chosen, not measured
REBUILD = "the catalogue has all of it; `carrel reindex` writes the index again"


class _Vectors:
    """Give langchain-chroma vectors that were made already, by chunk id."""

    def __init__(self, rows: Sequence[VectorRow]) -> None:
        self._vectors = {row.chunk_id: row.vector.tolist() for row in rows}

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self._vectors[text] for text in texts]


class ChromaVectors:
    """Keep vectors in Chroma; nothing is opened before it is needed."""

    def __init__(
        self, folder: Path, url: str, prefix: str, model: str, *, batch: int, timeout_s: float
    ) -> None:
        """Use the server at `url`, or the folder where there is none.

        Names begin with `prefix`; `batch` rows are written at once. A server may take `timeout_s`.
        """
        self._folder = folder
        self.server = url
        self._prefix = f"carrel-{prefix}-"
        self._model = hashlib.sha256(model.encode()).hexdigest()[:8]
        self._batch = batch
        self.timeout_s = timeout_s if url else math.inf
        self._client: Any = None
        self._opened: dict[int, Chroma] = {}
        self._lock = threading.RLock()
        self._gate = threading.Lock()  # held by who waits until no call of the folder runs
        self._calls = threading.Condition()
        self._running = 0
        self._rests_until = 0.0
        self._doubted = False
        self.torn = ""

    def write(self, collection_id: int, rows: Sequence[VectorRow]) -> None:
        for start in range(0, len(rows), self._batch):
            part = rows[start : start + self._batch]

            def put(part: Sequence[VectorRow] = part) -> None:
                ids = [row.chunk_id for row in part]
                kept = [{"row": r.row, "document": r.document, "kind": r.kind} for r in part]
                self._chroma(collection_id, _Vectors(part)).add_texts(ids, kept, ids=ids)

            self._call(put, writes=True)

    def delete(self, collection_id: int, chunk_ids: Sequence[str]) -> None:
        for start in range(0, len(chunk_ids), self._batch):
            part = list(chunk_ids[start : start + self._batch])

            def take(part: list[str] = part) -> None:
                self._chroma(collection_id).delete(part)

            self._call(take, writes=True)

    def search(
        self,
        collection_id: int,
        vector: Floats,
        limit: int,
        scope: VectorScope,
        until: float = math.inf,
    ) -> list[int]:
        limit = min(limit, MOST)
        found: list[tuple[float, int]] = []
        asked = vector.tolist()
        for where in _filters(scope):

            def ask(where: Any = where) -> list[tuple[float, int]]:  # noqa: ANN401
                hits = self._chroma(
                    collection_id
                ).similarity_search_by_vector_with_relevance_scores(asked, limit, filter=where)
                return [(float(gap), int(hit.metadata["row"])) for hit, gap in hits]

            found += self._call(ask, until=until)
        return [row for _, row in sorted(found)[:limit]]

    def count(self, collection_id: int) -> int:
        return int(self._call(lambda: self._chroma(collection_id)._collection.count()))

    def rows(self, collection_id: int) -> Mapping[str, int]:
        found: dict[str, int] = {}
        while True:
            start = len(found)

            def read(start: int = start) -> dict[str, int]:
                chroma = self._chroma(collection_id)
                page = chroma.get(limit=PAGE, offset=start, include=["metadatas"])
                kept = zip(page["ids"], page["metadatas"], strict=True)
                return {str(key): int(meta["row"]) for key, meta in kept}

            found |= self._call(read)
            if len(found) == start:
                return found

    def drop(self, collection_id: int) -> None:
        if self._damage():
            self.clear()
            return
        self._call(lambda: self._drop(f"{self._prefix}{collection_id}-"), writes=True)

    def clear(self) -> None:
        if self.server:
            self._call(lambda: self._drop(self._prefix), writes=True)
            return
        self.close()
        self.torn, self._doubted = "", False
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._folder.is_symlink() or self._folder.is_file():
            self._folder.unlink()

    def doubt(self, reason: str) -> None:
        self.torn, self._doubted = ("", False) if self.server else (reason, not reason)

    def compact(self, wait_s: float) -> None:
        path = self._folder / "chroma.sqlite3"
        if self.server or not path.exists():
            return
        with self._alone():
            with contextlib.closing(connect(path, BUSY_S, foreign=True)) as connection:
                rows = connection.execute("SELECT id FROM segments WHERE scope = 'VECTOR'")
                known = {row[0] for row in rows}
                compact(connection, path, wait_s)
            for folder in self._folder.iterdir():
                if folder.is_dir() and folder.name not in known:
                    shutil.rmtree(folder, ignore_errors=True)
                elif folder.is_dir():
                    _blank(folder)

    def close(self) -> None:
        with self._lock:
            client, self._client, self._opened = self._client, None, {}
        if client is not None:
            _close(client)

    def _drop(self, beginning: str) -> None:
        self._opened = {}
        for one in self._connected().list_collections():
            if one.name.startswith(beginning):
                self._connected().delete_collection(one.name)

    def _chroma(self, collection_id: int, vectors: Any = None) -> Chroma:  # noqa: ANN401
        """Return the LangChain store of a collection, a new one where it is to be written to."""
        with self._lock:
            known = None if vectors else self._opened.get(collection_id)
            if known is None:
                known = Chroma(
                    collection_name=f"{self._prefix}{collection_id}-{self._model}",
                    embedding_function=vectors,
                    client=self._connected(),
                    collection_configuration={"hnsw": GRAPH},
                )
                if not vectors:
                    self._opened[collection_id] = known
            return known

    def _connected(self) -> Any:  # noqa: ANN401 - chromadb's own type
        with self._lock:
            if self._client is None:
                quiet = Settings(anonymized_telemetry=False)
                if self.server:
                    parts = urlsplit(self.server)
                    secure = parts.scheme == "https"
                    self._client = chromadb.HttpClient(
                        host=parts.hostname or "localhost",
                        port=parts.port or (443 if secure else 8000),
                        ssl=secure,
                        settings=quiet,
                    )
                else:
                    if reason := self._damage():
                        raise _damaged(reason)
                    self._client = chromadb.PersistentClient(str(self._folder), settings=quiet)
            return self._client

    def _damage(self) -> str:
        """Prove a folder that is doubted; return what is wrong with it, "" for nothing."""
        with self._lock:
            if self._doubted:
                self.torn, self._doubted = _prove(self._folder), False
            return self.torn

    def _call(self, ask: Callable[[], T], *, writes: bool = False, until: float = math.inf) -> T:
        """Ask Chroma; whatever it raises becomes one line that says what to do."""
        try:
            if self.server:
                return self._in_time(ask, until)
            with self._counted():
                return ask()
        except (CarrelError, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # Chroma's Rust part raises what is no Exception
            self.close()
            if self.server:
                raise no_answer(self.server, error) from None
            # Chroma hands a client that failed to start to the next that asks for the folder.
            SharedSystemClient._identifier_to_system.pop(str(self._folder), None)
            if writes:  # on a full disk that tears its files for good
                self.torn = f"a write to it failed ({type(error).__name__}: {error})"
            raise _damaged(f"{type(error).__name__}: {error}") from None

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        with self._gate, self._calls:
            self._running += 1
        try:
            yield
        finally:
            with self._calls:
                self._running -= 1
                self._calls.notify_all()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Close the folder until this ends: one process must not open a file by two SQLites.

        The second to let go of it takes the locks of the first with it
        (https://www.sqlite.org/howtocorrupt.html, 2.2.1).
        """
        with self._gate, self._calls:
            self._calls.wait_for(lambda: not self._running)
            self.close()
            yield

    def _in_time(self, ask: Callable[[], T], until: float) -> T:
        """Ask on a thread of its own, until the caller's time is up: Chroma's client waits on."""
        caller = current_limit()
        if caller.is_up():
            raise caller.error()
        if time.monotonic() < self._rests_until:
            raise self._late(" a moment ago")
        done: list[T] = []
        failed: list[BaseException] = []

        def run() -> None:
            try:
                done.append(ask())
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=run, name="chroma", daemon=True)
        thread.start()
        left = caller.until - time.monotonic()
        own = min(self.timeout_s, until - time.monotonic())
        thread.join(max(0.0, min(own, left)))
        if thread.is_alive():
            client, self._opened, self._client = self._client, {}, None
            self._lock = threading.RLock()
            if client is not None:
                _close(client)  # which ends the request as well
            if left < own:
                raise caller.error()
            self._rests_until = time.monotonic() + REST_S
            raise self._late()
        if failed:
            raise failed[0]
        return done[0]

    def _late(self, when: str = "") -> IndexUnavailableError:
        return too_slow(self.server, f"it did not within {self.timeout_s:g} s{when}")


def _close(client: Any) -> None:  # noqa: ANN401 - chromadb's own type
    both = (client, getattr(client, "_admin_client", None))
    sessions = [getattr(getattr(one, "_server", None), "_session", None) for one in both]
    with contextlib.suppress(Exception):
        client.close()
    for session in filter(None, sessions):  # of a server, which Chroma leaves open
        session.close()


def _filters(scope: VectorScope) -> Iterator[dict[str, Any] | None]:
    """Yield the filters of the searches that together cover a scope."""
    kinds = [{"kind": {"$in": list(scope.kinds)}}] if scope.kinds else []
    hidden = [{"document": {"$nin": list(scope.hidden)}}] if scope.hidden else []
    if scope.documents is None:
        yield _joined([*hidden, *kinds])
        return
    for start in range(0, len(scope.documents), MOST):
        some = list(scope.documents[start : start + MOST])
        yield _joined([{"document": {"$in": some}}, *hidden, *kinds])


def _blank(folder: Path) -> None:
    """Write zeros to the places of a graph that no vector has taken.

    Chroma makes its files from memory as it finds it, with words of documents that were there; so
    it does again when it next opens a graph that it has not written yet (fewer than 1,000 rows).
    """
    try:
        header = (folder / "header.bin").read_bytes()
        # hnswlib's saveIndex: version, offset, places, places taken, bytes of a place
        _, _, places, taken, size = struct.unpack_from("<iQQQQ", header)
    except (FileNotFoundError, struct.error):
        return  # nothing was written yet, or it is damaged, as the next opening says
    for path, width in ((folder / "data_level0.bin", size), (folder / "length.bin", 4)):
        if path.exists() and taken < places and path.stat().st_size == places * width:
            with path.open("r+b") as file:
                file.seek(taken * width)
                file.write(bytes((places - taken) * width))


def _joined(conditions: list[dict[str, Any]]) -> dict[str, Any] | None:
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return {"$and": conditions}


def _damaged(reason: str) -> IndexUnavailableError:
    return IndexUnavailableError(
        "the vector index is damaged or cannot be written", value=reason, hint=REBUILD
    )


def _prove(folder: Path) -> str:
    """Let another process open and read a folder; return what is wrong, "" for nothing."""
    if not folder.exists():
        return ""
    command = [sys.executable, "-m", "stores.index.chroma", str(folder)]
    try:
        child = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=PROOF_S,
            cwd=Path(__file__).resolve().parents[2],
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {PROOF_S:g} s"
    if child.returncode:
        last = (child.stderr.strip().splitlines() or [""])[-1]
        return f"opening it ended a process ({last or f'exit code {child.returncode}'})"
    return ""


def _read_everything(folder: str) -> None:
    """Count each collection and search it by vectors of its own."""
    client = chromadb.PersistentClient(folder, settings=Settings(anonymized_telemetry=False))
    for collection in client.list_collections():
        if collection.count():
            own = collection.get(limit=20, include=["embeddings"])["embeddings"]
            collection.query(query_embeddings=own, n_results=1)


if __name__ == "__main__":
    _read_everything(sys.argv[1])
