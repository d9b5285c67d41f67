"""`summarise`: the passages that stand for a document, or for all the caller may see."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from core.auth import AuthContext
from core.types import Evidence, FrozenModel
from languages.language import find_language
from models.vectors import central
from retrievers.titles import named
from retrievers.types import Vector
from stores.sqlite.listing import DocumentName
from tools.arguments import checked
from tools.plain import PlainTool, in_place
from tools.record_rows import row_evidence
from tools.types import ToolResult

PASSAGES = 12  # of one document; its most central sentences are looked for in these
DOCUMENTS, BEGINNING = 5, 4  # of a collection, and the first passages of each of these


class SummaryArguments(FrozenModel):
    """Name a document by its title or file, "" for the whole collection.

    With `near` documents of a similar name are found where none is called so.
    """

    document: str = Field("", max_length=8000)
    near: bool = False
    language: str | None = Field(None, max_length=8)


class Summarise(PlainTool):
    """Read the passages that represent the document."""

    name = "summarise"
    purpose = "Read the most central passages of a document, or of the whole collection."
    not_for: ClassVar = ["questions about anything that a document says"]
    arguments = SummaryArguments

    def run(self, arguments: dict[str, Any], auth: AuthContext, deadline: float) -> ToolResult:
        """Return what is read and its passages in their order, else documents of a similar name."""
        given = checked(self.name, SummaryArguments, arguments, auth, deadline)
        known = self._index.catalogue.document_names(auth, self._index.collection.id)
        found = named(given.document, known, sure=given.near)
        meant = found.documents if given.document else known
        if meant:
            keys = self._document(meant) if given.document else self._collection(meant)
            held = self._read(auth, keys)
            evidence = [self._row(meant, held, given.language), *held]
        else:
            evidence = self._read(auth, [one.first for one in found.near] if given.near else [])
        return ToolResult(
            evidence=in_place(evidence, self.name, given.document or self._index.collection.name),
            auth_filter=auth.describe(),
            notes=[] if meant else [f"no document is called “{given.document}”"],
        )

    def _document(self, meant: Sequence[DocumentName]) -> list[str]:
        keys = self._index.catalogue.chunk_ids([one.row for one in meant])
        return (
            keys if len(keys) <= PASSAGES else sorted(self._central(keys, PASSAGES), key=keys.index)
        )

    def _collection(self, meant: Sequence[DocumentName]) -> list[str]:
        """Return the beginnings of the most central documents, as their first passages tell."""
        rows = {one.first: one.row for one in meant}
        return [
            key
            for first in self._central(list(rows), DOCUMENTS)
            for key in self._index.catalogue.chunk_ids([rows[first]])[:BEGINNING]
        ]

    def _row(
        self, meant: Sequence[DocumentName], held: Sequence[Evidence], language: str | None
    ) -> Evidence:
        """Say how many documents of which formats there are, and which passages stand for them."""
        counted = Counter(one.format for one in meant)
        kinds = ", ".join(f"{kind}: {count}" for kind, count in counted.most_common())
        counted = find_language(language).messages["documents"]
        text = counted.format(count=len(meant), kinds=kinds)
        return row_evidence(text, self._index.collection.name, held)

    def _central(self, keys: Sequence[str], most: int) -> list[str]:
        """Return the most central of some chunks, of a document the first one among them."""
        begin = (0,) if most == PASSAGES else ()
        return [keys[place] for place in central(self._vectors(keys), most, begin)]

    def _vectors(self, keys: Sequence[str]) -> Vector:
        """Return the unit vectors of chunks, zeros where one is missing."""
        if self._index.embedder is None:
            return np.zeros((len(keys), 1), dtype=np.float32)
        rows = self._index.search.vectors(self._index.collection.id, keys)
        return np.asarray(np.nan_to_num(rows, nan=0.0))

    def _read(self, auth: AuthContext, keys: Sequence[str]) -> list[Evidence]:
        found = self._index.catalogue.evidence(auth, self._index.collection.id, keys)
        return [found[key] for key in keys if key in found]
