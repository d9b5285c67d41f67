"""Read files into batches of documents: load, clean, leave out what is unchanged or unusable."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from core.language.analysis import terms
from core.settings import Settings
from ingest.batch import Batch, Parsed, Relabelled
from ingest.clean import clean_document
from ingest.context import with_context
from ingest.discover import SourceFile
from ingest.enrich import body_hash, document_hash, document_key
from ingest.files import fingerprint
from ingest.known import NAMED, Known
from ingest.loaders.limits import LoadLimits
from ingest.loaders.registry import load
from ingest.loaders.sandbox import Sandbox
from ingest.renames import can_relabel, relabelled
from ingest.seen import Seen
from ingest.summary import ReadFile, Summary, left_out_of
from ingest.types import LoadFailure, ParsedDocument
from stores.catalogue import Collection
from stores.left_out import LeftOutRow
from stores.rows import DocumentRow, FileRow
from stores.store import Store
from stores.stored import stored_documents

KEPT_OUT = "left out: it was forgotten with --keep-out; `carrel forget --let-in` takes that back"


@dataclass(frozen=True)
class Reading:
    """Say into what and under which settings files are read.

    `decisive` is all but a file's bytes that decides what is stored of it; `chunker` is what names
    the cutting. Without `renames`, equal bytes under another name are always another file.
    """

    store: Store
    collection: Collection
    settings: Settings
    acl: frozenset[str]
    chunker: object
    decisive: tuple[object, ...]
    renames: bool = True


class Reader:
    """Read the files of one ingest."""

    def __init__(
        self,
        reading: Reading,
        known: Known,
        seen: Seen,
        sandbox: Sandbox,
        summary: Summary,
        ending: threading.Event,
    ) -> None:
        """Note in `summary` what is unchanged and what is left out, in `seen` what there is.

        When `ending` is set, nothing more is read.
        """
        self._reading = reading
        self._known = known
        self._seen = seen
        self._sandbox = sandbox
        self._summary = summary
        self._ending = ending
        self._limits = load_limits(reading.settings)

    def batches(self, sources: Iterable[SourceFile]) -> Iterator[Batch]:
        """Yield what is new or changed, in batches of about `ingest_batch` chunks."""
        limit = self._reading.settings.ingest_batch
        batch = Batch()
        for number, source in enumerate(sources, start=1):
            for item in self._items(source):
                if self._ending.is_set():
                    return
                self._put(item, batch)
                if batch.full(limit):
                    batch.files = number - 1
                    yield batch
                    batch = Batch()
            batch.files = number
        yield batch

    def _put(self, item: Parsed | Relabelled | ReadFile, batch: Batch) -> None:
        size = self._reading.settings.chunk_size
        if isinstance(item, ReadFile):
            batch.finished.append(item)
            return
        batch.paths[item.file.relative] = item.file.path
        if isinstance(item, Parsed):
            batch.parsed.append(item)
            batch.chunks += 1 + sum(len(block.text) for block in item.document.blocks) // size
        else:
            batch.documents.append(item.row)
            batch.replaced.append(item.replaced)
            batch.chunks += len(item.row.chunks)

    def _items(self, source: SourceFile) -> Iterator[Parsed | Relabelled | ReadFile]:
        """Yield what is new or changed in a file, and the file itself at its end."""
        path = str(source.path.resolve())
        relative = self._known.name(source, path)
        print_ = fingerprint(
            source.path,
            # A file of records may be larger than others: none that is read goes unread here.
            max(self._limits.max_file_mb, self._limits.max_records_mb),
            *self._reading.decisive,
        )
        file = ReadFile(source, path, print_, relative)
        if (row := self._known.unchanged(relative, print_)) is not None:
            self._summary.unchanged += 1
            self._summary.failed += [LoadFailure.model_validate(item) for item in row.failures]
            self._summary.left_out += left_out_of(self._left_out(relative))
            self._seen.add(NAMED, relative)
            file.unchanged = True
            if row.path != path:
                yield file
            return
        previous = self._known.previous(relative, print_) if self._reading.renames else None
        self._seen.add(NAMED, relative)
        if previous is not None:
            file.previous = previous.relative
        if previous is not None and self._can_relabel(previous, relative):
            yield from self._relabelled(file)
        else:
            yield from self._parsed(file)
        if not self._forgotten(file):
            yield file

    def _forgotten(self, file: ReadFile) -> bool:
        """Tell whether a file has nothing but what was forgotten, so that its name is not kept."""
        if not file.kept_out or file.documents or file.failures or file.left_out:
            return False
        return next(self._stored(file.relative), None) is None

    def _can_relabel(self, previous: FileRow, relative: str) -> bool:
        if previous.failures or any(self._left_out(previous.relative)):  # they say the old name
            return False
        return can_relabel(self._stored(previous.relative), previous.relative, relative)

    def _left_out(self, relative: str) -> Iterator[LeftOutRow]:
        reading = self._reading
        return reading.store.left_out.all(reading.collection, relative)

    def _stored(self, relative: str) -> Iterator[DocumentRow]:
        store = self._reading.store
        return stored_documents(store.database.read(), self._reading.collection.id, relative)

    def _relabelled(self, file: ReadFile) -> Iterator[Relabelled]:
        for old in self._stored(file.previous):
            row = relabelled(old, self._reading.collection, file.previous, file.relative)
            file.documents += 1
            self._seen.add_document(row.document_id, file.relative, row.content_hash)
            yield Relabelled(row, old.document_id, file)

    def _parsed(self, file: ReadFile) -> Iterator[Parsed]:
        """Yield the documents of a file that are new or changed."""
        reading = self._reading
        for document, context in with_context(self._usable(file), reading.settings):
            body = body_hash(document, reading.chunker, context)
            name = document.document_id
            hashed = document_hash(name, document.source, document.title, body, reading.acl)
            file.documents += 1
            self._seen.add_document(name, file.relative, hashed)
            if reading.store.files.document_hash(reading.collection, name) != (
                file.relative,
                hashed,
            ):
                yield Parsed(document, context, file)

    def _usable(self, file: ReadFile) -> Iterator[ParsedDocument]:
        """Yield the cleaned documents of a file that are to be kept; note the others."""
        source = SourceFile(path=file.source.path, relative=file.relative)
        for item in load(source, self._limits, self._sandbox):
            if self._ending.is_set():
                return
            if isinstance(item, LoadFailure):
                file.failures.append(item)
                continue
            document = clean_document(item, plain=self._reading.settings.drop_links)
            problem = self._unusable(document, file)
            if not problem:
                yield document
                continue
            failure = LoadFailure(path=document.source, reason=problem)
            if problem.startswith("left out"):
                self._summary.left_out.append(failure)
                if problem == KEPT_OUT:  # whose names are kept nowhere
                    file.kept_out = True
                    continue
                left = (file.relative, document.source, document.document_id, problem)
                file.left_out.append(LeftOutRow(*left))
            else:
                file.failures.append(failure)

    def _unusable(self, document: ParsedDocument, file: ReadFile) -> str:
        key = document_key(self._reading.collection, document.document_id)
        if self._reading.store.erasure.keeps_out(key):
            return KEPT_OUT
        owner = self._owner(document.document_id)
        if owner not in ("", file.relative) and not self._known.leaves(owner):
            return f"document id '{document.document_id}' already comes from {owner}"
        least = self._reading.settings.min_text_words
        if not least or document.is_record:
            return ""
        # Words as search counts them, since Chinese has no spaces to count.
        words = sum(len(terms(block.text)) for block in document.blocks)
        if words < least:
            return f"left out: {words} words; the profile keeps texts of {least} or more"
        return ""

    def _owner(self, document_id: str) -> str:
        """Return the file that a document comes from, "" for a new one."""
        reading = self._reading
        found = self._seen.document(document_id)
        found = found or reading.store.files.document_hash(reading.collection, document_id)
        return found[0] if found else ""


def load_limits(settings: Settings) -> LoadLimits:
    """Return how much of a file is read, for how long, and with how much memory."""
    return LoadLimits.of(settings)
