"""Semantic chunks: similar neighbours together, within bounds, at the price of few calls."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from ingest.chunkers.chunkers import SemanticChunker, SentenceChunker
from ingest.chunkers.packing import ChunkSpan
from ingest.types import Block

BIRDS = "A heron stands in the river."
BREAD = "Bread bakes in a hot oven."


class TopicEmbedder:
    """Turn a sentence towards the first axis when it is about birds, else to the second."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        self.calls.append(len(texts))
        rows = [[1.0, 0.0] if "heron" in text else [0.0, 1.0] for text in texts]
        return np.array(rows, dtype=np.float32)


def chunks(
    *blocks: Block, embed: object = None, similarity: float = 0.58, least: int = 20, most: int = 200
) -> list[ChunkSpan]:
    chunker = SemanticChunker(
        embed or TopicEmbedder(),  # type: ignore[arg-type]
        SentenceChunker(100, 0),
        similarity=similarity,
        least=least,
        most=most,
    )
    return list(chunker.cut(blocks))


def test_a_chunk_ends_where_the_topic_changes() -> None:
    text = f"{BIRDS} {BIRDS} {BREAD} {BREAD} {BREAD}"
    assert [cut.text for cut in chunks(Block(text=text))] == [
        f"{BIRDS} {BIRDS}",
        f"{BREAD} {BREAD} {BREAD}",
    ]


def test_a_sentence_is_compared_with_the_mean_of_the_chunk() -> None:
    # One of three sentences is about birds: another bird has a cosine of 1/sqrt(5) = 0.447.
    first, second = f"{BIRDS} {BREAD} {BREAD}", f"{BIRDS} {BIRDS} {BIRDS}"
    text = Block(text=f"{first} {second}")
    assert [cut.text for cut in chunks(text, least=60, similarity=0.45)] == [first, second]
    assert [cut.text for cut in chunks(text, least=60, similarity=0.44)] == [text.text]


def test_a_short_chunk_takes_the_next_sentence_whatever_it_says() -> None:
    assert len(chunks(Block(text=f"{BIRDS} {BREAD}"), least=29)) == 1
    assert len(chunks(Block(text=f"{BIRDS} {BREAD}"), least=20)) == 2


def test_no_chunk_is_longer_than_the_limit() -> None:
    found = chunks(Block(text=f"{BIRDS} " * 20), most=90)
    assert all(60 < len(cut.text) <= 90 for cut in found[:-1])
    assert all(len(cut.text) <= 90 for cut in chunks(Block(text="heron " * 100), most=90))


def test_a_scrap_at_the_end_goes_to_the_chunk_before_it() -> None:
    text = f"{BIRDS} {BIRDS} Bread."
    assert [cut.text for cut in chunks(Block(text=text))] == [text]
    assert [cut.text for cut in chunks(Block(text=text), most=60)] == [f"{BIRDS} {BIRDS}", "Bread."]


def test_only_prose_is_compared() -> None:
    embed = TopicEmbedder()
    code = Block(text="heron = 1\n\nbread = 2", kind="code")
    record = Block(text=f"{BIRDS} {BREAD}", kind="record")
    found = chunks(code, record, Block(text=BIRDS), embed=embed)
    assert [cut.kind for cut in found] == ["code", "record", "text"]
    assert embed.calls == []  # one sentence has nothing to be compared with


def test_a_long_text_is_embedded_in_slabs() -> None:
    embed = TopicEmbedder()
    chunks(Block(text=f"{BIRDS} " * 600), embed=embed)
    assert sum(embed.calls) == 600 and max(embed.calls) <= 256


@pytest.mark.parametrize("value", [0.0, 1e-30])
def test_vectors_without_length_do_not_merge(value: float) -> None:
    def nothing(texts: Sequence[str]) -> np.ndarray:
        return np.full((len(texts), 2), value, dtype=np.float32)

    assert len(chunks(Block(text=f"{BIRDS} {BREAD}"), embed=nothing)) == 2
