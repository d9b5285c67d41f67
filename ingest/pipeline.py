"""The journaled ingest: discover, parse, split, embed, write, and tell what happened.

Each batch of documents is one transaction of the catalogue. Files are noted as done only after
all their documents are, and Chroma learns from the outbox, so an interruption anywhere is made
good by running the same command again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from core.errors import CarrelError, ModelError
from core.language.analysis import terms
from core.settings import Settings
from ingest.chunkers.choice import Chunkers
from ingest.clean import clean_document
from ingest.context import with_context
from ingest.discover import SourceFile, discover
from ingest.enrich import embedded_keywords, embedded_title, enrich
from ingest.files import check_disk, fingerprint, unique_relative
from ingest.loaders.limits import LoadLimits
from ingest.loaders.registry import load
from ingest.loaders.sandbox import Sandbox
from ingest.types import LoadFailure, ParsedDocument
from ingest.vectors import Embedded, Passage, embed_missing, passage_vectors
from models.embeddings import Embedder, Vectors
from stores.catalogue import Collection
from stores.rows import DocumentRow, FileRow
from stores.store import Store

FORMAT_VERSION = 4  # raise it when loaders, cleaning or splitting change what is stored


@dataclass
class Summary:
    """Say what an ingest did; `documents` and `chunks` are what the files amount to now.

    `notes` say what was done otherwise than the settings ask.
    """

    files: int = 0
    indexed: int = 0
    unchanged: int = 0
    removed: int = 0
    failed: list[LoadFailure] = field(default_factory=list)
    left_out: list[LoadFailure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    documents: int = 0
    chunks: int = 0
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Tell whether anything was indexed or already there."""
        return bool(self.indexed or self.unchanged)


@dataclass
class _File:
    source: SourceFile
    fingerprint: str
    relative: str
    document_ids: set[str] = field(default_factory=set)
    failures: list[LoadFailure] = field(default_factory=list)


@dataclass
class _Batch:
    documents: list[DocumentRow] = field(default_factory=list)
    finished: list[_File] = field(default_factory=list)
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
        self._limits = LoadLimits(
            max_file_mb=settings.max_file_mb,
            max_pages=settings.max_pages,
            max_characters=settings.max_characters,
            timeout_s=settings.parse_timeout_s,
            memory_mb=settings.parse_memory_mb,
        )

    def run(self, paths: Sequence[Path], *, prune: bool = False) -> Summary:
        """Ingest files and folders; `prune` removes the collection's files that are not there."""
        started = time.monotonic()
        sources, failures = discover(paths)
        summary = Summary(files=len(sources) + len(failures), failed=list(failures))
        check_disk(sources, self._store.folder, self._settings.min_free_mb)
        self._store.outbox.drain()  # what an interrupted run left behind
        known = self._store.writer.files(self._collection)
        files = [
            _File(source, self._fingerprint(source.path), unique_relative(source, known))
            for source in sources
        ]
        changed: list[_File] = []
        for file in files:
            row = known.get(file.relative)
            if row is not None and row.fingerprint == file.fingerprint:
                summary.unchanged += 1
                summary.failed += [LoadFailure.model_validate(item) for item in row.failures]
            else:
                changed.append(file)
        self._ingest(changed, summary)
        if prune:
            gone = set(known) - {file.relative for file in files}
            summary.removed = self._store.writer.forget_files(self._collection, gone)
        self._drain()
        self._embed_second()
        summary.notes = self._chunkers.notes
        summary.documents, summary.chunks = self._store.writer.totals(
            self._collection, [file.relative for file in files]
        )
        summary.seconds = round(time.monotonic() - started, 3)
        return summary

    def _ingest(self, files: Sequence[_File], summary: Summary) -> None:
        stored = self._store.writer.document_hashes(self._collection)
        batch = _Batch()
        # While the model works on one batch, the next is parsed and the last is written.
        with Sandbox() as sandbox, ThreadPoolExecutor(1) as worker:
            waiting: tuple[_Batch, _Embedding] | None = None
            for done, file in enumerate(files):
                self._progress("files", done, len(files))
                for document in self._documents(file, sandbox, summary, stored):
                    batch.documents.append(document)
                    batch.chunks += len(document.chunks)
                    if batch.chunks >= self._settings.ingest_batch:
                        waiting, batch = self._turn(worker, waiting, batch), _Batch()
                batch.finished.append(file)
                _count(file, summary)
            waiting = self._turn(worker, waiting, batch)
            self._write(waiting)
        self._progress("files", len(files), len(files))

    def _turn(
        self, worker: ThreadPoolExecutor, waiting: tuple[_Batch, _Embedding] | None, batch: _Batch
    ) -> tuple[_Batch, _Embedding]:
        embedding = worker.submit(self._embed, batch.documents)
        self._write(waiting)
        return batch, embedding

    def _documents(
        self,
        file: _File,
        sandbox: Sandbox,
        summary: Summary,
        stored: dict[str, tuple[str, str]],
    ) -> Iterator[DocumentRow]:
        usable = self._usable(file, sandbox, summary, stored)
        for document, context in with_context(usable, self._settings):
            try:
                row = enrich(
                    document,
                    self._collection,
                    file.relative,
                    chunkers=self._chunkers,
                    acl=self._acl,
                    context=context,
                )
            except ModelError:
                raise  # no fault of the document
            except CarrelError as error:
                file.failures.append(LoadFailure(path=document.source, reason=str(error)))
                continue
            if not row.chunks:
                reason = "no text is left after cleaning"
                file.failures.append(LoadFailure(path=document.source, reason=reason))
                continue
            file.document_ids.add(document.document_id)
            unchanged = stored.get(document.document_id) == (file.relative, row.content_hash)
            stored[document.document_id] = (file.relative, row.content_hash)
            if not unchanged:
                yield row

    def _usable(
        self,
        file: _File,
        sandbox: Sandbox,
        summary: Summary,
        stored: dict[str, tuple[str, str]],
    ) -> Iterator[ParsedDocument]:
        """Yield the cleaned documents of a file that are to be kept; note the others."""
        source = SourceFile(path=file.source.path, relative=file.relative)
        for item in load(source, self._limits, sandbox):
            if isinstance(item, LoadFailure):
                file.failures.append(item)
                continue
            document = clean_document(item)
            problem = self._unusable(document, file, stored)
            if not problem:
                yield document
                continue
            failure = LoadFailure(path=document.source, reason=problem)
            if problem.startswith("left out"):
                summary.left_out.append(failure)
            else:
                file.failures.append(failure)

    def _unusable(
        self, document: ParsedDocument, file: _File, stored: dict[str, tuple[str, str]]
    ) -> str:
        owner = stored.get(document.document_id, (file.relative, ""))[0]
        if owner != file.relative and self._still_there(owner):
            return f"document id '{document.document_id}' already comes from {owner}"
        least = self._settings.min_text_words
        if not least or document.is_record:
            return ""
        # Words as search counts them, since Chinese has no spaces to count.
        words = sum(len(terms(block.text)) for block in document.blocks)
        if words < least:
            return f"left out: {words} words; the profile keeps texts of {least} or more"
        return ""

    def _still_there(self, relative: str) -> bool:
        row = self._store.writer.files(self._collection).get(relative)
        return row is None or Path(row.path).exists()

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
            self._store.writer.finish_file(self._collection, row, file.document_ids)

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
            self._limits.model_dump(),
            sorted(self._acl),
        )


def _count(file: _File, summary: Summary) -> None:
    summary.failed += file.failures
    if file.document_ids:
        summary.indexed += 1
