"""Vectors in Milvus, through pymilvus: in a file of milvus-lite, or on a server.

One Milvus collection has the vectors of one model of a whole data directory. Its partition key is
the tenant; the collection, the documents and the kinds that a caller may see are a filter inside
each search. Passages stay in the catalogue. A file is milvus-lite in this process, which is a
folder to the file system, and serves this process alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import math
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from milvus_lite.adapter.grpc.server import start_server_in_thread
from milvus_lite.exceptions import DataDirLockedError
from pymilvus import DataType, MilvusClient, MilvusException
from pymilvus.client import grpc_handler

from core.budget import current_limit
from core.errors import CarrelError
from stores.index.port import IndexUnavailableError, VectorRow, VectorScope
from stores.segments.types import Floats

T = TypeVar("T")
RpcError: type[Exception] = grpc_handler.grpc.RpcError  # which a slow server lets through
FIRST, LAST = (2, 4), (3, 99)  # versions of Milvus whose filters and partition keys are these
PAGE = 1000  # rows that are read at once; Milvus allows 16,384, in 64 MB with their vectors
MOST = 16_384  # hits of one search, and documents that one filter names; Milvus allows no more hits
REST_S = 10.0  # how long a server that did not answer is left alone; chosen, not measured
NAME_BYTES = 512  # of ids, tenants and kinds; Milvus allows 65,535
# As Chroma's here (stores.index.chroma), so that both miss as little of the nearest.
GRAPH = {"M": 32, "efConstruction": 200}
REACH = 400  # candidates of the graph that a search looks at, at least
REBUILD = "the catalogue has all of it; `carrel reindex` writes the index again"
HINT = "see milvus.uri and chroma.timeout_s, or `carrel reindex --index memmap` does without it"
SERVE = (
    "a file serves one process: run `milvus-lite server` on it and give all of them its address"
    " as milvus.uri"
)
_VERSION = re.compile(r"(\d+)\.(\d+)")


def is_server(uri: str) -> bool:
    """Tell whether this is the address of a server, not the path of a file."""
    return uri.startswith(("http://", "https://"))


class MilvusVectors:
    """Keep vectors in Milvus; nothing is opened before it is needed."""

    def __init__(
        self,
        uri: str,
        folder: Path,
        prefix: str,
        model: str,
        *,
        tenant_of: Callable[[int], str],
        batch: int,
        timeout_s: float,
    ) -> None:
        """Use the server or the file at `uri`, or the folder where it is empty.

        Names begin with `prefix`; `batch` rows are written at once. A server may take `timeout_s`.
        """
        self.server = uri if is_server(uri) else ""
        self._own = not uri
        self._file = folder if self._own else Path(uri)
        self._prefix = f"carrel_{prefix}_"
        self._name = self._prefix + hashlib.sha256(model.encode()).hexdigest()[:8]
        self._tenant_of, self._batch = tenant_of, batch
        self.timeout_s = timeout_s if self.server else math.inf
        self._client: Any = None
        self._engine: Any = None  # of a file: what answers, and what it answers from
        self._there = False
        self._lock = threading.RLock()  # of the client, and of a file for every call
        self._rests_until = 0.0
        self.torn = ""

    def write(self, collection_id: int, rows: Sequence[VectorRow]) -> None:
        tenant = self._tenant_of(collection_id)
        for start in range(0, len(rows), self._batch):
            part = [
                {
                    "id": one.chunk_id,
                    "tenant": tenant,
                    "collection": collection_id,
                    "row": one.row,
                    "document": one.document,
                    "kind": one.kind,
                    "vector": one.vector.tolist(),
                }
                for one in rows[start : start + self._batch]
            ]

            def put(client: Any, wait: float | None, part: Any = part) -> None:  # noqa: ANN401
                if not self._is_there(client, wait):
                    self._make(client, len(part[0]["vector"]), wait)
                client.upsert(self._name, part, timeout=wait)
                if not self.server:  # 5,000 rows: 196 ms a search before, 28 after (n = 15)
                    client.flush(self._name)

            self._call(put)

    def delete(self, collection_id: int, chunk_ids: Sequence[str]) -> None:
        for start in range(0, len(chunk_ids), self._batch):
            part = list(chunk_ids[start : start + self._batch])

            def take(client: Any, wait: float | None, part: list[str] = part) -> None:  # noqa: ANN401
                if self._is_there(client, wait):
                    client.delete(self._name, ids=part, timeout=wait)

            self._call(take)

    def search(
        self,
        collection_id: int,
        vector: Floats,
        limit: int,
        scope: VectorScope,
        until: float = math.inf,
    ) -> list[int]:
        limit, asked = min(limit, MOST), vector.tolist()
        own = self._within(collection_id)
        found: list[tuple[float, int]] = []
        for where in _filters(scope):

            def ask(client: Any, wait: float | None, where: str = where) -> Any:  # noqa: ANN401
                if not self._is_there(client, wait):
                    return []
                [hits] = client.search(
                    self._name,
                    data=[asked],
                    limit=limit,
                    filter=" and ".join(filter(None, (own, where))),
                    output_fields=["row"],
                    search_params={"params": {"ef": max(REACH, limit)}},
                    timeout=wait,
                )
                return [(-float(hit["distance"]), int(hit["entity"]["row"])) for hit in hits]

            found += self._call(ask, until)
        return [row for _, row in sorted(found)[:limit]]

    def count(self, collection_id: int) -> int:
        own = self._within(collection_id)

        def ask(client: Any, wait: float | None) -> int:  # noqa: ANN401
            if not self._is_there(client, wait):
                return 0
            fields = ["count(*)"]
            [row] = client.query(self._name, filter=own, output_fields=fields, timeout=wait)
            return int(row["count(*)"])

        return self._call(ask)

    def rows(self, collection_id: int) -> Mapping[str, int]:
        own = self._within(collection_id)

        def read(client: Any, wait: float | None) -> dict[str, int]:  # noqa: ANN401
            pages = self._pages(client, self._name, own, ["id", "row"], wait)
            return {str(one["id"]): int(one["row"]) for page in pages for one in page}

        return self._call(read)

    def drop(self, collection_id: int) -> None:
        def take(client: Any, wait: float | None) -> None:  # noqa: ANN401
            for name in self._names(client, wait):  # of earlier models as well
                client.load_collection(name, timeout=wait)
                client.delete(name, filter=f"collection == {collection_id}", timeout=wait)

        try:
            self._call(take)
        except IndexUnavailableError:
            if not self.torn:
                raise
            self.clear()

    def clear(self) -> None:
        self.torn = ""
        if self._own:
            self.close()
            shutil.rmtree(self._file, ignore_errors=True)
            if self._file.is_symlink() or self._file.is_file():
                self._file.unlink()
            return

        def take(client: Any, wait: float | None) -> None:  # noqa: ANN401
            self._there = False
            for name in self._names(client, wait):
                client.drop_collection(name, timeout=wait)

        self._call(take)

    def doubt(self, reason: str) -> None:
        self.torn = "" if self.server else reason

    def compact(self, wait_s: float) -> None:
        """Write what lives of a file to it again: milvus-lite keeps what was deleted for long."""
        if self.server or not self._file.exists() or self.torn:
            return

        def rewrite(client: Any, wait: float | None) -> None:  # noqa: ANN401
            for name in self._names(client, wait):
                client.load_collection(name, timeout=wait)
                pages = list(self._pages(client, name, "", ["*"], wait))
                client.drop_collection(name, timeout=wait)
                self._there = False
                for page in pages if name == self._name else []:  # none of an earlier model
                    if not self._there:
                        self._make(client, len(page[0]["vector"]), wait)
                    client.upsert(name, page, timeout=wait)

        self._call(rewrite)

    def close(self) -> None:
        with self._lock:
            client, self._client, self._there = self._client, None, False
            engine, self._engine = self._engine, None
            if client is not None:
                with contextlib.suppress(Exception):
                    client.close()
            if engine is not None:
                server, database = engine
                server.stop(grace=None).wait()
                database.close()

    def _within(self, collection_id: int) -> str:
        """Return the filter of a collection; its tenant's partition alone is looked into."""
        tenant = json.dumps(self._tenant_of(collection_id), ensure_ascii=False)
        return f"tenant == {tenant} and collection == {collection_id}"

    def _names(self, client: Any, wait: float | None) -> list[str]:  # noqa: ANN401
        found = client.list_collections(timeout=wait)
        return [name for name in found if name.startswith(self._prefix)]

    def _is_there(self, client: Any, wait: float | None) -> bool:  # noqa: ANN401
        if not self._there and client.has_collection(self._name, timeout=wait):
            client.load_collection(self._name, timeout=wait)
            self._there = True
        return self._there

    def _make(self, client: Any, dimension: int, wait: float | None) -> None:  # noqa: ANN401
        schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
        text = {"datatype": DataType.VARCHAR, "max_length": NAME_BYTES}
        schema.add_field("id", is_primary=True, **text)
        schema.add_field("tenant", is_partition_key=True, **text)
        for name in ("collection", "row", "document"):
            schema.add_field(name, DataType.INT64)
        schema.add_field("kind", **text)
        schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dimension)
        index = client.prepare_index_params()
        index.add_index("vector", index_type="HNSW", metric_type="COSINE", params=GRAPH)
        client.create_collection(
            self._name,
            schema=schema,
            index_params=index,
            consistency_level="Strong",  # what was written is found, what was deleted is not
            timeout=wait,
        )
        self._there = True

    def _pages(
        self,
        client: Any,  # noqa: ANN401
        name: str,
        where: str,
        fields: list[str],
        wait: float | None,
    ) -> Iterator[list[dict[str, Any]]]:
        if name == self._name and not self._is_there(client, wait):
            return
        pages = client.query_iterator(
            name, batch_size=PAGE, filter=where, output_fields=fields, timeout=wait
        )
        try:
            while page := pages.next():
                yield [dict(one) for one in page]
        finally:
            pages.close()

    def _call(self, ask: Callable[[Any, float | None], T], until: float = math.inf) -> T:
        """Ask Milvus; whatever it raises becomes one line that says what to do."""
        if self.torn:
            raise _unavailable("the vector index is damaged", self.torn, REBUILD)
        try:
            if self.server:
                wait = self._left(until)
                return ask(self._connected(wait), wait)
            with self._lock:  # also while a file is written again
                return ask(self._connected(None), None)
        except CarrelError:
            raise
        except (MilvusException, RpcError, OSError, ValueError, RuntimeError) as error:
            self.close()
            raise self._failed(error) from None

    def _left(self, until: float) -> float:
        """Return the seconds that a request may take; raise where there are none."""
        caller, now = current_limit(), time.monotonic()
        if caller.is_up():
            raise caller.error()
        if now < self._rests_until:
            raise self._late(" a moment ago")
        return max(0.001, min(self.timeout_s, until - now, caller.until - now))

    def _failed(self, error: Exception) -> IndexUnavailableError:
        reason = " ".join(str(getattr(error, "message", "") or error).split())
        if not self.server:
            self.torn = reason
            return _unavailable("the vector index is damaged or cannot be written", reason, REBUILD)
        if current_limit().is_up():
            raise current_limit().error()
        late = "DEADLINE_EXCEEDED" in reason or "timeout" in reason.lower()
        if late or "connect" in reason.lower():
            self._rests_until = time.monotonic() + REST_S
        if late and "connect" not in reason.lower():
            return self._late()
        away = "was not reached" if "connect" in reason.lower() else "answered with an error"
        return _unavailable(f"the Milvus server {away}", f"{self.server} ({reason})", HINT)

    def _late(self, when: str = "") -> IndexUnavailableError:
        reason = f"{self.server} (it did not within {self.timeout_s:g} s{when})"
        return _unavailable("the Milvus server must answer in time", reason, HINT)

    def _connected(self, wait: float | None) -> Any:  # noqa: ANN401 - pymilvus' own type
        with self._lock:
            if self._client is None:
                for name in ("pymilvus", "grpc"):  # which write errors to stderr, with tracebacks
                    logging.getLogger(name).setLevel(logging.CRITICAL)
                uri = self.server or self._started()
                self._client = MilvusClient(uri=uri, timeout=wait, dedicated=True)
                if self.server:
                    self._check_version(self._client.get_server_version(timeout=wait))
            return self._client

    def _started(self) -> str:
        """Serve the file in this process; return the address."""
        try:
            server, database, port = start_server_in_thread(str(self._file))
        except DataDirLockedError:
            raise _unavailable(
                "the file of Milvus is open in another process", str(self._file), SERVE
            ) from None
        self._engine = (server, database)
        return f"http://127.0.0.1:{port}"

    def _check_version(self, version: str) -> None:
        found = _VERSION.search(version)
        if found is None or not FIRST <= (int(found[1]), int(found[2])) <= LAST:
            raise _unavailable(
                f"Carrel knows Milvus {FIRST[0]}.{FIRST[1]} to {LAST[0]}",
                f"{self.server} is {version or 'of no version'}",
                HINT,
            )


def _filters(scope: VectorScope) -> Iterator[str]:
    """Yield the filters of the searches that together cover a scope."""
    rest = [f"kind in {json.dumps(list(scope.kinds))}"] if scope.kinds else []
    rest += [f"document not in {list(scope.hidden)}"] if scope.hidden else []
    if scope.documents is None:
        yield " and ".join(rest)
        return
    for start in range(0, len(scope.documents), MOST):
        some = list(scope.documents[start : start + MOST])
        yield " and ".join([f"document in {some}", *rest])


def _unavailable(rule: str, value: str, hint: str) -> IndexUnavailableError:
    return IndexUnavailableError(rule, value=value, hint=hint)
