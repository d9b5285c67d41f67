"""The journaled ingest: read, cut, embed, write, read back, and tell what happened.

The steps run on threads of their own, each at most a batch ahead of the next, so that the model
seldom waits. Every step of a batch is one transaction of the catalogue. An interruption anywhere
is made good by running the same command again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path

from core.errors import ModelError
from core.memory import release_memory
from core.settings import Settings
from ingest.batch import Batch
from ingest.catalogue.arrange import arrange
from ingest.chunkers.choice import Chunkers
from ingest.discover import SourceFile, discover
from ingest.files import check_disk
from ingest.flow import Step
from ingest.known import GIVEN, LISTED, NAMED, Known
from ingest.loaders.sandbox import Sandbox
from ingest.reading import Reader
from ingest.seen import Seen
from ingest.settle import recover
from ingest.steps import Steps
from ingest.summary import Summary
from ingest.usable import Reading, Usable, load_limits
from ingest.vectors import embed_missing
from models.embeddings import Embedder, Vectors
from models.identity import OTHER_MODEL, of_another_model
from stores.catalogue import Collection
from stores.journal import pending
from stores.store import Store
from stores.sweep import sweep
from stores.write_access import OPERATOR, WriteAccess

FORMAT_VERSION = 7  # raise it when loaders, cleaning or splitting change what is stored

Progress = Callable[[str, int, int], None]


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
        renames: bool = True,
        access: WriteAccess = OPERATOR,
    ) -> None:
        """Write to `collection`; documents get the access list `acl`, empty for the whole tenant.

        `second` is an embedder whose vectors are kept beside the first one's.
        `progress(stage, done, total)` is called as files and vectors are done. Without `renames`
        a file of equal bytes never takes the place of one that is gone; nor
        with the `access` of another writer than the operator. Raises ModelError for a collection
        whose vectors are all of another model: a half of each would be searched.
        """
        if why := of_another_model(store.hot.models(collection.id), embedder.model_id):
            raise ModelError(why, hint=OTHER_MODEL)
        self._store = store
        self._embedder = embedder
        self._second = second
        self._settings = settings
        self._model_lock = threading.Lock()
        self._chunkers = Chunkers(settings, embedder, self._embed_sentences)
        self._progress = progress or (lambda stage, done, total: None)
        self._vectors = 0
        self._reading = Reading(
            store,
            collection,
            settings,
            acl,
            self._chunkers.key,
            (
                FORMAT_VERSION,
                embedder.model_id,
                self._chunkers.key,
                settings.min_text_words,
                settings.drop_links,
                load_limits(settings).decisive(),
                sorted(acl),
                *_fields_limit(settings),
            ),
            renames and access.auth is None,
            access,
        )

    def run(self, paths: Sequence[Path], *, prune: bool = False) -> Summary:
        """Ingest files and folders; `prune` removes the collection's files that are not there.

        What the summary tells of was read back from every index. One run at a time changes a store.
        """
        with self._store.ingesting:
            try:
                return self._run(paths, prune=prune)
            finally:
                release_memory()

    def _run(self, paths: Sequence[Path], *, prune: bool) -> Summary:
        started = time.monotonic()
        sources, failures = discover(paths)
        summary = Summary(files=len(sources) + len(failures), failed=list(failures))
        check_disk(sources, self._store.folder, self._settings.min_free_mb)
        recover(self._store, self._embedder, self._settings.ingest_batch)
        with Seen() as seen:
            for source in sources:
                seen.add(LISTED, source.relative)
                if prune:
                    seen.add(GIVEN, str(source.path.resolve()))
            self._ingest(sources, summary, seen, prune=prune)
            if prune:
                summary.removed = self._prune(seen)
            collection = self._reading.collection
            given = partial(seen.has, NAMED)
            summary.documents, summary.chunks = self._store.files.totals(collection, given)
        notes = arrange(self._store, collection, self._settings, self._reading.access.auth)
        self._finish()
        summary.notes = [*self._chunkers.notes, *notes, *self._unfinished()]
        summary.seconds = round(time.monotonic() - started, 3)
        return summary

    def _ingest(
        self, sources: Sequence[SourceFile], summary: Summary, seen: Seen, *, prune: bool
    ) -> None:
        known = Known(
            self._store.files,
            self._reading.collection,
            seen,
            self._reading.access,
            prune=prune,
        )
        steps = Steps(
            self._reading, self._chunkers, self._embedder, self._model_lock, seen, summary
        )
        self._progress("files", 0, len(sources))
        with Sandbox() as sandbox, ExitStack() as running:
            usable = Usable(self._reading, known, seen, sandbox, summary)
            reader = Reader(self._reading, known, seen, usable)
            batches: Iterator[Batch] = reader.batches(sources)
            for work in (steps.parsed, steps.cut, steps.embed):
                batches = running.enter_context(Step(batches, work))
            running.callback(usable.ending.set)
            for batch in batches:
                steps.write(batch, self._advance)
                self._progress("files", batch.files, len(sources))

    def _prune(self, seen: Seen) -> int:
        """Remove the files that this run has not come by, some at a time."""
        collection = self._reading.collection
        gone = (name for name in self._store.files.names(collection) if not seen.has(NAMED, name))
        removed = 0
        while part := list(islice(gone, self._settings.ingest_batch)):
            removed += self._store.files.forget(collection, part, self._reading.access)
        self._store.outbox.drain(self._advance)
        return removed

    def _finish(self) -> None:
        """Do what is left when all documents are in."""
        collection = self._reading.collection
        if self._second is not None:
            advance = partial(self._progress, "second")
            batch = self._settings.ingest_batch
            embed_missing(self._store, self._second, batch, advance, collection.id)
        sweep(self._store.database)
        self._store.hot.refresh(collection, partial(self._progress, "index"))

    def _unfinished(self) -> Iterator[str]:
        """Tell the operator what earlier runs have left that this one has not come by.

        Nobody else: it is not theirs, and their own job has said so.
        """
        if self._reading.access.auth is not None:
            return
        connection = self._store.database.read()
        collection = self._reading.collection
        rows = [row for row in pending(connection) if row["collection"] == collection.name
                and row["tenant"] == collection.tenant]  # fmt: skip
        if rows:
            count = sum(row["documents"] for row in rows)
            yield (
                f"{count} documents of an interrupted ingest are not in yet, the first of"
                f" '{rows[0]['file']}'; ingest them again, or all that is to stay with --prune"
            )

    def _embed_sentences(self, texts: Sequence[str]) -> Vectors:
        """Embed for a chunker, while a batch may be under way in another thread."""
        with self._model_lock:
            return self._embedder.embed_documents(texts)

    def _advance(self, count: int) -> None:
        self._vectors += count
        self._progress("vectors", self._vectors, self._vectors + self._store.outbox.pending())


def _fields_limit(settings: Settings) -> tuple[int, ...]:
    """Return the limit of a collection's fields once it is set: files are then read anew."""
    given = settings.max_collection_fields
    return () if given == Settings.model_fields["max_collection_fields"].default else (given,)
