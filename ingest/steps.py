"""What an ingest does with a batch: cut it, embed it, write it, read it back."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from core.errors import CarrelError, ModelError, OperatorError
from ingest.chunkers.chunkers import Chunkers
from ingest.enrich import embedded_title, enrich
from ingest.known import RunIndex
from ingest.summary import ReadFile, Size, Summary, Tally
from ingest.types import LoadFailure, ParsedDocument
from ingest.usable import IngestContext
from ingest.vectors import Embedded, EmbeddingInput, passage_vectors, verify_documents
from models.embeddings import Embedder
from stores.sqlite.files import Changes, FinishedFile, JournalEntry
from stores.sqlite.rows import DocumentRow, FileRow


class Parsed(NamedTuple):
    """Hold a new or changed document, its id, and text of its neighbours as `context`."""

    document: ParsedDocument
    document_id: str
    context: str
    file: ReadFile


class Relabelled(NamedTuple):
    """Hold a document of a renamed file, and the id it had."""

    row: DocumentRow
    replaced: str
    file: ReadFile


@dataclass
class Batch:
    """Hold documents of one or more files, and the files that end in it.

    `parsed` become `documents` when they are cut. `paths` are the places of their files by name,
    `aliases` what their writers call them by name, `previous` the names they had before,
    `replaced` the old ids of renamed ones; `files` counts those read so far, and `chunks` is about
    how many there will be.
    """

    parsed: list[Parsed] = field(default_factory=list)
    documents: list[DocumentRow] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    paths: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    previous: dict[str, str] = field(default_factory=dict)
    finished: list[ReadFile] = field(default_factory=list)
    embedded: Embedded = field(default_factory=lambda: Embedded({}, {}))
    files: int = 0
    chunks: int = 0

    def entries(self) -> list[JournalEntry]:
        """Return what the journal says of its documents."""
        waiting = [JournalEntry(one.document_id, one.file.relative) for one in self.parsed]
        return waiting + [
            JournalEntry(d.document_id, d.file, len(d.chunks)) for d in self.documents
        ]

    def full(self, limit: int) -> bool:
        """Tell whether it holds so many chunks or ends of files."""
        return self.chunks >= limit or len(self.finished) >= limit

    def portion(self, chunks: int) -> Batch:
        """Take documents of at least so many chunks off its front, and the files that end there."""
        count = taken = 0
        while count < len(self.documents) and taken < chunks:
            taken += len(self.documents[count].chunks)
            count += 1
        documents, self.documents = self.documents[:count], self.documents[count:]
        waiting = {document.file for document in self.documents}
        ended = 0
        while ended < len(self.finished) and self.finished[ended].relative not in waiting:
            ended += 1
        finished, self.finished = self.finished[:ended], self.finished[ended:]
        ended_files = {file.relative for file in finished}
        files = {document.file for document in documents} | ended_files
        paths = self.paths
        # What has ended must not begin again with the rest, which would forget its fingerprint.
        self.paths = {name: path for name, path in paths.items() if name not in ended_files}
        return Batch(
            documents=documents,
            paths={name: path for name, path in paths.items() if name in files},
            aliases={name: alias for name, alias in self.aliases.items() if name in files},
            previous={name: old for name, old in self.previous.items() if name in files},
            finished=finished,
            files=self.files - len(self.finished),
            chunks=taken,
        )


AT_ONCE = 3000  # characters: less than a second of the model on two cores
FIRST = 32  # chunks written together before the model's speed is known; chosen, not measured
PORTION_S = 3.0  # of the model's work between two writes, so that documents are seen to come in


@dataclass
class Steps:
    """Hold what the steps share; each step runs on one thread.

    Texts are embedded under `model_lock`, since a tokenizer does not serve two threads at once.
    When `ending` is set, no more is embedded than a few texts.
    """

    reading: IngestContext
    chunkers: Chunkers
    embedder: Embedder
    model_lock: threading.Lock
    seen: RunIndex
    summary: Summary
    tally: Tally
    portion: int = FIRST
    ending: threading.Event = field(default_factory=threading.Event)

    def parsed(self, batch: Batch) -> Batch:
        """Note what was read."""
        self.reading.intake.reach_stage(self.reading.collection.id, "parsed", batch.entries())
        return batch

    def cut(self, batch: Batch) -> Batch:
        """Turn the parsed documents into rows with chunks."""
        for one in batch.parsed:
            row = self._row(one)
            if row is not None:
                batch.documents.append(row)
        batch.parsed = []
        self.tally.cut(_size(batch))
        self.reading.intake.reach_stage(self.reading.collection.id, "chunked", batch.entries())
        return batch

    def _row(self, one: Parsed) -> DocumentRow | None:
        document = one.document
        try:
            row = enrich(
                document,
                self.reading.collection,
                one.file.relative,
                chunkers=self.chunkers,
                acl=self.reading.acl,
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
        self.seen.drop_document(one.document_id)

    def portions(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Divide batches into what the model does in about PORTION_S, of whole documents.

        One with renamed documents stays whole: their old ids go when the new ones come.
        """
        for batch in batches:
            while not batch.replaced and _size(batch).chunks > self.portion:
                yield batch.portion(self.portion)
            yield batch

    def embed(self, batch: Batch) -> Batch:
        """Make and keep the vectors that the batch lacks."""
        passages = {}
        for document in batch.documents:
            title = embedded_title(document.title, document.alias or document.document_id)
            for chunk in document.chunks:
                passages[chunk.content_hash] = EmbeddingInput.of(
                    title, document.metadata, document.language, chunk
                )
        model = self.embedder.model_id
        missing = self.reading.intake.missing_vectors(model, passages)
        with self.tally.batch(_size(batch)):
            if batch.documents:
                file = batch.documents[0].file
                self.tally.embedding = batch.aliases.get(file, file)
            self.tally.known(_size(batch, without=missing))
            made = self._made({key: passages[key] for key in sorted(missing)})
        if batch.documents:
            self.reading.intake.write_vectors(
                self.reading.collection.id, model, made.vectors, made.sentences, batch.entries()
            )
        return batch

    def _made(self, passages: dict[str, EmbeddingInput]) -> Embedded:
        """Embed a few passages at a time, those of like length together.

        Who ends the ingest waits for those few alone; what was made by then is kept.
        """
        made, began = Embedded({}, {}), time.monotonic()
        for some in _few_at_once(passages):
            if self.ending.is_set():
                self.reading.intake.store_vectors(self.embedder.model_id, *made)
                raise InterruptedError
            with self.model_lock:
                part = passage_vectors(self.embedder, some)
            made.vectors.update(part.vectors)
            made.sentences.update(part.sentences)
            self.tally.embedded(Size(len(some), sum(one.length for one in some.values())))
        if passages:
            pace = len(passages) / max(time.monotonic() - began, 1e-6)
            self.portion = max(1, min(2 * self.portion, round(PORTION_S * pace)))
        return made

    def write(self, batch: Batch) -> None:
        """Write the batch to the catalogue and the index, and read it back."""
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
                batch.previous,
            )
            self.reading.intake.write_batch(self.reading.collection, changes, self.reading.access)
        search = self.reading.store.search
        search.write_new(self.reading.collection.id)
        confirm(self.reading, [document.document_id for document in batch.documents])
        self.tally.documents += len(batch.documents)
        for file in batch.finished:
            if not file.unchanged:
                file.count(self.summary)

    def _finished(self, file: ReadFile) -> FinishedFile:
        row = FileRow(
            relative=file.relative,
            path=file.path,
            fingerprint=file.fingerprint,
            failures=[failure.model_dump() for failure in file.lost],
            alias=file.alias,
        )

        def holds(document_id: str) -> bool:
            found = self.seen.document(document_id)
            return found is not None and found[0] == file.relative

        return FinishedFile(row, holds, file.previous, file.left_out)


