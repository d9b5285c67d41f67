"""Fakes and builders that tests share.

`FakeEmbedder` gives a unit vector made of the words of a text: equal words, equal vector, and
more words in common, a larger cosine. `document` builds the row of one document from its texts,
one chunk each, without any loader; `write` stores rows with their vectors as ingest does.

    store, embedder = ...                         # fixtures of conftest.py
    books = store.intake.open_collection("acme", "books", None)
    write(store, books, [document(books, "a", "The cat sat.")], embedder)

`Shelf` holds these three and does the same: `shelf.write(shelf.row("a", "The cat sat."))`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from stores.sqlite.catalogue import Collection
from stores.sqlite.files import Changes, FinishedFile
from stores.sqlite.permissions import OPERATOR
from stores.sqlite.rows import ChunkRow, DocumentRow, FileRow
from stores.store import Store

DIMENSION = 32
WORD = re.compile(r"[^\W\u4e00-\u9fff]+|[\u4e00-\u9fff]")  # a Chinese character is one


class FakeEmbedder:
    """Embed by hashing words; deterministic on every machine and instant."""

    dimension = DIMENSION

    def __init__(self, languages: frozenset[str] | None = None, model_id: str = "fake") -> None:
        self.languages = languages
        self.model_id = model_id

    def similarity(self, cosine: float, *languages: str) -> float:
        return max(0.0, cosine)

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        rows = [self.embed_query(text) for text in texts]
        return np.array(rows, dtype=np.float32).reshape(len(texts), self.dimension)

    def embed_query(self, text: str) -> np.ndarray:
        words = WORD.findall(text.casefold()) or [""]
        total = np.sum([_word_vector(word) for word in sorted(words)], axis=0)
        return (total / np.linalg.norm(total)).astype(np.float32)


def _word_vector(word: str) -> np.ndarray:
    raw = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=DIMENSION).digest()
    return np.frombuffer(raw, dtype=np.uint8).astype(np.float64) - 127.3


class Clock:
    """A clock that a test moves on."""

    def __init__(self, now: Any) -> None:  # noqa: ANN401 - seconds or a moment
        self.now = now

    def __call__(self) -> Any:  # noqa: ANN401
        return self.now


def short_hash(*parts: object) -> str:
    """Hash parts into the form that ids have."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]


def document(
    collection: Collection,
    name: str,
    *texts: str,
    source: str | None = None,
    title: str = "",
    version: str = "",
    acl: Iterable[str] = (),
    fields: Mapping[str, str | float | list[str]] | None = None,
    language: str = "en",
    metadata: Mapping[str, object] | None = None,
) -> DocumentRow:
    """Build a document, one chunk per text; with `fields` (even empty) it is a record."""
    where = (collection.tenant, collection.name, name)
    chunks = [
        ChunkRow(
            chunk_id=short_hash(*where, version, ordinal),
            ordinal=ordinal,
            text=text,
            kind="text",
            section="",
            page=None,
            tokens=len(text.split()),
            content_hash=short_hash(text),
        )
        for ordinal, text in enumerate(texts)
    ]
    rows = [
        (field, str(item), item if isinstance(item, (int, float)) else None)
        for field, value in (fields or {}).items()
        for item in (value if isinstance(value, list) else [value])
    ]
    return DocumentRow(
        key=short_hash(*where),
        document_id=name,
        file=name,
        source=name if source is None else source,
        title=title,
        format="text",
        language=language,
        is_record=fields is not None,
        version=version,
        updated_at="",
        content_hash=short_hash(*where, version, texts, title, source, sorted(acl)),
        metadata=dict(metadata or {}),
        fields=rows,
        chunks=chunks,
        acl=frozenset(acl),
    )


def write(
    store: Store, collection: Collection, documents: Sequence[DocumentRow], embedder: FakeEmbedder
) -> None:
    """Store documents and the vectors of their chunks, and take them as read back."""
    texts = {chunk.content_hash: chunk.text for row in documents for chunk in row.chunks}
    vectors = dict(zip(texts, embedder.embed_documents(list(texts.values())), strict=True))
    write_rows(store, collection, documents, embedder.model_id, vectors)


def write_rows(
    store: Store,
    collection: Collection,
    documents: Sequence[DocumentRow],
    model: str,
    vectors: Mapping[str, np.ndarray],
    sentences: Mapping[str, np.ndarray] | None = None,
) -> None:
    """Store documents with the vectors of some texts as ingest does: the vectors first."""
    store.intake.write_vectors(collection.id, model, vectors, sentences or {}, [])
    store.intake.write_batch(collection, Changes(documents), OPERATOR)
    store.intake.mark_verified(collection.id, [row.document_id for row in documents])


def finish(store: Store, collection: Collection, file: FileRow, names: AbstractSet[str]) -> None:
    """Note a file as read to its end, with the documents of these ids in it."""
    ended = FinishedFile(file, names.__contains__)
    store.intake.write_batch(collection, Changes(finished=[ended]), OPERATOR)


def remove(store: Store, collection: Collection, names: Iterable[str]) -> None:
    """Remove documents by the name they were built with."""
    store.intake.forget_files(collection, names)


class Shelf:
    """Hold a collection in an open store, and the embedder of its vectors."""

    def __init__(self, store: Store, collection: Collection, embedder: FakeEmbedder) -> None:
        self.store, self.collection, self.embedder = store, collection, embedder
        self.id = collection.id
        self.catalogue, self.intake, self.search = store.catalogue, store.intake, store.search
        self.maintenance, self.runs, self.accounts = store.maintenance, store.runs, store.accounts

    def row(self, name: str, *texts: str, **values: Any) -> DocumentRow:
        """Build a document of the collection."""
        return document(self.collection, name, *texts, **values)

    def write(self, *rows: DocumentRow) -> None:
        """Store documents with the vectors of their chunks."""
        write(self.store, self.collection, rows, self.embedder)

    def put(self, texts: Mapping[str, str | Sequence[str]], **values: Any) -> list[DocumentRow]:
        """Build documents by name from a chunk or several, and store them."""
        rows = [
            self.row(name, *([said] if isinstance(said, str) else said), **values)
            for name, said in texts.items()
        ]
        self.write(*rows)
        return rows

    def write_rows(self, rows: Sequence[DocumentRow], *vectors: Mapping[str, np.ndarray]) -> None:
        """Store documents with these vectors of texts, and of their sentences."""
        write_rows(self.store, self.collection, rows, self.embedder.model_id, *vectors)

    def remove(self, names: Iterable[str]) -> None:
        """Remove documents by the name they were built with."""
        remove(self.store, self.collection, names)

    def finish(self, file: FileRow, names: AbstractSet[str]) -> None:
        """Note a file as read to its end, with the documents of these ids in it."""
        finish(self.store, self.collection, file, names)


OpenShelf = Callable[..., Shelf]  # the fixture of conftest.py, with the settings of a store
