"""The journaled ingest: read, cut, embed, write, read back, and tell what happened.

The steps run on threads of their own, each at most a batch ahead of the next, so that the model
seldom waits. Every step of a batch is one transaction of the catalogue. An interruption anywhere
is made good by running the same command again. At the end repeats and links to books are worked
out from the truth alone, whatever the order of files; what has not changed is not looked at again.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import sys
import threading
import time
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from core.auth import AuthContext
from core.errors import ModelError
from core.settings import Settings
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
from stores.ports import Intake
from stores.sqlite.catalogue import Collection
from stores.sqlite.permissions import OPERATOR, WriteAccess
from stores.sqlite.quality import FILE, ID, ISBN, TITLE, Key
from stores.store import Store


def release_memory() -> None:
    """Let the C library return its free pages; where it cannot be asked, nothing happens.

    It keeps what many threads have used and freed, hundreds of MB after a large document.
    """
    if sys.platform == "linux":
        with suppress(AttributeError, OSError):  # another C library than glibc
            ctypes.CDLL(None).malloc_trim(0)


FORMAT_VERSION = 15  # raise it when loaders, cleaning or splitting change what is stored


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
        with self._intake.alone() as alone:  # else they may be another's that is at work
            rows = [
                row
                for row in (self._intake.pending_documents() if alone else [])
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


EXACT = {"code", "table"}  # where every sign can mean something
_DASHES = re.compile("[\u2010-\u2015\u2212]")
# A minus before a number, and signs that name or calculate, say something; the rest of the
# punctuation does not. A point between digits leaves a gap, so that 3.5 is not 35.
_SIGNS = frozenset("#%&@*/\\")


def print_of(kind: str, text: str) -> bytes:
    """Return the print of a chunk, 16 bytes; annotations and content are never equal."""
    group = "annotation" if kind == "annotation" else "content"
    compared = " ".join(text.split()) if kind in EXACT else plain(text)
    encoded = f"{group}\n{compared or text}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(encoded, digest_size=16).digest()


def plain(text: str) -> str:
    """Return a text in small letters, without punctuation that says nothing, one space between."""
    folded = _DASHES.sub("-", unicodedata.normalize("NFKC", text).casefold())
    folded = unicodedata.normalize("NFKC", folded)
    if folded.isascii() and folded.replace(" ", "").isalnum():
        return " ".join(folded.split())
    kept = [character if _says(folded, place) else " " for place, character in enumerate(folded)]
    return " ".join("".join(kept).split())


def _says(text: str, place: int) -> bool:
    character = text[place]
    if character == "-":  # of a number, not within a word or between two
        before, after = text[place - 1 : place] if place else "", text[place + 1 : place + 2]
        return after.isdigit() and (not before or before.isspace() or before in "([=<>")
    return not unicodedata.category(character).startswith(("P", "Z", "C")) or character in _SIGNS


_ENDING = re.compile(r"\.[^\W_]{1,8}$")
_NUMBER = re.compile(r"[\dXx](?:[ \-\u2010-\u2013]?[\dXx]){8,16}")
_MAX_NAME = 500  # characters of a file's name; chosen, not measured


def text_keys(document_id: str, title: str, metadata: dict[str, Any]) -> Iterator[Key]:
    """Yield the keys of a full text."""
    name = _file_name(document_id)
    if name:
        parts = name.split("/")
        for start in range(len(parts)):
            yield FILE, "/".join(parts[start:])
        stem = PurePosixPath(name).stem
        yield ID, stem
        for isbn in isbns([stem]):
            yield ISBN, isbn
    for isbn in isbns(_values(metadata, "isbn")):
        yield ISBN, isbn
    yield from _title_keys(title, metadata)


def book_keys(
    document_id: str, title: str, metadata: dict[str, Any], fields: Iterable[tuple[str, str]]
) -> Iterator[Key]:
    """Yield the keys of a record; `fields` are the names and values of all its fields."""
    if "#" not in document_id:  # the number of a row says nothing
        yield ID, _folded(document_id)
    for name, value in fields:
        if file := _file_name(value):
            yield FILE, file
        if "isbn" in name.casefold():
            for isbn in isbns([value]):
                yield ISBN, isbn
    yield from _title_keys(title, metadata)


def isbns(values: Iterable[str]) -> Iterator[str]:
    """Yield the valid ISBN in texts, each as its 13 digits."""
    for value in values:
        for match in _NUMBER.finditer(value):
            digits = re.sub(r"[^\dXx]", "", match.group()).upper()
            if isbn := _isbn13(digits):
                yield isbn


def _isbn13(digits: str) -> str:
    if len(digits) == 13 and digits.isdigit() and digits[:3] in ("978", "979"):
        return digits if _check(digits[:12]) == digits[12] else ""
    if len(digits) != 10 or not digits[:9].isdigit():
        return ""
    total = sum((10 - place) * int(digit) for place, digit in enumerate(digits[:9]))
    last = 10 if digits[9] == "X" else int(digits[9])
    if (total + last) % 11:
        return ""
    return f"978{digits[:9]}{_check(f'978{digits[:9]}')}"


def _check(digits: str) -> str:
    total = sum((3 if place % 2 else 1) * int(digit) for place, digit in enumerate(digits))
    return str(-total % 10)


def _title_keys(title: str, metadata: dict[str, Any]) -> Iterator[Key]:
    named = plain(title)
    for author in _values(metadata, "authors"):
        # "Abbott, Edwin A., 1838-1926" is "Edwin A. Abbott".
        words = [word for word in plain(author).split() if not any(map(str.isdigit, word))]
        if named and words:
            yield TITLE, f"{named}\n{' '.join(sorted(words))}"


def _values(metadata: dict[str, Any], name: str) -> list[str]:
    value = metadata.get(name)
    return [str(item) for item in value] if isinstance(value, list) else [str(value or "")]


def _file_name(value: str) -> str:
    """Return a value as the name of a file, folded; "" for what cannot be one."""
    if len(value) > _MAX_NAME or "://" in value or "\n" in value or not _ENDING.search(value):
        return ""
    return _folded(value.replace("\\", "/")).removeprefix("./").lstrip("/")


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text.strip()).casefold()


RULES = 1  # raise it when prints or keys change


def arrange(
    store: Store, collection: Collection, settings: Settings, auth: AuthContext | None = None
) -> list[str]:
    """Bring repeats and links up to date; return notes on what is left out of searches.

    With `auth` they count only what this caller may see.
    """
    mark = f"{RULES}:{settings.library.drop_repeats:d}{settings.library.book_links:d}"
    intake, catalogue = store.intake, store.catalogue
    version = catalogue.index_version()
    if intake.arrangement(collection) != f"{version}:{mark}":
        changed = (
            intake.number_duplicates(collection, print_of)
            if settings.library.drop_repeats
            else intake.clear_duplicates(collection)
        )
        changed += (
            intake.link_books(collection, text_keys, book_keys)
            if settings.library.book_links
            else intake.clear_books(collection)
        )
        intake.note_arrangement(collection, mark, version, changed=bool(changed))
    return _notes(intake, collection, auth)


def _notes(intake: Intake, collection: Collection, auth: AuthContext | None) -> list[str]:
    annotations, passages = intake.count_duplicates(collection, auth)
    notes = []
    if annotations:
        notes.append(
            f"{annotations} annotations are those of other records and found there only;"
            " `carrel quality` lists them"
        )
    if passages:
        notes.append(f"{passages} passages repeat others and are found only once")
    return notes
