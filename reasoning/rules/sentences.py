"""Sentences of evidence, scored by the words they share with a question."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from core.language.analysis import content_terms, terms
from core.language.sentences import record_spans, sentence_spans
from core.types import Evidence
from reasoning.rules.lexicon import lexicon
from reasoning.rules.values import has_kind
from reasoning.rules.wanted import Wanted

# How much a question word counts by where it stands: in the sentence itself, in the headings
# above it, or elsewhere in the same chunk.
IN_SENTENCE, IN_HEADING, IN_CHUNK = 1.0, 0.8, 0.5
SYNONYM_WEIGHT = 0.8
RECORD_LABEL = re.compile(r"[^\W\d_][\w ]{0,40}: (?=\S)")
LEAST_SENTENCE = 12
SENTENCE_MARKS = (".", "!", "?", "。", "！", "？", "…")


@dataclass(frozen=True)
class Sentence:
    """Hold one scored sentence of a piece of evidence; `start` and `end` are in its text.

    `field` tells that it is what a question asks for of a record that it names.
    """

    evidence: Evidence
    start: int
    end: int
    score: float
    lexical: float
    semantic: float | None
    matched: frozenset[int]
    has_kind: bool
    field: bool = False

    @property
    def text(self) -> str:
        """Return the sentence as written."""
        return self.evidence.text[self.start : self.end]


def word_scores(wanted: Wanted, item: Evidence) -> list[Sentence]:
    """Return every sentence of a piece of evidence with the weighted share of words it covers."""
    heading = frozenset(_chunk_terms(_heading(item), item.language))
    chunk = frozenset(_chunk_terms(item.text, item.language))
    words = lexicon(item.language)
    asked = wanted.asked
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


def subject_fit(wanted: Wanted, sentence: Sentence) -> float:
    """Return the share of the subject's words in a sentence and the headings above it, 0..1."""
    if not wanted.subject:
        return 1.0
    item = sentence.evidence
    present = {*_chunk_terms(sentence.text, item.language)}
    present |= {*_chunk_terms(_heading(item), item.language)}
    return len(wanted.subject & present) / len(wanted.subject)


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
    asked = wanted.asked
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
    if kind != "record":
        return tuple(sentence_spans(text))
    spans = record_spans(text)
    return tuple((start + _label_length(text[start:end]), end) for start, end in spans)


def _label_length(line: str) -> int:
    """Return the length of a record line's label when its value is a sentence by itself."""
    match = RECORD_LABEL.match(line)
    return match.end() if match is not None and reads_as_sentence(line[match.end() :]) else 0


def reads_as_sentence(value: str) -> bool:
    """Tell whether what stands behind a label is a sentence, and no "240 p." or "Smith, J."."""
    shown = value.rstrip()
    return len(shown) >= LEAST_SENTENCE and shown.endswith(SENTENCE_MARKS)
