"""The journaled ingest: read, cut, embed, write, read back, and tell what happened.

The steps run on threads of their own, each at most a batch ahead of the next, so that the model
seldom waits. Every step of a batch is one transaction of the catalogue. An interruption anywhere
is made good by running the same command again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from itertools import islice
from pathlib import Path

from core.errors import ModelError
from core.memory import release_memory
from core.settings import Settings
from ingest.arrange import arrange
from ingest.chunkers.chunkers import Chunkers
from ingest.discover import SourceFile, check_disk, discover
from ingest.known import GIVEN, LISTED, NAMED, RunIndex
from ingest.loaders.limits import LoadLimits
from ingest.reading import Reader
from ingest.sandbox.pool import Sandbox
from ingest.steps import Batch, Steps, in_background
from ingest.summary import Summary, Tally
from ingest.usable import IngestContext
from ingest.vectors import Progress, embed_missing, recover
from models.embeddings import Embedder, Vectors
from models.folder import OTHER_MODEL, of_another_model
from stores.sqlite.catalogue import Collection
from stores.sqlite.permissions import OPERATOR, WriteAccess
from stores.store import Store

FORMAT_VERSION = 10  # raise it when loaders, cleaning or splitting change what is stored


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
        tally: Tally | None = None,
    ) -> None:
        """Write to `collection`; documents get the access list `acl`, empty for the whole tenant.

        `second` is an embedder whose vectors are kept beside the first one's.
        `progress(stage, done, total)` is called as files and vectors are done, and several times a
        second while chunks are waited for; `tally` says more. Without `renames`
        a file of equal bytes never takes the place of one that is gone; nor
        with the `access` of another writer than the operator. Raises ModelError for a collection
        whose vectors are all of another model: a half of each would be searched.
        """
        search = store.search
        if why := of_another_model(search.models(collection.id), embedder.model_id):
            raise ModelError(why, hint=OTHER_MODEL)
        self._store, self._intake, self._search = store, store.intake, search
        self._maintenance = store.maintenance
        self._embedder = embedder
        self._second = second
        self._settings = settings
        self._model_lock = threading.Lock()
        self._chunkers = Chunkers(settings, embedder, self._embed_sentences)
        self._progress = progress or (lambda stage, done, total: None)
        self._tally = tally or Tally()
        self._reading = IngestContext(
            store,
            collection,
            settings,
            acl,
            self._chunkers.key,
            (
                FORMAT_VERSION,
                embedder.model_id,
                self._chunkers.key,
                settings.library.min_text_words,
                settings.library.drop_links,
                LoadLimits.of(settings).model_dump(),
                sorted(acl),
                settings.ingest.max_collection_fields,
            ),
            renames and access.auth is None,
            access,
        )

    def run(self, paths: Sequence[Path | SourceFile], *, prune: bool = False) -> Summary:
        """Ingest files and folders; `prune` removes the collection's files that are not there.

        What the summary tells of was read back from every index. One run at a time changes a store.
        """
        with self._maintenance.changing():
            try:
                return self._run(paths, prune=prune)
            finally:
                release_memory()

    def _run(self, paths: Sequence[Path | SourceFile], *, prune: bool) -> Summary:
        started = time.monotonic()
        others: list[str] = []
        sources, failures = discover(paths, others)
        summary = Summary(files=len(sources) + len(failures), failed=list(failures))
        summary.others = len(others)
        check_disk(sources, self._store.folder, self._settings.storage.min_free_mb)
        recover(self._store, self._embedder, self._settings.ingest.batch)
        with closing(RunIndex()) as seen:
            for source in sources:
                seen.add(LISTED, source.relative)
                if prune:
                    seen.add(GIVEN, str(source.path.resolve()))
            self._ingest(sources, summary, seen, prune=prune)
            if prune:
                summary.removed = self._prune(seen)
            collection = self._reading.collection
            given = partial(seen.has, NAMED)
            summary.documents, summary.chunks = self._intake.count_in_files(collection, given)
        notes = arrange(self._store, collection, self._settings, self._reading.access.auth)
        self._finish()
        unread = summary.note_unseen()
        summary.notes = [*self._chunkers.notes, *unread, *notes, *self._unfinished()]
        summary.seconds = round(time.monotonic() - started, 3)
        return summary

    def _ingest(
        self, sources: Sequence[SourceFile], summary: Summary, seen: RunIndex, *, prune: bool
    ) -> None:
        steps = Steps(
            self._reading,
            self._chunkers,
            self._embedder,
            self._model_lock,
            seen,
            summary,
            self._tally,
        )
        self._progress("files", 0, len(sources))
        with Sandbox() as sandbox, ExitStack() as running:
            reader = Reader(self._reading, seen, sandbox, summary, prune=prune)
            batches: Iterator[Batch] = reader.batches(self._tally.read(sources))
            for work in (steps.parsed, steps.cut):
                batches = running.enter_context(in_background(batches, work))
            batches = steps.portions(batches)
            batches = running.enter_context(in_background(batches, steps.embed, self._idle))
            running.callback(sandbox.end)
            running.callback(reader.ending.set)
            running.callback(steps.ending.set)
            for batch in batches:
                steps.write(batch)
                # A batch may be filled by the end of a file that it does not count yet.
                self._tally.files_done = max(self._tally.files_done, batch.files)
                self._progress("files", self._tally.files_done, len(sources))

    def _idle(self) -> None:
        """Tell how far the step is that is waited for."""
        if self._tally.chunks:
            self._progress("chunks", self._tally.chunks_done, self._tally.chunks)
        else:
            self._progress("files", self._tally.files_done, self._tally.files)

    def _prune(self, seen: RunIndex) -> int:
        collection = self._reading.collection
        gone = (name for name in self._intake.file_names(collection) if not seen.has(NAMED, name))
        removed = 0
        while part := list(islice(gone, self._settings.ingest.batch)):
            removed += self._intake.forget_files(collection, part, self._reading.access)
        return removed

    def _finish(self) -> None:
        collection = self._reading.collection
        if self._second is not None:
            advance = partial(self._progress, "second")
            batch = self._settings.ingest.batch
            embed_missing(self._intake, self._second, batch, advance, collection.id)
        self._intake.sweep_vectors()
        self._search.refresh(collection, partial(self._progress, "index"))

    def _unfinished(self) -> Iterator[str]:
        """Tell the operator what earlier runs have left that this one has not come by.

        Other users do not: it is not theirs, and their own job reports it.
        """
        if self._reading.access.auth is not None:
            return
        collection = self._reading.collection
        named = (collection.tenant, collection.name)
        rows = [
            row
            for row in self._intake.pending_documents()
            if (row["tenant"], row["collection"]) == named
        ]
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
