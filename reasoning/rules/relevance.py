"""How likely each sentence of evidence answers a question."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from core.language.sentences import sentence_spans
from core.types import Evidence, SubQuestion, TermWeights
from models.embeddings import Embedder, Vectors
from reasoning.rules.asked_fields import with_asked_fields
from reasoning.rules.features import features, heading_of, spans_of
from reasoning.rules.scorer import scorer
from reasoning.rules.sentences import Sentence
from reasoning.rules.wanted import Wanted, analyse

# The vectors of the sentences of chunks, by chunk id, as the search index keeps them.
SentenceVectors = Callable[[Sequence[str]], dict[str, Vectors]]
VECTOR_SCORE = "vector"
# Of sentences about as likely, one in the language of the question is read more easily.
FOREIGN_ODDS = 2.5


class Relevance:
    """Score sentences against sub-questions."""

    def __init__(
        self,
        embedder: Embedder | None,
        weights: TermWeights,
        vectors: SentenceVectors | None = None,
    ) -> None:
        """Weigh words by `weights`; without an embedder only words count.

        Sentences whose `vectors` are not stored are embedded.
        """
        self._embedder = embedder
        self._weights = weights
        self._vectors = vectors

    def wanted(self, question: SubQuestion, languages: frozenset[str]) -> Wanted:
        """Analyse a sub-question under the languages of the evidence."""
        return analyse(question, languages, self._weights, self._embedder)

    def rarity(self, found: list[str]) -> dict[str, float]:
        """Return how rare terms are, 0..1: 1 for what no document uses."""
        from reasoning.rules.wanted import UNUSED_TERM

        weights = self._weights([*found, UNUSED_TERM])
        most = weights[UNUSED_TERM] or 1.0
        return {term: min(1.0, weights[term] / most) for term in found}

    def sentences(self, wanted: Wanted, evidence: Sequence[Evidence]) -> list[Sentence]:
        """Return every sentence of the evidence, the most likely answer first."""
        meaning = wanted.vector is not None and self._embedder is not None
        found, rows = features(wanted, evidence, self.likeness(wanted, evidence))
        if not found:
            return []
        odds = scorer(meaning=meaning).odds(rows).tolist()
        by_chunk: dict[str, list[Sentence]] = {item.chunk_id: [] for item in evidence}
        for candidate, one in zip(found, odds, strict=True):
            by_chunk[candidate.evidence.chunk_id].append(
                Sentence.of(candidate, one, meaning=meaning)
            )
        scored = [
            sentence
            for item in evidence
            for sentence in with_asked_fields(wanted, item, by_chunk[item.chunk_id])
        ]
        return sorted(scored, key=lambda one: _order(wanted, one))

    def likeness(self, wanted: Wanted, evidence: Sequence[Evidence]) -> list[Vectors]:
        """Return how like a question the sentences of each piece of evidence are, 0..1.

        The likeness of the whole comes last.
        """
        import numpy as np

        embedder = self._embedder
        if embedder is None or wanted.vector is None:
            return [np.zeros(len(spans_of(one.text, one.kind)) + 1, "float32") for one in evidence]
        stored = self._vectors([one.chunk_id for one in evidence]) if self._vectors else {}
        found = []
        for item in evidence:
            spans = spans_of(item.text, item.kind)
            kept = sentence_spans(item.text)
            rows = stored.get(item.chunk_id)
            if rows is not None and len(rows) == len(kept):
                places = [
                    next((n for n, one in enumerate(kept) if one[0] <= start < one[1]), 0)
                    for start, _ in spans
                ]
                rows = rows[places] if spans else rows
            elif len(spans) == 1 and VECTOR_SCORE in item.scores:
                rows = None
            else:
                heading = heading_of(item)
                texts = [item.text[start:end] for start, end in spans]
                rows = embedder.embed_documents([f"{heading}: {text}" for text in texts])
            best = item.scores.get(VECTOR_SCORE, 0.0)
            cosines = np.full(len(spans), best) if rows is None else rows @ wanted.vector
            whole = item.scores.get(VECTOR_SCORE, float(cosines.max(initial=0.0)))
            found.append(
                np.array(
                    [
                        embedder.similarity(cosine, wanted.language, item.language)
                        for cosine in (*cosines.tolist(), whole)
                    ],
                    dtype=np.float32,
                )
            )
        return found


def _order(wanted: Wanted, sentence: Sentence) -> float:
    foreign = sentence.evidence.language != wanted.language
    return FOREIGN_ODDS * foreign - sentence.odds


def evidence_languages(evidence: Sequence[Evidence]) -> frozenset[str]:
    """Return the languages of the evidence."""
    return frozenset(item.language for item in evidence)
