"""How many fields the records of a collection have, so that one file cannot add too many."""

from __future__ import annotations

from core.auth import AuthContext
from core.settings import Settings
from ingest.types import LoadFailure, ParsedDocument
from stores.catalogue import Collection
from stores.store import Store


class FieldNames:
    """Know the fields of a collection's records, and which records may add one.

    What is there already is never refused; what is removed meanwhile counts until the next ingest.
    """

    def __init__(
        self,
        store: Store,
        collection: Collection,
        settings: Settings,
        writer: AuthContext | None = None,
    ) -> None:
        """Read the names when the first record comes: those that `writer` may see, None for all."""
        self._store = store
        self._writer = writer
        self._collection = collection
        self._most = settings.max_collection_fields
        self._names: set[str] | None = None

    def refusal(self, document: ParsedDocument, file: str) -> LoadFailure | None:
        """Take the fields of a document in, or say of its file why they are too many."""
        if not document.fields:
            return None
        if self._names is None:
            self._names = self._store.records.names(self._collection.id, self._writer)
        new = document.fields.keys() - self._names
        if new and len(self._names) + len(new) > self._most:
            reason = (
                f"its records have new fields, such as {min(new)[:60]!r}, and those of a collection"
                f" have at most {self._most:,} (max_collection_fields)"
            )
            return LoadFailure(path=file, reason=reason)
        self._names |= new
        return None
