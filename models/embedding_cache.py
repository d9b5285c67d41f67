"""Remember the vectors of short texts that come again: tool specs, questions, sentences."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

from models.embeddings import Embedder, Vectors


class CachedEmbedder:
    """Keep the newest `size` vectors of another embedder; safe to share between threads."""

    def __init__(self, embedder: Embedder, size: int) -> None:
        """Cache what `embedder` gives."""
        self._embedder = embedder
        self._size = size
        self._documents: OrderedDict[str, Vectors] = OrderedDict()
        self._queries: OrderedDict[str, Vectors] = OrderedDict()
        self._lock = Lock()
        self.model_id = embedder.model_id
        self.dimension = embedder.dimension
        self.languages = embedder.languages

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Embed only the texts that are not remembered."""
        import numpy as np

        with self._lock:
            known = {text: self._documents[text] for text in texts if text in self._documents}
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if missing:
            vectors = self._embedder.embed_documents(missing)
            known.update(zip(missing, vectors, strict=True))
            self._remember(self._documents, {text: known[text] for text in missing})
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        return np.stack([known[text] for text in texts])

    def embed_query(self, text: str) -> Vectors:
        """Embed a question unless it is remembered."""
        with self._lock:
            if text in self._queries:
                return self._queries[text]
        vector = self._embedder.embed_query(text)
        self._remember(self._queries, {text: vector})
        return vector

    def _remember(self, cache: OrderedDict[str, Vectors], found: dict[str, Vectors]) -> None:
        with self._lock:
            cache.update(found)
            while len(cache) > self._size:
                cache.popitem(last=False)
