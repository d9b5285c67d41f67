"""How likely each sentence of evidence answers a question."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence

import numpy as np

from core.language.sentences import sentence_spans
from core.types import Evidence, SubQuestion, TermWeights
from languages.language import find_language
from models.embeddings import Embedder, Reads, Vectors
from reasoning.rules.answering.blocks import spans_of
from reasoning.rules.answering.features import features, spoken_in
from reasoning.rules.answering.headings import heading_of
from reasoning.rules.answering.reading import UNREADABLE, ReaderScore, read_sentences
from reasoning.rules.answering.scorer import MEANING, READING, WORDS, scorer
from reasoning.rules.answering.sentences import Sentence
from reasoning.rules.answering.wanted import QueryTerms, analyse

# The vectors of the sentences of chunks, by chunk id, as the search index keeps them.
SentenceVectors = Callable[[Sequence[str]], dict[str, Vectors]]
VECTOR_SCORE = "vector"
# Of sentences about as likely, one in the language of the question is read more easily.
FOREIGN_ODDS = 2.5
HALF = 0.5  # of 20 questions how to do something 15 were answered with it, 14 without (by hand)
SPOKEN = 0.25  # of the sentences of a passage in a language; fewer only quote it (by hand)


class Relevance:
    """Score sentences against sub-questions."""

    def __init__(
        self,
        embedder: Embedder | None,
        weights: TermWeights,
        vectors: SentenceVectors | None = None,
        *,
        reads: bool = True,
    ) -> None:
        """Weigh words by `weights`; without an embedder only words count.

        Sentences whose `vectors` are not stored are embedded. With `reads` the embedder's reader
        looks at the likeliest, where it has one.
        """
        self._reader = embedder if reads and isinstance(embedder, Reads) else None
        self._embedder = embedder
        self._weights = weights
        self._vectors = vectors

    def wanted(self, question: SubQuestion, languages: frozenset[str]) -> QueryTerms:
        """Analyse a sub-question under the languages of the evidence."""
        return analyse(question, languages, self._weights, self._embedder)

    def sentences(self, wanted: QueryTerms, evidence: Sequence[Evidence]) -> list[Sentence]:
        """Return every sentence of the evidence, the most likely answer first."""
        meaning = wanted.vector is not None and self._embedder is not None
        found, rows = features(wanted, evidence, self.likeness(wanted, evidence))
        if not found:
            return []
        odds = scorer(MEANING if meaning else WORDS).odds(rows).tolist()
        read = [ReaderScore()] * len(found)
        if meaning and self._reader is not None and self._reader.reads:
            read = read_sentences(self._reader, wanted.text, found, odds)
            column = np.array([[one.odds] for one in read], dtype=np.float32)
            joint = scorer(READING).odds(np.hstack([rows, column])).tolist()
            # The reader has learnt from no such questions.
            share = HALF if wanted.howto or wanted.defines or wanted.enumerates else 1.0
            odds = [
                alone if one.evidence.kind in UNREADABLE else share * both + (1 - share) * alone
                for one, alone, both in zip(found, odds, joint, strict=True)
            ]
        made = [
            Sentence.of(candidate, one, told.value, meaning=meaning)
            for candidate, one, told in zip(found, odds, read, strict=True)
        ]
        return sorted(made, key=lambda one: _order(wanted, one))

    def rows(self, evidence: Sequence[Evidence], *, own: bool = False) -> list[Vectors]:
        """Return the vectors of the sentences of each piece of evidence, as `spans_of` has them.

        What is not stored is embedded, all together; zeros without an embedder. With `own` none
        are given of a single sentence whose score by meaning is known.
        """
        stored = self._vectors([one.chunk_id for one in evidence]) if self._vectors else {}
        size = self._embedder.dimension if self._embedder is not None else 1
        found: list[Vectors] = []
        texts: list[str] = []
        lacking: list[tuple[int, int, int]] = []
        for item in evidence:
            spans, kept = spans_of(item.text, item.kind), sentence_spans(item.text)
            rows = stored.get(item.chunk_id)
            if rows is not None and len(rows) == len(kept) and spans:
                starts = [start for start, _ in kept]
                rows = rows[[max(0, bisect_right(starts, start) - 1) for start, _ in spans]]
            elif own and len(spans) == 1 and VECTOR_SCORE in item.scores:
                rows = np.zeros((0, size), "float32")
            else:
                rows = np.zeros((len(spans), size), "float32")
                heading = heading_of(item)
                lacking.append((len(found), len(texts), len(texts) + len(spans)))
                texts += [f"{heading}: {item.text[start:end]}" for start, end in spans]
            found.append(rows)
        if self._embedder is not None and texts:
            made = self._embedder.embed_documents(texts)
            for place, first, last in lacking:
                found[place] = made[first:last]
        return found

    def likeness(self, wanted: QueryTerms, evidence: Sequence[Evidence]) -> list[Vectors]:
        """Return how like a question the sentences of each piece of evidence are, 0..1.

        The likeness of the whole comes last.
        """
        embedder = self._embedder
        if embedder is None or wanted.vector is None:
            return [np.zeros(len(spans_of(one.text, one.kind)) + 1, "float32") for one in evidence]
        found = []
        for item, rows in zip(evidence, self.rows(evidence, own=True), strict=True):
            spans = spans_of(item.text, item.kind)
            # Of a record in several languages all vectors lean towards that of the question.
            texts = [item.text[start:end] for start, end in spans]
            own = sum(
                spoken_in(one, item.language, wanted.language) == wanted.language for one in texts
            )
            language = wanted.language if own >= SPOKEN * len(spans) else item.language
            best = item.scores.get(VECTOR_SCORE, 0.0)
            cosines = rows @ wanted.vector if len(rows) else np.full(len(spans), best)
            whole = item.scores.get(VECTOR_SCORE, float(cosines.max(initial=0.0)))
            likeness = [
                embedder.similarity(cosine, wanted.language, language)
                for cosine in (*cosines.tolist(), whole)
            ]
            found.append(np.array(likeness, dtype=np.float32))
        return found


def _order(wanted: QueryTerms, sentence: Sentence) -> float:
    shows = find_language(wanted.language).shows  # a record may have fields of several languages
    other = sentence.evidence.language != wanted.language
    foreign = re.search(shows, sentence.text) is None if shows else other
    return FOREIGN_ODDS * foreign - sentence.odds


def evidence_languages(evidence: Sequence[Evidence]) -> frozenset[str]:
    """Return the languages of the evidence."""
    return frozenset(item.language for item in evidence)
