"""How well a sentence answers a question: weighted word coverage and, where served, meaning."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from core.language.analysis import content_terms, query_terms, terms
from core.language.sentences import sentence_spans
from core.types import AnswerKind, Evidence, SubQuestion, TermWeights
from models.embeddings import Embedder
from reasoning.rules.lexicon import Lexicon, lexicon
from reasoning.rules.topic import entities, focus, topic

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]
else:
    Vector = Any

# How much a question word counts by where it stands: in the sentence itself, in the headings
# above it, or elsewhere in the same chunk.
IN_SENTENCE, IN_HEADING, IN_CHUNK = 1.0, 0.8, 0.5
TOPIC_WEIGHT = 0.4  # words carried over from an earlier clause
SYNONYM_WEIGHT = 0.8
ENTITY_WEIGHT = 1.5
# Cosines of all-MiniLM-L6-v2 between a question and a sentence: unrelated below, same above.
COSINE_LOW, COSINE_HIGH = 0.25, 0.75
SEMANTIC_SHARE = 0.45
EMBEDDED_SENTENCES = 16
UNUSED_TERM = "\x00"  # no document has it, so its weight is that of any word never used
RECORD_LABEL = re.compile(r"[^\W\d_][\w ]{0,40}: (?=\S)")
SENTENCE_MARKS = (".", "!", "?", "。", "！", "？", "…")
DIGITS = re.compile(r"\d")
YEAR_OR_DATE = re.compile(
    r"\d{3,4}|\d{1,2}[./-]\d{1,2}|[零〇一二三四五六七八九十]{2,}年|\d+年|世纪|century|век|століт|столет"
)
CAPITALISED = re.compile(
    r"(?<=\s)[^\W\d_a-zа-яёіїєґ][\w'’-]+|[\u4e00-\u9fff]|[A-Z][a-z]*[A-Z]\w*", re.UNICODE
)


@dataclass(frozen=True)
class Wanted:
    """Hold what a sub-question looks for: groups of equivalent terms with their weights.

    The first `own` groups are the sub-question's own words, the others its carried topic's;
    `absent` is the share of the own words' weight that the whole collection never uses, and
    `focus_absent` tells that the first thing the question names is among them. `subject` holds the
    terms of the phrase the question is about ("the Acme payments API").
    """

    groups: tuple[tuple[frozenset[str], frozenset[str], float], ...]
    own: int
    absent: float
    focus_absent: bool
    entity_terms: tuple[frozenset[str], ...]
    subject: frozenset[str]
    vector: Vector | None
    language: str
    wants: AnswerKind

    @property
    def total(self) -> float:
        """Return the weight of everything that is looked for."""
        return sum(weight for _, _, weight in self.groups)


@dataclass(frozen=True)
class Sentence:
    """Hold one scored sentence of a piece of evidence; `start` and `end` are in its text."""

    evidence: Evidence
    start: int
    end: int
    score: float
    lexical: float
    semantic: float | None
    matched: frozenset[int]
    has_kind: bool

    @property
    def text(self) -> str:
        """Return the sentence as written."""
        return self.evidence.text[self.start : self.end]


class Relevance:
    """Score sentences against sub-questions."""

    def __init__(self, embedder: Embedder | None, weights: TermWeights) -> None:
        """Weigh words by `weights`; without an embedder only words count."""
        self._embedder = embedder
        self._weights = weights

    def wanted(self, question: SubQuestion, languages: frozenset[str]) -> Wanted:
        """Analyse a sub-question under the languages of the evidence."""
        words = lexicon(question.language)
        known = languages | {question.language}
        own = []
        if words.names_something(steering_removed(question.text, words)):
            own = query_terms(steering_removed(question.text, words), known)
        carried = [g for g in query_terms(question.about, known) if g not in own]
        if not own:
            own, carried = carried, []
        if not own:
            own = query_terms(question.query, known)
        every = sorted({term for group in (*own, *carried) for term in group})
        rarity = self._weights(every)
        names = tuple(
            frozenset(terms(name, question.language)) for name in entities(question.text, words)
        )
        # The words around a name belong to it: "payments" in "the Acme payments API".
        subject = frozenset(content_terms(topic(question.text, words), question.language))
        named = {term for name in names for term in name} | (subject if names else frozenset())
        groups = []
        for group, share in [(g, 1.0) for g in own] + [(g, TOPIC_WEIGHT) for g in carried]:
            weight = min(rarity[term] for term in group) * share
            weight *= ENTITY_WEIGHT if group & named else 1.0
            groups.append((group, _synonyms(group, words), weight))
        unused = self._weights([UNUSED_TERM])[UNUSED_TERM]
        absent = [
            w for group, _, w in groups[: len(own)] if min(rarity[t] for t in group) >= unused
        ]
        return Wanted(
            groups=tuple(groups),
            own=len(own),
            absent=sum(absent) / (sum(w for _, _, w in groups[: len(own)]) or 1.0),
            focus_absent=self._unused(focus(question.text, words), question.language, unused),
            entity_terms=names,
            subject=subject,
            vector=self._vector(question),
            language=question.language,
            wants=question.wants,
        )

    def _unused(self, text: str, language: str, unused: float) -> bool:
        weights = self._weights(content_terms(text, language)) if text else {}
        return bool(weights) and min(weights.values()) >= unused

    def _vector(self, question: SubQuestion) -> Vector | None:
        if self._embedder is None or not self._serves(question.language):
            return None
        return self._embedder.embed_query(f"{question.text} {question.about}".strip())

    def _serves(self, language: str) -> bool:
        served = self._embedder.languages if self._embedder else frozenset()
        return served is None or language in served

    def sentences(self, wanted: Wanted, evidence: Sequence[Evidence]) -> list[Sentence]:
        """Return every sentence of the evidence with its score, best first."""
        found: list[Sentence] = []
        for item in evidence:
            found.extend(_lexical(wanted, item))
        found.sort(key=_order)
        if wanted.vector is not None and found:
            found = self._with_meaning(wanted, wanted.vector, found)
            found.sort(key=_order)
        return found

    def _with_meaning(
        self, wanted: Wanted, vector: Vector, found: Sequence[Sentence]
    ) -> list[Sentence]:
        assert self._embedder is not None  # noqa: S101 - a vector was made with it
        chosen = _spread(found, EMBEDDED_SENTENCES)
        vectors = self._embedder.embed_documents([_in_context(sentence) for sentence in chosen])
        cosines = (vectors @ vector).tolist()
        scored = []
        for sentence, cosine in zip(chosen, cosines, strict=True):
            meaning = min(1.0, max(0.0, (cosine - COSINE_LOW) / (COSINE_HIGH - COSINE_LOW)))
            blend = (1 - SEMANTIC_SHARE) * sentence.lexical + SEMANTIC_SHARE * meaning
            scored.append(replace(sentence, score=blend, semantic=cosine))
        return scored


def steering_removed(text: str, words: Lexicon) -> str:
    """Take out the words that steer a question but name nothing it is about."""
    for name in ("recommend", "recent", "filler"):
        text = words.remove(name, text)
    return text


def subject_fit(wanted: Wanted, sentence: Sentence) -> float:
    """Return the share of the subject's words in a sentence and the headings above it, 0..1."""
    if not wanted.subject:
        return 1.0
    item = sentence.evidence
    present = {*_chunk_terms(sentence.text, item.language)}
    present |= {*_chunk_terms(_heading(item), item.language)}
    return len(wanted.subject & present) / len(wanted.subject)


