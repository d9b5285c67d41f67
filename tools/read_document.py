"""`read_document`: a chunk with its neighbours, for what a search cut off."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from core.auth import AuthContext
from core.types import Evidence, FrozenModel
from tools.types import Tool, ToolResult

MAX_TEXTS = 10  # volumes of one book


class ReadArguments(FrozenModel):
    """Name the chunk and how many chunks on either side to read.

    With `full_text`, the chunk is one of a book's record, and its full texts are read from their
    beginning.
    """

    chunk_id: str = Field(min_length=1, max_length=64)
    reach: int = Field(1, ge=0, le=5)
    full_text: bool = False


class ReadDocument(Tool):
    """Read around a chunk."""

    name = "read_document"
    purpose = "Read the chunks next to one that was found, in reading order."
    not_for: ClassVar = ["finding documents: it needs the id of a chunk that was found"]
    arguments = ReadArguments

    def run(self, arguments: dict[str, Any], auth: AuthContext, deadline: float) -> ToolResult:
        """Return the chunk and its neighbours; a chunk the caller may not see gives nothing."""
        given = self._checked(ReadArguments, arguments, auth, deadline)
        catalogue, collection = self._index.catalogue, self._index.collection.id
        begun = [given.chunk_id]
        if given.full_text:
            texts = catalogue.full_texts(auth, collection, given.chunk_id)
            begun = [text.chunk_id for text in texts[:MAX_TEXTS]]
        evidence = [item for chunk_id in begun for item in self._around(auth, chunk_id, given)]
        return ToolResult(evidence=evidence, auth_filter=auth.describe())

    def _around(self, auth: AuthContext, chunk_id: str, given: ReadArguments) -> list[Evidence]:
        """Return a chunk and those next to it, the nearest with the best score."""
        chunks = self._index.catalogue.neighbours(
            auth, self._index.collection.id, chunk_id, given.reach
        )
        centre = next((c.ordinal for c in chunks if c.chunk_id == chunk_id), 0)
        return [
            chunk.model_copy(
                update={
                    "tool": self.name,
                    "query": given.chunk_id,
                    "score": 1.0 / (1 + abs(chunk.ordinal - centre)),
                }
            )
            for chunk in chunks
        ]
