"""The baseline every figure of docs/evals/retrieval.md is beside: BM25, dense, and their RRF.

BM25 is bm25s over whole passages: Snowball stems and stop words, pairs of characters for Chinese.
Dense is the embedded all-MiniLM over whole passages, cut at its 256 tokens, by an exact scan.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import bm25s
import numpy as np
import Stemmer

from models.embeddings import Embedder

DEPTH = 1000
RRF_DEPTH = 100
RRF_CONSTANT = 60
STEMMERS = {"en": "english", "ru": "russian"}
HAN = re.compile(r"[\u4e00-\u9fff]")
WORDS = re.compile(r"\w+")


class Baseline:
    """Rank whole passages by BM25, by vectors, and by reciprocal rank fusion of both."""

    def __init__(
        self, documents: Sequence[tuple[str, str]], language: str, embedder: Embedder, cache: Path
    ) -> None:
        """Index (document id, text) pairs of one language."""
        self.ids = [name for name, _ in documents]
        self._embedder = embedder
        self._language = language
        self._stemmer = Stemmer.Stemmer(STEMMERS[language]) if language in STEMMERS else None
        texts = [text for _, text in documents]
        self._bm25 = bm25s.BM25()
        self._bm25.index([self.words(text) for text in texts], show_progress=False)
        self._rows = cached_vectors(texts, embedder, cache)

    def words(self, text: str) -> list[str]:
        """Cut a text as bm25s does, or into pairs of characters when it is Chinese."""
        if self._language == "zh":
            found: list[str] = []
            for word in WORDS.findall(text):
                pairs = [word[i : i + 2] for i in range(len(word) - 1)]
                found += (pairs or [word]) if HAN.search(word) else [word.lower()]
            return found
        stopwords = "en" if self._language == "en" else None
        tokens = bm25s.tokenize(
            [text], stopwords=stopwords, stemmer=self._stemmer, show_progress=False,
            return_ids=False,
        )  # fmt: skip
        return list(tokens[0])

    def rank(self, text: str) -> dict[str, list[str]]:
        """Return the ranked document ids of each baseline."""
        words = self.words(text)
        lexical = self._bm25.get_scores(words) if words else np.zeros(len(self.ids))
        bm25 = [self.ids[row] for row in _best(lexical) if lexical[row] > 0]
        vector = self._rows @ self._embedder.embed_query(text)
        dense = [self.ids[row] for row in _best(vector)]
        return {"bm25": bm25, "dense": dense, "rrf": _fuse(bm25, dense)}


def _best(scores: np.ndarray) -> list[int]:
    found: list[int] = np.argsort(-scores, kind="stable")[:DEPTH].tolist()
    return found


def _fuse(*rankings: Sequence[str]) -> list[str]:
    scores: dict[str, float] = defaultdict(float)
    for ranking in rankings:
        for rank, name in enumerate(ranking[:RRF_DEPTH], start=1):
            scores[name] += 1.0 / (RRF_CONSTANT + rank)
    return sorted(scores, key=lambda name: -scores[name])


def cached_vectors(texts: Sequence[str], embedder: Embedder, cache: Path) -> np.ndarray:
    """Return the vectors of whole passages; the same list is embedded once."""
    digest = hashlib.sha256("\x00".join([embedder.model_id, *texts]).encode()).hexdigest()[:24]
    path = cache / "baselines" / f"{digest}.npy"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, embedder.embed_documents(texts))
    rows: np.ndarray = np.load(path)
    return rows
