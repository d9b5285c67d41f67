"""Choose the span of a chunk that a claim rests on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from core.language.analysis import content_terms, terms
from core.language.sentences import record_spans, sentence_spans
from core.types import Citation, Evidence
from models.embeddings import Embedder
from reasoning.verification import LEAST_OVERLAP, difference

LONGEST_RUN = 3  # sentences


class _Run(NamedTuple):
    """Hold a run of sentences with the share of the claim's words in it."""

    start: int
    end: int
    overlap: float


def cite(claim: str, item: Evidence, embedder: Embedder | None = None) -> tuple[Citation, float]:
    """Return the shortest run of 1 to 3 sentences that supports a claim, and its overlap 0..1.

    When none does, the run that shares most words; where no word is shared, as across languages,
    the sentence of the nearest meaning between its neighbours, else the first run.
    """
    located = record_spans if item.kind == "record" else sentence_spans
    spans = located(item.text) or [(0, len(item.text))]
    runs = _runs(claim, item, spans)
    best = max(runs, key=lambda run: run.overlap)
    for run in runs:
        enough = run.overlap >= LEAST_OVERLAP
        if enough and not difference(claim, item.text[run.start : run.end]):
            best = run
            break
    start, end = (best.start, best.end) if best.overlap else _nearest(claim, item, spans, embedder)
    return item.cited(start, end), best.overlap


def _runs(claim: str, item: Evidence, spans: Sequence[tuple[int, int]]) -> list[_Run]:
    """Return all runs, short ones first, each length in the order of the text."""
    said = set(content_terms(claim, item.language))
    held = [said & set(terms(item.text[start:end], item.language)) for start, end in spans]
    runs = []
    for size in range(1, min(LONGEST_RUN, len(spans)) + 1):
        for first in range(len(spans) - size + 1):
            shared = frozenset().union(*held[first : first + size])
            overlap = len(shared) / len(said) if said else 0.0
            runs.append(_Run(spans[first][0], spans[first + size - 1][1], overlap))
    return runs


def _nearest(
    claim: str, item: Evidence, spans: Sequence[tuple[int, int]], embedder: Embedder | None
) -> tuple[int, int]:
    place = 0
    served = None if embedder is None else embedder.languages
    if embedder is not None and (served is None or item.language in served):
        texts = [item.text[start:end] for start, end in spans]
        vectors = embedder.embed_documents([claim, *texts])
        place = int((vectors[1:] @ vectors[0]).argmax())
    first = min(max(0, place - 1), max(0, len(spans) - LONGEST_RUN))
    return spans[first][0], spans[min(len(spans), first + LONGEST_RUN) - 1][1]
