"""Read files into batches of documents: load, clean, leave out what is unchanged or unusable."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import PurePosixPath

from core.language.analysis import terms
from core.metadata import TABLE_FORMAT
from core.settings import Settings
from ingest.chunkers.packing import first_boundary, last_boundary
from ingest.clean import clean_document
from ingest.discover import SourceFile, fingerprint
from ingest.enrich import body_hash, chunk_id, document_hash
from ingest.known import NAMED, Known, RunIndex
from ingest.loaders.limits import LoadLimits
from ingest.loaders.outline import SECTION_SEPARATOR
from ingest.loaders.site import configured_site
from ingest.sandbox.pool import Sandbox
from ingest.steps import Batch, Parsed, Relabelled
from ingest.summary import ReadFile, Summary
from ingest.types import LoadFailure, ParsedDocument
from ingest.usable import (
    FieldNames,
    IngestContext,
    load,
    with_metadata_passage,
    without_hidden_orders,
)
from stores.sqlite.catalogue import Collection
from stores.sqlite.files import LeftOutRow
from stores.sqlite.rows import NEXT, PREVIOUS, DocumentRow, FileRow, document_key


def with_context(
    documents: Iterable[ParsedDocument], settings: Settings
) -> Iterator[tuple[ParsedDocument, str]]:
    """Yield each document of one file with its context, "" where there is none.

    Three documents are held at a time. Records neither take nor give context: the row above is
    about something else.
    """
    if not settings.ingest.merge_short:
        for document in documents:
            yield document, ""
        return
    before: ParsedDocument | None = None
    current: ParsedDocument | None = None
    for following in chain(documents, [None]):
        if current is not None:
            yield current, _context(before, current, following, settings)
        before, current = current, following


def _context(
    before: ParsedDocument | None,
    document: ParsedDocument,
    after: ParsedDocument | None,
    settings: Settings,
) -> str:
    """Return what stands before and after a short document, marked, within `ingest.merge_max`."""
    own = sum(len(block.text) for block in document.blocks)
    if document.is_record or own >= settings.ingest.merge_short_chars:
        return ""
    earlier, later = _text_of(before), _text_of(after)
    room = (
        settings.ingest.merge_max - own - len(PREVIOUS) - len(NEXT) - 2
    )  # each on a line of its own
    # What one side does not need the other may have.
    first = max(room // 2, room - len(later))
    earlier = _last(earlier, first)
    later = _first(later, room - len(earlier))
    lines = [mark + text for mark, text in ((PREVIOUS, earlier), (NEXT, later)) if text]
    return "\n".join(lines)


def _text_of(document: ParsedDocument | None) -> str:
    if document is None or document.is_record:
        return ""
    return " ".join(" ".join(block.text for block in document.blocks).split())


def _last(text: str, limit: int) -> str:
    if len(text) <= limit or limit < 1:
        return text if limit > 0 else ""
    return text[first_boundary(text, len(text) - limit, len(text)) :].strip()


def _first(text: str, limit: int) -> str:
    if len(text) <= limit or limit < 1:
        return text if limit > 0 else ""
    return text[: last_boundary(text, 0, limit)].strip()


def can_relabel(documents: Iterable[DocumentRow], old: str, new: str) -> bool:
    """Tell whether nothing in the documents but ids and sources can come from the file's name.

    True for no documents at all. Loaders take a part of the name as a title where a text has none:
    a title, heading or field that is such a part, in whatever spelling, may be one of these, and
    so may any that says the whole name. Then the file must be read again.
    """
    before, after = (PurePosixPath(name).with_suffix("").parts for name in (old, new))
    changed = {_plain(part) for part in {*before, *after} if (part in before) != (part in after)}
    whole = {PurePosixPath(name).name for name in (old, new)}
    return all(_independent(row, old, new, changed, whole) for row in documents)


def _independent(row: DocumentRow, old: str, new: str, changed: set[str], whole: set[str]) -> bool:
    if not row.body_hash or not _labelled(row.source, old) or row.title in (row.document_id, new):
        return False
    if row.is_record and row.document_id == old:  # an id of its own that happens to be the name
        return False
    stated = {row.title, *_leaves(row.metadata), *(value for _, value, _ in row.fields)}
    for chunk in row.chunks:
        stated.update(chunk.section.split(SECTION_SEPARATOR))
    named = any(name in text for name in whole for text in stated)
    return not named and not any(_plain(text) in changed for text in stated)


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item)
    else:
        yield str(value)


def _plain(text: str) -> str:
    """Keep letters and digits alone, since loaders make titles of names in many ways."""
    return "".join(sign for sign in text.casefold() if sign.isalnum())


def _labelled(text: str, name: str) -> bool:
    return text == name or text.startswith((f"{name}#", f"{name}:", f"{name}/", f"{name}!"))


def relabelled(row: DocumentRow, collection: Collection, old: str, new: str) -> DocumentRow:
    """Return the row that an ingest of the file under its new name makes."""

    def renamed(text: str) -> str:
        return new + text.removeprefix(old) if _labelled(text, old) else text

    document_id, source = renamed(row.document_id), renamed(row.source)
    content_hash = document_hash(document_id, source, row.title, row.body_hash, row.acl)
    chunks = [
        replace(
            chunk,
            chunk_id=chunk_id(collection, document_id, row.version, content_hash, chunk.ordinal),
        )
        for chunk in row.chunks
    ]
    return replace(
        row,
        key=document_key(collection, document_id),
        document_id=document_id,
        file=new,
        source=source,
        content_hash=content_hash,
        chunks=chunks,
    )


KEPT_OUT = "left out: it was forgotten with --keep-out; `carrel forget --let-in` takes that back"


class Reader:
    """Read the files of one ingest."""

    def __init__(
        self,
        reading: IngestContext,
        seen: RunIndex,
        sandbox: Sandbox,
        summary: Summary,
        *,
        prune: bool,
    ) -> None:
        """Note in `seen` what there is, in `summary` what is left out.

        With `prune`, files stay only if their path was noted in `seen` as given. When `ending` is
        set, nothing more is loaded.
        """
        self._reading = reading
        self._known = Known(reading, seen, prune=prune)
        self._seen = seen
        self._sandbox = sandbox
        self._summary = summary
        self._limits = LoadLimits.of(reading.settings)
        self._fields = FieldNames(reading)
        self.ending = threading.Event()

    def batches(self, sources: Iterable[SourceFile]) -> Iterator[Batch]:
        """Yield what is new or changed, in batches of about `ingest.steps` chunks."""
        limit = self._reading.settings.ingest.batch
        batch = Batch()
        for number, source in enumerate(sources, start=1):
            for item in self._items(source):
                if self.ending.is_set():
                    return
                self._put(item, batch)
                if batch.full(limit):
                    batch.files = number - 1
                    yield batch
                    batch = Batch()
            batch.files = number
        yield batch

    def _put(self, item: Parsed | Relabelled | ReadFile, batch: Batch) -> None:
        size = self._reading.settings.ingest.chunk_size
        if isinstance(item, ReadFile):
            batch.finished.append(item)
            return
        batch.paths[item.file.relative] = item.file.path
        if item.file.alias:
            batch.aliases[item.file.relative] = item.file.alias
        if item.file.previous:
            batch.previous[item.file.relative] = item.file.previous
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
            configured_site(source.path, source.relative),
        )
        file = ReadFile(source, path, print_, relative, "" if name == relative else name)
        if (row := self._known.unchanged(relative, print_)) is not None:
            self._summary.unchanged += 1
            self._summary.failed += [LoadFailure.model_validate(item) for item in row.failures]
            for left in self._left_out(relative):
                self._summary.left_out.append(LoadFailure(path=left.source, reason=left.reason))
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
        keeps_out = self._reading.maintenance.keeps_out
        rows = (
            relabelled(row, self._reading.collection, old, relative) for row in self._stored(old)
        )
        return not any(keeps_out(row.key) for row in rows)

    def _left_out(self, relative: str) -> Iterator[LeftOutRow]:
        reading = self._reading
        return reading.intake.list_left_out(reading.collection, relative)

    def _stored(self, relative: str) -> Iterator[DocumentRow]:
        return self._reading.intake.stored_documents(self._reading.collection.id, relative)

    def _relabelled(self, file: ReadFile) -> Iterator[Relabelled]:
        for old in self._stored(file.previous):
            row = relabelled(old, self._reading.collection, file.previous, file.relative)
            file.documents += 1
            self._seen.add_document(row.document_id, file.relative, row.content_hash)
            yield Relabelled(row, old.document_id, file)

    def _parsed(self, file: ReadFile) -> Iterator[Parsed]:
        reading = self._reading
        for document, context in with_context(self._documents(file), reading.settings):
            body = body_hash(document, reading.chunker, context)
            name = self._id_of(document, file)
            hashed = document_hash(name, document.source, document.title, body, reading.acl)
            file.documents += 1
            self._seen.add_document(name, file.relative, hashed)
            if reading.intake.document_hash(reading.collection, name) != (
                file.relative,
                hashed,
            ):
                yield Parsed(document, name, context, file)

    def _documents(self, file: ReadFile) -> Iterator[ParsedDocument]:
        """Yield the cleaned documents of a file that are to be kept; note the others."""
        source = SourceFile(path=file.source.path, relative=file.alias or file.relative)
        dropped = ""
        for item in load(source, self._limits, self._sandbox):
            if self.ending.is_set():
                return
            if isinstance(item, LoadFailure):
                file.failures.append(item)
                continue
            if item.unseen:
                self._summary.unseen[source.relative] += item.unseen
            if item.pictures:
                self._summary.pictures[source.relative] += item.pictures
            document = clean_document(item, plain=self._reading.settings.library.drop_links)
            document = without_hidden_orders(document)
            problem = self._unusable(document, file)
            row = document.format == TABLE_FORMAT
            if row and dropped and document.source.startswith(f"{dropped}#"):
                continue  # the rows of a table go where their document goes
            dropped = document.source if problem and not row else ""
            if not problem:
                refused = self._fields.refusal(document, file.relative)
                if refused is None:
                    yield with_metadata_passage(document)
                elif not row and refused.path not in {one.path for one in file.failures[-1:]}:
                    file.failures.append(refused)  # once for all records that follow
                continue
            failure = LoadFailure(path=document.source, reason=problem)
            if problem.startswith("left out"):
                self._summary.left_out.append(failure)
                if problem == KEPT_OUT:  # whose names are kept nowhere
                    file.kept_out = True
                    continue
                left = (file.relative, document.source, self._id_of(document, file), problem)
                file.left_out.append(LeftOutRow(*left))
            else:
                file.failures.append(failure)

    def _id_of(self, document: ParsedDocument, file: ReadFile) -> str:
        reading, name = self._reading, document.document_id
        return reading.intake.id_for(reading.collection, file.relative, name, reading.access)

    def _unusable(self, document: ParsedDocument, file: ReadFile) -> str:
        key = document_key(self._reading.collection, document.document_id)
        if self._reading.maintenance.keeps_out(key):
            return KEPT_OUT
        owner = self._owner(self._id_of(document, file))
        if owner not in ("", file.relative) and not self._known.leaves(owner):
            called = self._reading.intake.original_name(self._reading.collection, owner)
            return f"document id '{document.document_id}' already comes from {called}"
        least = self._reading.settings.library.min_text_words
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
        found = found or reading.intake.document_hash(reading.collection, document_id)
        return found[0] if found else ""