def confirm(reading: IngestContext, documents: Sequence[str]) -> None:
    """Read documents back, or raise OperatorError: they stay in the journal until they are."""
    lacking = verify_documents(reading.store, reading.collection.id, documents)
    if lacking:
        name, reason = next(iter(lacking.items()))
        raise OperatorError(
            "what was written must be readable",
            value=f"document {name}: {reason}; {len(lacking)} in all",
            hint="look at `carrel doctor`, then ingest again or run `carrel reindex`",
        )


def _size(batch: Batch, without: AbstractSet[str] = frozenset()) -> Size:
    chunks = [
        chunk
        for document in batch.documents
        for chunk in document.chunks
        if chunk.content_hash not in without
    ]
    return Size(len(chunks), sum(len(chunk.text) for chunk in chunks))


def _few_at_once(passages: Mapping[str, EmbeddingInput]) -> Iterator[dict[str, EmbeddingInput]]:
    """Yield passages of AT_ONCE characters or a single one, those of like length together."""
    some: dict[str, EmbeddingInput] = {}
    characters = 0
    for key in sorted(passages, key=lambda key: len(passages[key].text)):
        characters += len(passages[key].text)
        if some and characters > AT_ONCE:
            yield some
            some, characters = {}, len(passages[key].text)
        some[key] = passages[key]
    if some:
        yield some


T = TypeVar("T")
U = TypeVar("U")

_POLL_S = 0.1  # how soon a stage notices the end; chosen, not measured


@contextmanager
def in_background(
    items: Iterator[T], work: Callable[[T], U], idle: Callable[[], None] = lambda: None
) -> Iterator[Iterator[U]]:
    """Apply `work` to each item on a thread and hand the results on in order.

    One result waits to be taken while the next is made. What `items` or `work` raise is raised
    where the results are taken; `idle` is called there, several times a second while there is none.
    Leaving the context ends the thread after what it is doing now.
    """
    ended = threading.Event()

    def made() -> tuple[U] | None:
        if ended.is_set():
            return None
        try:
            return next(((work(item),) for item in items), None)
        except BaseException:  # what comes after it is not to be done
            ended.set()
            raise

    def results() -> Iterator[U]:
        waiting = deque([pool.submit(made), pool.submit(made)])
        while True:
            while not wait([waiting[0]], _POLL_S).done:
                idle()
            found = waiting.popleft().result()
            if found is None:
                return
            waiting.append(pool.submit(made))
            yield found[0]

    with ThreadPoolExecutor(1, f"ingest-{work.__name__}") as pool:
        try:
            yield results()
        finally:
            ended.set()
