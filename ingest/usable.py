"""Take the documents of a file that are to be kept, and note the others with the reason."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

from core.language.analysis import terms
from core.settings import Settings
from ingest.card import with_card
from ingest.clean import clean_document
from ingest.discover import SourceFile
from ingest.field_names import FieldNames
from ingest.known import Known
from ingest.loaders.limits import LoadLimits
from ingest.loaders.registry import load
from ingest.loaders.sandbox import Sandbox
from ingest.seen import Seen
from ingest.summary import ReadFile, Summary
from ingest.types import LoadFailure, ParsedDocument
from stores.catalogue import Collection
from stores.left_out import LeftOutRow
from stores.rows import document_key
from stores.store import Store
from stores.write_access import OPERATOR, WriteAccess

KEPT_OUT = "left out: it was forgotten with --keep-out; `carrel forget --let-in` takes that back"


@dataclass(frozen=True)
class Reading:
    """Say into what and under which settings files are read.

    `decisive` is all but a file's bytes that decides what is stored of it; `chunker` is what names
    the cutting. Without `renames`, equal bytes under another name are always another file. `access`
    is that of the writer.
    """

    store: Store
    collection: Collection
    settings: Settings
    acl: frozenset[str]
    chunker: object
    decisive: tuple[object, ...]
    renames: bool = True
    access: WriteAccess = OPERATOR


class Usable:
    """Load and clean the files of one ingest."""

    def __init__(
        self, reading: Reading, known: Known, seen: Seen, sandbox: Sandbox, summary: Summary
    ) -> None:
        """Note in `summary` what is left out; when `ending` is set, nothing more is loaded."""
        self._reading = reading
        self._known = known
        self._seen = seen
        self._sandbox = sandbox
        self.summary = summary
        self._limits = load_limits(reading.settings)
        self._fields = FieldNames(
            reading.store, reading.collection, reading.settings, reading.access.auth
        )
        self.ending = threading.Event()

    def documents(self, file: ReadFile) -> Iterator[ParsedDocument]:
        """Yield the cleaned documents of a file that are to be kept; note the others."""
        source = SourceFile(path=file.source.path, relative=file.alias or file.relative)
        for item in load(source, self._limits, self._sandbox):
            if self.ending.is_set():
                return
            if isinstance(item, LoadFailure):
                file.failures.append(item)
                continue
            document = clean_document(item, plain=self._reading.settings.drop_links)
            problem = self._unusable(document, file)
            if not problem:
                refused = self._fields.refusal(document, file.relative)
                if refused is None:
                    yield with_card(document)
                elif refused.path not in {one.path for one in file.failures[-1:]}:
                    file.failures.append(refused)  # once for all records that follow
                continue
            failure = LoadFailure(path=document.source, reason=problem)
            if problem.startswith("left out"):
                self.summary.left_out.append(failure)
                if problem == KEPT_OUT:  # whose names are kept nowhere
                    file.kept_out = True
                    continue
                left = (file.relative, document.source, self.id_of(document, file), problem)
                file.left_out.append(LeftOutRow(*left))
            else:
                file.failures.append(failure)

    def id_of(self, document: ParsedDocument, file: ReadFile) -> str:
        """Return the id under which a document is kept."""
        reading = self._reading
        name = document.document_id
        return reading.store.files.id_for(reading.collection, file.relative, name, reading.access)

    def _unusable(self, document: ParsedDocument, file: ReadFile) -> str:
        key = document_key(self._reading.collection, document.document_id)
        if self._reading.store.erasure.keeps_out(key):
            return KEPT_OUT
        owner = self._owner(self.id_of(document, file))
        if owner not in ("", file.relative) and not self._known.leaves(owner):
            called = self._reading.store.files.called(self._reading.collection, owner)
            return f"document id '{document.document_id}' already comes from {called}"
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
