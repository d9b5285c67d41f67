"""Merge neighbouring sentences while they say something alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from core.language.sentences import sentence_spans
from ingest.chunkers.packing import PROSE, fitting, runs
from ingest.chunkers.plain import SentenceChunker
from ingest.chunkers.types import BlockRun, ChunkSpan, Span, cuts
from ingest.types import Block
from models.embeddings import Vectors

Embed = Callable[[Sequence[str]], Vectors]
# Sentences that are embedded in one call: bounds memory for a document of any length.
_SLAB = 256


class SemanticChunker:
    """Let a sentence join the chunk before it while the chunk is short or the two are similar.

    A chunk takes the next sentence below `least` characters always, below `most` characters when
    the cosine between the sentence and the mean of the chunk's sentences is at least `similarity`.
    Whatever is not prose is cut by `others`.
    """

    def __init__(
        self, embed: Embed, others: SentenceChunker, *, similarity: float, least: int, most: int
    ) -> None:
        """Compare sentences by the unit vectors that `embed` gives."""
        self._embed = embed
        self._others = others
        self._similarity = similarity
        self._least = least
        self._most = most

    def cut(self, blocks: Sequence[Block]) -> Iterator[ChunkSpan]:
        """Yield the chunks of a document."""
        for run in runs(blocks, PROSE):
            prose = run.parts[0].kind == "text"
            yield from cuts(run, self._spans(run) if prose else self._others.spans(run))

    def _spans(self, run: BlockRun) -> Iterable[Span]:
        sentences = fitting(run.text, sentence_spans(run.text), self._most)
        if len(sentences) < 2 or sentences[-1][1] - sentences[0][0] <= self._least:
            return [(sentences[0][0], sentences[-1][1])] if sentences else []
        return self._without_scraps(self._merged(run.text, sentences))

    def _merged(self, text: str, sentences: list[Span]) -> Iterator[Span]:
        """Merge similar neighbours."""
        vectors = self._vectors(text, sentences)
        start, end = sentences[0]
        total = next(vectors).copy()
        for (following, last), vector in zip(sentences[1:], vectors, strict=True):
            fits = last - start <= self._most
            if fits and (end - start < self._least or self._alike(total, vector)):
                total += vector
            else:
                yield start, end
                start, total = following, vector.copy()
            end = last
        yield start, end

    def _alike(self, total: Vectors, vector: Vectors) -> bool:
        """Compare a sentence with the mean of those before it."""
        length = float((total @ total) ** 0.5)
        return length > 0 and float(total @ vector) / length >= self._similarity

    def _vectors(self, text: str, sentences: list[Span]) -> Iterator[Vectors]:
        """Yield the vector of each sentence, embedding a slab at a time."""
        waiting = iter(sentences)
        while slab := list(islice(waiting, _SLAB)):
            yield from self._embed([text[start:end] for start, end in slab])

    def _without_scraps(self, spans: Iterable[Span]) -> Iterator[Span]:
        """Give a chunk that stayed too short to the one before it where that has room."""
        held: Span | None = None
        for span in spans:
            if held is None:
                held = span
            elif span[1] - span[0] < self._least and span[1] - held[0] <= self._most:
                held = held[0], span[1]
            else:
                yield held
                held = span
        if held is not None:
            yield held
