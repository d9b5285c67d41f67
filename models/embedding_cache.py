"""Remember the vectors of short texts that come again: tool specs, questions, sentences."""

from __future__ import annotations

import json
from collections.abc import Sequence

from core.cache.cache import Cache
from models.embeddings import CutsWords, Embedder, Passage, Reads
from models.table import READER, published_weights
from models.vectors import Vectors

QUERY, PASSAGE, READ = "query", "passage", "read"
READ_COLUMNS = 3  # of what is read: odds, start, end


class CachedEmbedder:
    """Embed each text once for as long as it is remembered; safe to share between threads.

    A vector depends on the model and the text alone. `scope` keeps whoever asks in one scope, such
    as a tenant, from learning by the time it takes which texts another one has embedded.
    """

    def __init__(self, embedder: Embedder, cache: Cache, scope: str = "") -> None:
        """Remember in `cache` what `embedder` gives."""
        self._embedder = embedder
        self._cache = cache
        self._scope = scope
        self.model_id = embedder.model_id
        self.dimension = embedder.dimension
        self.languages = embedder.languages
        self.similarity = embedder.similarity
        self.reads = isinstance(embedder, Reads) and embedder.reads

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Embed only the texts that are not remembered and that no other thread is embedding."""
        import numpy as np

        keys = [self._key(PASSAGE, text) for text in texts]
        texts_of = dict(zip(keys, texts, strict=True))

        def make(missing: list[str]) -> dict[str, bytes]:
            rows = self._embedder.embed_documents([texts_of[key] for key in missing])
            return {key: _packed(row) for key, row in zip(missing, rows, strict=True)}

        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        found = self._cache.many(keys, make)
        return np.stack([_unpacked(found[key]) for key in keys])

    def embed_query(self, text: str) -> Vectors:
        """Embed a question unless it is remembered."""
        key = self._key(QUERY, text)
        found = self._cache.many(
            [key], lambda missing: {key: _packed(self._embedder.embed_query(text))}
        )
        return _unpacked(found[key])

    def read(self, question: str, passages: Sequence[Passage]) -> list[Vectors]:
        """Read only the passages that are not remembered; nothing where the original reads none."""
        if not isinstance(self._embedder, Reads):
            return []
        reader = self._embedder
        kind = f"{READ} {published_weights()[READER]['sha256']}"
        keys = [self._key(kind, json.dumps([question, *passage])) for passage in passages]
        passage_of = dict(zip(keys, passages, strict=True))

        def make(missing: list[str]) -> dict[str, bytes]:
            rows = reader.read(question, [passage_of[key] for key in missing])
            return {key: _packed(row) for key, row in zip(missing, rows, strict=True)}

        found = self._cache.many(keys, make)
        return [_unpacked(found[key]).reshape(-1, READ_COLUMNS) for key in keys]

    def pieces(self, word: str) -> int:
        """Return what the original returns, 1 where it cuts no words."""
        return self._embedder.pieces(word) if isinstance(self._embedder, CutsWords) else 1

    def _key(self, kind: str, text: str) -> str:
        return self._cache.key(model=self.model_id, scope=self._scope, kind=kind, text=text)


def _packed(row: Vectors) -> bytes:
    return bytes(row.astype("<f4").tobytes())


def _unpacked(value: bytes) -> Vectors:
    import numpy as np

    return np.frombuffer(value, dtype="<f4").astype(np.float32, copy=False)
