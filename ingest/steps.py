"""What an ingest does with a batch: cut it, embed it, write it, read it back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from core.errors import CarrelError, ModelError, OperatorError
from ingest.batch import Batch, Parsed
from ingest.chunkers.choice import Chunkers
from ingest.enrich import embedded_keywords, embedded_title, enrich
from ingest.seen import Seen
from ingest.settle import settle
from ingest.summary import ReadFile, Summary
from ingest.types import LoadFailure
from ingest.usable import Reading
from ingest.vectors import Passage, passage_vectors
from models.embeddings import Embedder
from stores.batches import Changes, Finished
from stores.rows import DocumentRow, FileRow

Advance = Callable[[int], None]


class Steps:
    """Hold what the steps share; each step runs on one thread."""

    def __init__(
        self,
        reading: Reading,
        chunkers: Chunkers,
        embedder: Embedder,
        model_lock: threading.Lock,
        seen: Seen,
        summary: Summary,
    ) -> None:
        """Embed under `model_lock`, since a tokenizer does not serve two threads at once."""
        self._reading = reading
        self._store = reading.store
        self._collection = reading.collection
        self._chunkers = chunkers
        self._embedder = embedder
        self._model_lock = model_lock
        self._seen = seen
        self._summary = summary

    def parsed(self, batch: Batch) -> Batch:
        """Note what was read."""
        self._store.journal.reach(self._collection.id, "parsed", batch.entries())
        return batch

    def cut(self, batch: Batch) -> Batch:
        """Turn the parsed documents into rows with chunks."""
        for one in batch.parsed:
            row = self._row(one)
            if row is not None:
                batch.documents.append(row)
        batch.parsed = []
        self._store.journal.reach(self._collection.id, "chunked", batch.entries())
        return batch

    def _row(self, one: Parsed) -> DocumentRow | None:
        document = one.document
        try:
            row = enrich(
                document,
                self._collection,
                one.file.relative,
                chunkers=self._chunkers,
                acl=self._reading.acl,
                context=one.context,
                document_id=one.document_id,
            )
        except ModelError:
            raise  # no fault of the document
        except CarrelError as error:
            self._leave_out(one, str(error))
            return None
        if not row.chunks:
            self._leave_out(one, "no text is left after cleaning")
            return None
        return row

    def _leave_out(self, one: Parsed, reason: str) -> None:
        one.file.unsplit.append(LoadFailure(path=one.document.source, reason=reason))
        one.file.documents -= 1
        self._seen.drop_document(one.document_id)

    def embed(self, batch: Batch) -> Batch:
        """Make and keep the vectors that the batch lacks."""
        passages = {}
        for document in batch.documents:
            title = embedded_title(document.title, document.alias or document.document_id)
            for chunk in document.chunks:
                passages[chunk.content_hash] = Passage.of(
                    title,
                    chunk.section,
                    chunk.text,
                    chunk.context,
                    embedded_keywords(document.metadata, chunk.ordinal),
                    document.language,
                )
        model = self._embedder.model_id
        missing = sorted(self._store.writer.missing_vectors(model, passages))
        with self._model_lock:
            made = passage_vectors(self._embedder, {key: passages[key] for key in missing})
        if batch.documents:
            self._store.batches.embedded(
                self._collection.id, model, made.vectors, made.sentences, batch.entries()
            )
        return batch

    def write(self, batch: Batch, advance: Advance) -> None:
        """Write the batch to the truth and Chroma, and read it back."""
        finished = [
            self._finished(file)
            for file in batch.finished
            # Nothing of it could be read: what is there stays, the next run retries.
            if not file.unchanged and not (file.lost and not file.documents)
        ]
        moved = {file.relative: file.path for file in batch.finished if file.unchanged}
        left_out = {file.relative: file.left_out for file in batch.finished if not file.unchanged}
        if batch.documents or batch.finished:
            changes = Changes(
                batch.documents,
                batch.paths,
                finished,
                moved,
                batch.replaced,
                left_out,
                batch.aliases,
            )
            self._store.batches.indexed(self._collection, changes, self._reading.access)
        self._store.outbox.drain(advance)
        confirm(self._reading, [document.document_id for document in batch.documents])
        for file in batch.finished:
            if not file.unchanged:
                file.count(self._summary)

    def _finished(self, file: ReadFile) -> Finished:
        row = FileRow(
            relative=file.relative,
            path=file.path,
            fingerprint=file.fingerprint,
            failures=[failure.model_dump() for failure in file.lost],
            alias=file.alias,
        )

        def holds(document_id: str) -> bool:
            found = self._seen.document(document_id)
            return found is not None and found[0] == file.relative

        return Finished(row, holds, file.previous, file.left_out)


def confirm(reading: Reading, documents: Sequence[str]) -> None:
    """Read documents back, or raise OperatorError: they stay in the journal until they are."""
    lacking = settle(reading.store, reading.collection.id, documents)
    if lacking:
        name, reason = next(iter(lacking.items()))
        raise OperatorError(
            "what was written must be readable",
            value=f"document {name}: {reason}; {len(lacking)} in all",
            hint="look at `carrel doctor`, then ingest again or run `carrel reindex`",
        )
