"""How well a sentence answers a question: weighted word coverage and, where served, meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.types import Evidence, SubQuestion, TermWeights
from models.embeddings import Embedder
from reasoning.rules.asked_fields import with_asked_fields
from reasoning.rules.sentences import Sentence, word_scores
from reasoning.rules.wanted import Vector, Wanted, analyse

SEMANTIC_SHARE = 0.45
EMBEDDED_SENTENCES = 16
# A sentence that covers less of the words could answer only with a meaning above 0.9, which few
# reach, so only the first few such sentences are embedded: a paraphrase may share no word.
LEAST_WORDS, FEW = 0.15, 2


class Relevance:
    """Score sentences against sub-questions."""

    def __init__(self, embedder: Embedder | None, weights: TermWeights) -> None:
        """Weigh words by `weights`; without an embedder only words count."""
        self._embedder = embedder
        self._weights = weights

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
        """Return every sentence of the evidence with its score, best first."""
        found: list[Sentence] = []
        for item in evidence:
            found.extend(with_asked_fields(wanted, item, word_scores(wanted, item)))
        found.sort(key=_order)
        if wanted.vector is not None and found:
            found = self._with_meaning(wanted, wanted.vector, found)
            found.sort(key=_order)
        return found

    def _with_meaning(
        self, wanted: Wanted, vector: Vector, found: Sequence[Sentence]
    ) -> list[Sentence]:
        assert self._embedder is not None  # a vector was made with it
        chosen = _spread(found, EMBEDDED_SENTENCES)
        worth_it = [sentence for sentence in chosen if sentence.lexical >= LEAST_WORDS]
        unlikely = [sentence for sentence in chosen if sentence.lexical < LEAST_WORDS]
        worth_it += unlikely[:FEW]
        vectors = self._embedder.embed_documents([_in_context(sentence) for sentence in worth_it])
        scored = [
            replace(sentence, score=(1 - SEMANTIC_SHARE) * sentence.lexical)
            for sentence in [*unlikely[FEW:], *_left_out(found, chosen)]
        ]
        for sentence, cosine in zip(worth_it, (vectors @ vector).tolist(), strict=True):
            meaning = self._embedder.similarity(cosine, wanted.language, sentence.evidence.language)
            blend = (1 - SEMANTIC_SHARE) * sentence.lexical + SEMANTIC_SHARE * meaning
            score = max(blend, sentence.score) if sentence.field else blend
            scored.append(replace(sentence, score=score, semantic=meaning))
        return scored


def _order(sentence: Sentence) -> tuple[float, str, int]:
    return (-sentence.score, sentence.evidence.chunk_id, sentence.start)


def _in_context(sentence: Sentence) -> str:
    heading = sentence.evidence.section or sentence.evidence.title
    return f"{heading}: {sentence.text}" if heading else sentence.text


def _left_out(found: Sequence[Sentence], chosen: Sequence[Sentence]) -> list[Sentence]:
    """Return the best sentence of each piece of evidence that none was chosen of."""
    seen = {sentence.evidence.chunk_id for sentence in chosen}
    left: dict[str, Sentence] = {}
    for sentence in found:
        if sentence.evidence.chunk_id not in seen:
            left.setdefault(sentence.evidence.chunk_id, sentence)
    return list(left.values())


def _spread(found: Sequence[Sentence], limit: int) -> list[Sentence]:
    """Choose sentences to embed: the best by words, but at least one of every piece of evidence."""
    first: dict[str, Sentence] = {}
    for sentence in found:
        first.setdefault(sentence.evidence.chunk_id, sentence)
    chosen = list(first.values())[:limit]
    taken = {(s.evidence.chunk_id, s.start) for s in chosen}
    for sentence in found:
        if len(chosen) >= limit:
            break
        if (sentence.evidence.chunk_id, sentence.start) not in taken:
            chosen.append(sentence)
    return chosen


def evidence_languages(evidence: Sequence[Evidence]) -> frozenset[str]:
    """Return the languages of the evidence."""
    return frozenset(item.language for item in evidence)