def has_kind(
    kind: AnswerKind, text: str, words: Lexicon, asked: frozenset[str] = frozenset()
) -> bool:
    """Tell whether a text contains a value of the wanted kind; text and yes/no always do.

    A person or place needs a name that is not among the terms `asked`.
    """
    if kind == "number":
        return DIGITS.search(text) is not None or words.search("numeral", text) is not None
    if kind == "date":
        return YEAR_OR_DATE.search(text) is not None
    if kind in ("person", "place"):
        names = CAPITALISED.findall(f" {text}")
        return any(not asked.issuperset(terms(name, words.language)) for name in names)
    return True


def missing_entities(wanted: Wanted, evidence: Evidence) -> bool:
    """Tell whether a question names something and this evidence names none of it."""
    if not wanted.entity_terms:
        return False
    present = set(_chunk_terms(evidence.text, evidence.language))
    present |= set(_chunk_terms(_heading(evidence), evidence.language))
    return not any(name & present for name in wanted.entity_terms)


def heading_fit(wanted: Wanted, item: Evidence) -> float:
    """Return how much of a title, and of it or its last heading, the question asks for, 0..1.

    The title counts in full, so that the section "Timeout" of another document is no match.
    """
    asked = {term for group, _, _ in wanted.groups for term in group}
    fits = []
    for text in (item.title, item.section.rpartition(" › ")[2]):
        words = set(content_terms(text, item.language)) if text else set()
        fits.append(len(words & asked) / len(words) if words else 0.0)
    return (fits[0] + max(fits)) / 2


