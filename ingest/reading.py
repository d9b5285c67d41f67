"""Read files into the rows of their documents: load, clean, leave out, split."""

from __future__ import annotations

from collections.abc import Iterator

from core.errors import CarrelError, ModelError
from core.language.analysis import terms
from core.settings import Settings
from ingest.chunkers.choice import Chunkers
from ingest.clean import clean_document
from ingest.context import with_context
from ingest.discover import SourceFile
from ingest.enrich import enrich
from ingest.loaders.limits import LoadLimits
from ingest.loaders.registry import load
from ingest.loaders.sandbox import Sandbox
from ingest.summary import ReadFile, Summary
from ingest.types import LoadFailure, ParsedDocument
from stores.catalogue import Collection
from stores.rows import DocumentRow
from stores.store import Store


class Reader:
    """Read the files of one ingest into one collection."""

    def __init__(
        self,
        store: Store,
        collection: Collection,
        settings: Settings,
        chunkers: Chunkers,
        sandbox: Sandbox,
        summary: Summary,
        acl: frozenset[str],
        leaving: frozenset[str] = frozenset(),
    ) -> None:
        """Note what is left out in `summary`; documents get the access list `acl`.

        `leaving` names files of the collection whose documents others may take over.
        """
        self._store = store
        self._collection = collection
        self._settings = settings
        self._chunkers = chunkers
        self._sandbox = sandbox
        self._summary = summary
        self._acl = acl
        self._leaving = leaving
        self._limits = load_limits(settings)
        self._stored = store.files.document_hashes(collection)

    def documents(self, file: ReadFile) -> Iterator[DocumentRow]:
        """Yield the rows of a file's documents that are new or changed."""
        usable = self._usable(file)
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
            unchanged = self._stored.get(document.document_id) == (file.relative, row.content_hash)
            self._stored[document.document_id] = (file.relative, row.content_hash)
            if not unchanged:
                yield row

    def _usable(self, file: ReadFile) -> Iterator[ParsedDocument]:
        """Yield the cleaned documents of a file that are to be kept; note the others."""
        source = SourceFile(path=file.source.path, relative=file.relative)
        for item in load(source, self._limits, self._sandbox):
            if isinstance(item, LoadFailure):
                file.failures.append(item)
                continue
            document = clean_document(item)
            problem = self._unusable(document, file)
            if not problem:
                yield document
                continue
            failure = LoadFailure(path=document.source, reason=problem)
            if problem.startswith("left out"):
                self._summary.left_out.append(failure)
            else:
                file.failures.append(failure)

    def _unusable(self, document: ParsedDocument, file: ReadFile) -> str:
        owner = self._stored.get(document.document_id, (file.relative, ""))[0]
        if owner != file.relative and owner not in self._leaving:
            return f"document id '{document.document_id}' already comes from {owner}"
        least = self._settings.min_text_words
        if not least or document.is_record:
            return ""
        # Words as search counts them, since Chinese has no spaces to count.
        words = sum(len(terms(block.text)) for block in document.blocks)
        if words < least:
            return f"left out: {words} words; the profile keeps texts of {least} or more"
        return ""


def load_limits(settings: Settings) -> LoadLimits:
    """Return how much of a file is read, for how long, and with how much memory."""
    return LoadLimits(
        max_file_mb=settings.max_file_mb,
        max_pages=settings.max_pages,
        max_characters=settings.max_characters,
        timeout_s=settings.parse_timeout_s,
        memory_mb=settings.parse_memory_mb,
    )
