"""Made-up documents for benchmarks of search indexes."""

from __future__ import annotations

from stores.sqlite.catalogue import Collection
from stores.sqlite.rows import ChunkRow, DocumentRow

DIMENSION = 384
LENGTH = 90  # words of a chunk, as the catalogue counts them
MODEL = "made-up"


def document(
    collection: Collection, number: int, texts: list[str], *, source: str, closed: bool
) -> DocumentRow:
    """Return a document with one chunk per text."""
    name = f"{collection.tenant}{number:07}"
    chunks = [
        ChunkRow(f"{name}-{i:011}", i, text, "text", "", None, LENGTH, f"{name}{i}")
        for i, text in enumerate(texts)
    ]
    return DocumentRow(
        key=name,
        document_id=name,
        file=name,
        source=source,
        title=texts[0][:40],
        format="text",
        language="en",
        is_record=False,
        version="",
        updated_at="",
        content_hash=name,
        metadata={},
        fields=[],
        chunks=chunks,
        acl=frozenset({"others"}) if closed else frozenset(),
    )
