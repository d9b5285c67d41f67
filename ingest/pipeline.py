"""The journaled ingest: discover, parse, split, embed, write, and tell what happened.

Each batch of documents is one transaction of the catalogue. Files are noted as done only after
all their documents are, and Chroma learns from the outbox, so an interruption anywhere is made
good by running the same command again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from core.settings import Settings
from ingest.chunkers.choice import Chunkers
from ingest.discover import discover
from ingest.enrich import embedded_keywords, embedded_title
from ingest.files import check_disk, fingerprint, staying, unique_relative
from ingest.loaders.sandbox import Sandbox
from ingest.reading import Reader, load_limits
from ingest.summary import ReadFile, Summary
from ingest.types import LoadFailure
from ingest.vectors import Embedded, Passage, embed_missing, passage_vectors
from models.embeddings import Embedder, Vectors
from stores.catalogue import Collection
from stores.rows import DocumentRow, FileRow
from stores.store import Store

FORMAT_VERSION = 4  # raise it when loaders, cleaning or splitting change what is stored


@dataclass
class _Batch:
    documents: list[DocumentRow] = field(default_factory=list)
    finished: list[ReadFile] = field(default_factory=list)
    chunks: int = 0


Progress = Callable[[str, int, int], None]
_Embedding = Future[Embedded]


class Pipeline:
    """Ingest files into one collection."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        settings: Settings,
        collection: Collection,
        *,
        acl: frozenset[str] = frozenset(),
        progress: Progress | None = None,
        second: Embedder | None = None,
    ) -> None:
        """Write to `collection`; documents get the access list `acl`, empty for the whole tenant.

        `second` is an embedder whose vectors are kept beside the first one's.
        `progress(stage, done, total)` is called as files and vectors are done.
        """
        self._store = store
        self._embedder = embedder
        self._second = second
        self._settings = settings
        self._model_lock = threading.Lock()  # a tokenizer does not serve two threads at once
        self._chunkers = Chunkers(settings, embedder, self._embed_sentences)
        self._collection = collection
        self._acl = acl
        self._progress = progress or (lambda stage, done, total: None)

    def run(self, paths: Sequence[Path], *, prune: bool = False) -> Summary:
        """Ingest files and folders; `prune` removes the collection's files that are not there."""
        started = time.monotonic()
        sources, failures = discover(paths)
        summary = Summary(files=len(sources) + len(failures), failed=list(failures))
        check_disk(sources, self._store.folder, self._settings.min_free_mb)
        self._store.outbox.drain()  # what an interrupted run left behind
        known = self._store.files.all(self._collection)
        stay = staying(known, sources, prune=prune)
        files = [
            ReadFile(source, self._fingerprint(source.path), unique_relative(source, stay))
            for source in sources
        ]
        changed: list[ReadFile] = []
        for file in files:
            row = known.get(file.relative)
            if row is not None and row.fingerprint == file.fingerprint:
                summary.unchanged += 1
                self._store.files.move(self._collection, row, str(file.source.path.resolve()))
                summary.failed += [LoadFailure.model_validate(item) for item in row.failures]
            else:
                changed.append(file)
        leaving = frozenset(known.keys() - stay.keys())
        self._ingest(changed, summary, leaving)
        if prune:
            gone = set(known) - {file.relative for file in files}
            summary.removed = self._store.files.forget(self._collection, gone)
        self._drain()
        self._embed_second()
        self._store.hot.refresh(self._collection, partial(self._progress, "index"))
        summary.notes = self._chunkers.notes
        summary.documents, summary.chunks = self._store.files.totals(
            self._collection, [file.relative for file in files]
        )
        summary.seconds = round(time.monotonic() - started, 3)
        return summary

    def _ingest(self, files: Sequence[ReadFile], summary: Summary, leaving: frozenset[str]) -> None:
        batch = _Batch()
        # While the model works on one batch, the next is parsed and the last is written.
        with Sandbox() as sandbox, ThreadPoolExecutor(1) as worker:
            reader = Reader(
                self._store,
                self._collection,
                self._settings,
                self._chunkers,
                sandbox,
                summary,
                self._acl,
                leaving,
            )
            waiting: tuple[_Batch, _Embedding] | None = None
            for done, file in enumerate(files):
                self._progress("files", done, len(files))
                for document in reader.documents(file):
                    batch.documents.append(document)
                    batch.chunks += len(document.chunks)
                    if batch.chunks >= self._settings.ingest_batch:
                        waiting, batch = self._turn(worker, waiting, batch), _Batch()
                batch.finished.append(file)
                file.count(summary)
            waiting = self._turn(worker, waiting, batch)
            self._write(waiting)
        self._progress("files", len(files), len(files))

    def _turn(
        self, worker: ThreadPoolExecutor, waiting: tuple[_Batch, _Embedding] | None, batch: _Batch
    ) -> tuple[_Batch, _Embedding]:
        embedding = worker.submit(self._embed, batch.documents)
        self._write(waiting)
        return batch, embedding

    def _embed(self, documents: Sequence[DocumentRow]) -> Embedded:
        passages = {}
        for document in documents:
            title = embedded_title(document.title, document.document_id)
            for chunk in document.chunks:
                passages[chunk.content_hash] = Passage.of(
                    title,
                    chunk.section,
                    chunk.text,
                    chunk.context,
                    embedded_keywords(document.metadata, chunk.ordinal),
                    document.language,
                )
        missing = sorted(self._store.writer.missing_vectors(self._embedder.model_id, passages))
        with self._model_lock:
            return passage_vectors(self._embedder, {key: passages[key] for key in missing})

    def _embed_sentences(self, texts: Sequence[str]) -> Vectors:
        """Embed for a chunker, while a batch may be under way in the other thread."""
        with self._model_lock:
            return self._embedder.embed_documents(texts)

    def _embed_second(self) -> None:
        """Keep the second embedder's vectors of all that this collection holds."""
        if self._second is not None:
            advance = partial(self._progress, "second")
            batch = self._settings.ingest_batch
            embed_missing(self._store, self._second, batch, advance, self._collection.id)

    def _write(self, waiting: tuple[_Batch, _Embedding] | None) -> None:
        if waiting is None:
            return
        batch, embedding = waiting
        embedded = embedding.result()
        self._store.writer.write_documents(
            self._collection,
            batch.documents,
            self._embedder.model_id,
            embedded.vectors,
            embedded.sentences,
        )
        for file in batch.finished:
            if file.failures and not file.document_ids:
                continue  # nothing of it could be read: what is there stays, the next run retries
            row = FileRow(
                relative=file.relative,
                path=str(file.source.path.resolve()),
                fingerprint=file.fingerprint,
                failures=[failure.model_dump() for failure in file.failures],
            )
            self._store.files.finish(self._collection, row, file.document_ids)

    def _drain(self) -> None:
        total = self._store.outbox.pending()
        done = 0

        def advance(count: int) -> None:
            nonlocal done
            done += count
            self._progress("vectors", done, total)

        self._store.outbox.drain(advance)

    def _fingerprint(self, path: Path) -> str:
        settings = self._settings
        return fingerprint(
            path,
            settings.max_file_mb,
            FORMAT_VERSION,
            self._embedder.model_id,
            self._chunkers.key,
            settings.min_text_words,
            load_limits(settings).model_dump(),
            sorted(self._acl),
        )
