"""What is read under a time limit ends soon after it; words are loaded before it begins."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from builders import piece

from core.budget import TimeLimit, limited_time
from core.settings import Settings
from core.types import SubQuestion
from models.embeddings import Vectors
from reasoning.rules import reasoner
from reasoning.rules.answering.relevance import TOGETHER, Relevance


class SlowEmbedder:
    """Give every text the same vector; the time of the run is up after the first texts."""

    dimension = 2
    languages = None
    model_id = "slow"

    def __init__(self, limit: TimeLimit) -> None:
        self.limit, self.embedded = limit, 0

    def similarity(self, cosine: float, *languages: str) -> float:
        return cosine

    def embed_query(self, text: str) -> Vectors:
        return np.array([1.0, 0.0], "float32")

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.embedded += len(texts)
        while not self.limit.is_up():
            time.sleep(0.001)
        return np.tile(np.array([1.0, 0.0], "float32"), (len(texts), 1))


def test_sentences_that_would_outlast_the_time_are_told_by_their_words() -> None:
    text = " ".join(f"Basin {n} of the pool is {n} metres long." for n in range(1, 5 * TOGETHER))
    question = SubQuestion(
        id="q1", text="How long is basin 7 of the pool?", query="long basin pool", language="en"
    )
    read = Relevance(None, lambda terms: dict.fromkeys(terms, 1.0))
    read.sentences(read.wanted(question, [piece(text)]), [piece(text)])  # its words are loaded
    with limited_time(TimeLimit(time.monotonic() + 0.5)) as limit:
        embedder = SlowEmbedder(limit)
        relevance = Relevance(embedder, lambda terms: dict.fromkeys(terms, 1.0))
        wanted = relevance.wanted(question, [piece(text)])
        found = relevance.sentences(wanted, [piece(text)])
    assert embedder.embedded == TOGETHER
    assert len(found) == 5 * TOGETHER - 1
    assert "basin 7" in found[0].text.casefold()


def test_words_are_loaded_once_for_each_language() -> None:
    reasoner.load_words("Wie lang ist das Becken?", Settings(), None)
    reasoner.load_words("Какой длины бассейн?", Settings(), None)
    assert "ru" in reasoner._loaded
