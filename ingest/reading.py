"""Read files into batches of documents: load, clean, leave out what is unchanged or unusable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ingest.batch import Batch, Parsed, Relabelled
from ingest.context import with_context
from ingest.discover import SourceFile
from ingest.enrich import body_hash, document_hash
from ingest.files import fingerprint
from ingest.known import NAMED, Known
from ingest.renames import can_relabel, relabelled
from ingest.seen import Seen
from ingest.summary import ReadFile, left_out_of
from ingest.types import LoadFailure
from ingest.usable import Reading, Usable, load_limits
from stores.left_out import LeftOutRow
from stores.rows import DocumentRow, FileRow
from stores.stored import stored_documents


class Reader:
    """Read the files of one ingest."""

    def __init__(self, reading: Reading, known: Known, seen: Seen, usable: Usable) -> None:
        """Take documents through `usable`, and note in `seen` what there is."""
        self._reading = reading
        self._known = known
        self._seen = seen
        self._usable = usable
        self._summary = usable.summary
        self._limits = load_limits(reading.settings)

    def batches(self, sources: Iterable[SourceFile]) -> Iterator[Batch]:
        """Yield what is new or changed, in batches of about `ingest_batch` chunks."""
        limit = self._reading.settings.ingest_batch
        batch = Batch()
        for number, source in enumerate(sources, start=1):
            for item in self._items(source):
                if self._usable.ending.is_set():
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
        if item.file.alias:
            batch.aliases[item.file.relative] = item.file.alias
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
        name = self._known.name(source, path)
        relative = self._known.stored(name)
        print_ = fingerprint(
            source.path,
            # A file of records may be larger than others: none that is read goes unread here.
            max(self._limits.max_file_mb, self._limits.max_records_mb),
            *self._reading.decisive,
        )
        file = ReadFile(source, path, print_, relative, "" if name == relative else name)
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
        if any(self._stored(relative)):  # perhaps of a rename that was interrupted
            return False
        old = previous.relative
        if not can_relabel(self._stored(old), old, relative):
            return False
        keeps_out = self._reading.store.erasure.keeps_out
        rows = (
            relabelled(row, self._reading.collection, old, relative) for row in self._stored(old)
        )
        return not any(keeps_out(row.key) for row in rows)

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
        for document, context in with_context(self._usable.documents(file), reading.settings):
            body = body_hash(document, reading.chunker, context)
            name = self._usable.id_of(document, file)
            hashed = document_hash(name, document.source, document.title, body, reading.acl)
            file.documents += 1
            self._seen.add_document(name, file.relative, hashed)
            if reading.store.files.document_hash(reading.collection, name) != (
                file.relative,
                hashed,
            ):
                yield Parsed(document, name, context, file)
