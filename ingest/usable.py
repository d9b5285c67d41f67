"""Load the documents of a file, and say of each what its metadata and its fields allow."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from core.errors import DocumentError
from core.language.orders import gives_orders
from core.metadata import humanise
from core.settings import Settings
from ingest.discover import SourceFile
from ingest.enrich import language_of
from ingest.loaders.limits import LoadLimits, unreadable
from ingest.loaders.records.record_fields import LONG, write_value
from ingest.loaders.site import configured_site, with_site
from ingest.loaders.text.plain_text import text_header
from ingest.sandbox.pool import Sandbox
from ingest.types import Block, Loaded, LoadFailure, ParsedDocument
from languages.language import find_language
from stores.ports import Intake, Maintenance
from stores.sqlite.catalogue import Collection
from stores.sqlite.permissions import OPERATOR, WriteAccess
from stores.store import Store


def load(file: SourceFile, limits: LoadLimits, sandbox: Sandbox) -> Iterator[Loaded]:
    """Yield the documents of a file and the failures of it or its records; bad content is no error.

    They come as they are parsed: a file of many records is never held as a whole.
    """
    try:
        mode = file.path.stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # a docset is a folder
            raise DocumentError("not a regular file")  # to open a pipe could take for ever
        site = configured_site(file.path, file.relative)
        for item in sandbox.parse(file.path, file.relative, limits):
            yield with_site(item, site)
    except DocumentError as error:
        yield LoadFailure(path=file.relative, reason=error.rule)
    except OSError as error:
        yield LoadFailure(path=file.relative, reason=unreadable(error))
    except (ValueError, MemoryError):
        # What the process sent is no document, or one that does not fit here.
        reason = "the parser gave no usable answer for this file; convert it to another format"
        yield LoadFailure(path=file.relative, reason=reason)


def without_hidden_orders(document: ParsedDocument) -> ParsedDocument:
    """Return a file's document without properties that give orders: no reader of it sees them."""
    if document.is_record:
        return document
    kept = {
        name: value
        for name, value in document.metadata.items()
        if not gives_orders(str(value), 0, len(str(value)))
    }
    shown = any(document.title in block.text for block in document.blocks)
    title = document.title
    if not shown and gives_orders(title, 0, len(title)):
        title = PurePosixPath(document.source).stem
    return document.model_copy(update={"metadata": kept, "title": title})


class FieldNames:
    """Know the fields of a collection's records, and which records may add one.

    What is there already is never refused; what is removed meanwhile counts until the next ingest.
    """

    def __init__(self, reading: IngestContext) -> None:
        self._reading = reading
        self._most = reading.settings.ingest.max_collection_fields
        self._names: set[str] | None = None

    def refusal(self, document: ParsedDocument, file: str) -> LoadFailure | None:
        """Take the fields of a document in, or say of its file why they are too many."""
        if not document.fields:
            return None
        if self._names is None:
            catalogue, auth = self._reading.store.catalogue, self._reading.access.auth
            self._names = catalogue.field_names(self._reading.collection.id, auth)
        new = document.fields.keys() - self._names
        if new and len(self._names) + len(new) > self._most:
            reason = (
                f"its records have new fields, such as {min(new)[:60]!r}, and those of a collection"
                f" have at most {self._most:,} (ingest.max_collection_fields)"
            )
            return LoadFailure(path=file, reason=reason)
        self._names |= new
        return None


# In this order; what else a file says of itself follows.
_FIRST = (
    "title", "authors", "editors", "translators", "illustrators", "publisher", "place",
    "year", "published",
    "edition", "series", "isbn", "issn", "doi", "language", "pages", "slides", "version", "license",
    "created", "updated_at",
)  # fmt: skip
# Nearly every file says these, and they say little: alone they are not worth a passage.
_COMMON = {"title", "language", "created", "updated_at", "keywords", "subject", "url"}
_NOT_SHOWN = {"description"}
_MESSAGES = {"eml", "msg", "mbox"}  # whose text begins with what is known of them
_MOST = 2_000  # characters of the metadata passage; chosen, not measured


def with_metadata_passage(document: ParsedDocument) -> ParsedDocument:
    """Return a document with its metadata as its last block, or unchanged if there is too little.

    A record is one itself. The labels are in the language of the document where that is known.
    """
    stated = _stated(document)
    # Most pages of HTML name their language, so that it is worth no passage there.
    common = _COMMON if document.format == "html" else _COMMON - {"language"}
    telling = (set(stated) & set(_FIRST)) - common
    if "framework" in document.metadata:  # all pages of a docset have the same to say
        return document
    if document.is_record or document.format in _MESSAGES or not document.blocks or not telling:
        return document
    labels = find_language(language_of(document)).messages.get("fields", {})
    lines = [f"{labels.get(name) or humanise(name)}: {value}" for name, value in stated.items()]
    block = Block(text="\n".join(lines)[:_MOST], kind="record")
    return document.model_copy(update={"blocks": [*document.blocks, block]})


def _stated(document: ParsedDocument) -> dict[str, str]:
    described: dict[str, Any] = document.metadata
    if "authors" not in described:
        described = text_header("\n".join(block.text for block in document.blocks[:4])) | described
    if document.title and document.title != document.document_id:
        described = {**described, "title": document.title}
    if _repeats(described, "year", "published"):
        described = {**described, "year": None}
    if _repeats(described, "published", "updated_at"):
        described = {**described, "updated_at": None}
    names = [*_FIRST, *(name for name in described if name not in (*_FIRST, *_NOT_SHOWN))]
    found = {name: " ".join(write_value(described[name]).split()) for name in names
             if described.get(name) not in (None, "", [])}  # fmt: skip
    return {name: value for name, value in found.items() if value and len(value) <= LONG}


def _repeats(described: dict[str, Any], short: str, whole: str) -> bool:
    return short in described and str(described.get(whole) or "").startswith(str(described[short]))


@dataclass(frozen=True)
class IngestContext:
    """Into which collection and under which settings an ingest reads files.

    `decisive` are the inputs, beside a file's bytes, of the fingerprint by which a change is
    noticed; `chunker` identifies how text is split into chunks. Without `renames`, equal bytes
    under another name are always another file. `access` is that of the writer.
    """

    store: Store
    collection: Collection
    settings: Settings
    acl: frozenset[str]
    chunker: object
    decisive: tuple[object, ...]
    renames: bool = True
    access: WriteAccess = OPERATOR

    @property
    def intake(self) -> Intake:
        """Return what ingest reads and writes."""
        return self.store.intake

    @property
    def maintenance(self) -> Maintenance:
        """Return what keeps the directory sound."""
        return self.store.maintenance