def _heading(item: Evidence) -> str:
    """Return what stands above a chunk: title, heading path, and the record's keywords."""
    keywords = item.metadata.get("keywords")
    listed = " ".join(str(word) for word in keywords) if isinstance(keywords, list) else ""
    return f"{item.title} {item.section} {listed}".strip()


def _lexical(wanted: Wanted, item: Evidence) -> list[Sentence]:
    heading = frozenset(_chunk_terms(_heading(item), item.language))
    chunk = frozenset(_chunk_terms(item.text, item.language))
    words = lexicon(item.language)
    asked = frozenset(term for group, _, _ in wanted.groups for term in group)
    total = wanted.total or 1.0
    # An item of a list is a whole document, so its words may stand in any of its sentences.
    in_chunk = IN_HEADING if wanted.wants == "list" else IN_CHUNK
    found = []
    for start, end in _spans(item.text, item.kind):
        text = item.text[start:end]
        here = frozenset(_chunk_terms(text, item.language))
        if not here:
            continue
        covered = 0.0
        matched = set()
        for number, (group, synonyms, weight) in enumerate(wanted.groups):
            share = max(
                _present(group, here, heading, chunk, in_chunk),
                SYNONYM_WEIGHT * _present(synonyms, here, heading, chunk, in_chunk),
            )
            covered += weight * share
            if share > IN_CHUNK and number < wanted.own:
                matched.add(number)
        lexical = covered / total
        kind = has_kind(wanted.wants, text, words, asked)
        found.append(Sentence(item, start, end, lexical, lexical, None, frozenset(matched), kind))
    return found


def _present(
    group: frozenset[str],
    here: frozenset[str],
    heading: frozenset[str],
    chunk: frozenset[str],
    in_chunk: float,
) -> float:
    if group & here:
        return IN_SENTENCE
    if group & heading:
        return IN_HEADING
    return in_chunk if group & chunk else 0.0


@lru_cache(maxsize=4096)
def _chunk_terms(text: str, language: str) -> tuple[str, ...]:
    return tuple(terms(text, language))


@lru_cache(maxsize=1024)
def _spans(text: str, kind: str) -> tuple[tuple[int, int], ...]:
    spans = sentence_spans(text)
    if kind == "record":
        spans = [(start + _label_length(text[start:end]), end) for start, end in spans]
    return tuple(spans)


def _label_length(line: str) -> int:
    """Return the length of a record line's label when its value is a sentence by itself."""
    match = RECORD_LABEL.match(line)
    if match is None or not line.rstrip().endswith(SENTENCE_MARKS):
        return 0
    return match.end()


@lru_cache(maxsize=1024)
def _synonyms(group: frozenset[str], words: Lexicon) -> frozenset[str]:
    related: set[str] = set()
    for synonyms in words.synonyms:
        analysed = {term for word in synonyms for term in terms(word, words.language)}
        if analysed & group:
            related |= analysed
    return frozenset(related - group)


def _order(sentence: Sentence) -> tuple[float, str, int]:
    return (-sentence.score, sentence.evidence.chunk_id, sentence.start)


def _in_context(sentence: Sentence) -> str:
    heading = sentence.evidence.section or sentence.evidence.title
    return f"{heading}: {sentence.text}" if heading else sentence.text


def _spread(found: Sequence[Sentence], limit: int) -> list[Sentence]:
    """Choose sentences to embed: the best by words, but at least one of every piece of evidence."""
    first = {s.evidence.chunk_id: s for s in reversed(found)}
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
