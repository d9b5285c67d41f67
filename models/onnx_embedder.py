"""Embedders that run as ONNX files, with one vector per span of text where pooling allows it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.errors import ModelError
from models.digest import EmbedderSpec
from models.onnx_session import OnnxSession
from models.vectors import Vectors, checked_rows, unit_rows

Span = tuple[int, int]


class OnnxEmbedder:
    """Run an exported embedder through onnxruntime and tokenizers."""

    backend = "onnx"

    def __init__(self, session: OnnxSession, spec: EmbedderSpec) -> None:
        """Take an open file and what is known of the model."""
        self._session = session
        self._spec = spec
        self.model_id = spec.model_id
        self.languages = spec.languages
        self.similarity = spec.similarity
        self.dimension: int = session.widths["embedding"]

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Embed passages; each is cut at the length the model was made for."""
        return self._embed([self._spec.passage_prompt + text for text in texts])

    def embed_query(self, text: str) -> Vectors:
        """Embed one question."""
        vector: Vectors = self._embed([self._spec.query_prompt + text])[0]
        return vector

    def pieces(self, word: str) -> int:
        """Return the number of pieces of a word, without the two marks around them."""
        return len(self._session.encode([word])[0].ids) - 2

    def _embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        for rows, (embedding,) in self._session.run(self._session.encode(texts), ["embedding"]):
            vectors[rows] = embedding
        return checked_rows(vectors, self.dimension, self.model_id)


class OnnxSpanEmbedder(OnnxEmbedder):
    """Embed passages and parts of them in one pass, for models that pool by the mean."""

    def embed_passages(
        self, texts: Sequence[str], spans: Sequence[Sequence[Span]]
    ) -> tuple[Vectors, list[Vectors]]:
        """Return the passages' vectors and, per passage, one unit vector per character span.

        A span's vector is the mean of the states of the tokens that touch it, so it knows the
        passage around it ("late chunking", Günther et al. 2024, arXiv 2409.04701). A span without
        tokens, because the passage was cut before it, is embedded as a text of its own.
        """
        for text, wanted in zip(texts, spans, strict=True):
            _check_spans(text, wanted)
        prompt = self._spec.passage_prompt
        encodings = self._session.encode([prompt + text for text in texts])
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        parts: list[Vectors] = [
            np.zeros((len(wanted), self.dimension), dtype=np.float32) for wanted in spans
        ]
        for rows, (embedding, states) in self._session.run(encodings, ["embedding", "tokens"]):
            vectors[rows] = embedding
            for line, i in enumerate(rows):
                offsets = np.array(encodings[i].offsets) - len(prompt)
                _mean_of_spans(parts[i], spans[i], offsets, states[line])
        self._embed_cut_spans(parts, texts, spans)
        passages = checked_rows(vectors, self.dimension, self.model_id)
        return passages, [unit_rows(part, self.model_id) for part in parts]

    def _embed_cut_spans(
        self, parts: list[Vectors], texts: Sequence[str], spans: Sequence[Sequence[Span]]
    ) -> None:
        cut = [
            (i, j) for i, part in enumerate(parts) for j, row in enumerate(part) if not row.any()
        ]
        alone = [texts[i][slice(*spans[i][j])] for i, j in cut]
        for (i, j), vector in zip(cut, self.embed_documents(alone), strict=True):
            parts[i][j] = vector


def _mean_of_spans(rows: Vectors, spans: Sequence[Span], offsets: Vectors, states: Vectors) -> None:
    """Fill one row per span from states of shape (tokens, dimension); leave rows without tokens.

    `offsets` has shape (tokens, 2): where each token begins and ends in the passage.
    """
    inside = offsets[:, 1] > offsets[:, 0]  # special tokens cover nothing
    for j, (start, end) in enumerate(spans):
        touched = inside & (offsets[:, 0] < end) & (offsets[:, 1] > start)
        if touched.any():
            rows[j] = states[: len(offsets)][touched].mean(axis=0)


def _check_spans(text: str, spans: Sequence[Span]) -> None:
    for start, end in spans:
        if not 0 <= start <= end <= len(text):
            raise ModelError(
                f"a span must lie inside its passage of {len(text)} characters",
                value=(start, end),
                hint="give (start, end) in characters of the passage",
            )
