"""Find the value that answers a sub-question, in the sentences that answer it best."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from core.language.analysis import content_terms, terms
from core.types import AnswerKind, Evidence, Finding, SubQuestion
from reasoning.rules.answering.relevance import Relevance, Sentence
from reasoning.rules.lexicon import Lexicon, lexicon
from reasoning.rules.records.fields import (
    RECORD_KINDS,
    SAYS,
    fields,
    label_fit,
    labels_of,
    noun_terms,
)
from reasoning.rules.values.value_spans import (
    ValueSpan,
    completed,
    kind_fit,
    led_phrases,
    noun_fit,
    plain_title,
    values_in,
    wanted_noun,
)

# How well a title fits a noun: the noun is in it or labels it, the text begins by calling its
# subject so, a record is what is asked for unless another field of it is.
IN_TITLE, CALLED, RECORD = 1.0, 0.6, 0.8  # chosen, not measured
FIRST_WORDS = 4  # chosen, not measured
NAMES = ("text", "list", "person", "place")


def title_value(item: Evidence) -> ValueSpan | None:
    """Return the span of a title without what stands in brackets; None where it says nothing."""
    plain = plain_title(item.title)
    if len(plain) < 2 or not content_terms(plain, item.language):
        return None
    start = item.title.index(plain)
    return ValueSpan(start, start + len(plain), "name", "TITLE")


def title_fit(
    item: Evidence, nouns: frozenset[str], kind: AnswerKind, mentioned: frozenset[str]
) -> float:
    """Return how well a title is what is asked for by the terms of a noun, 0..1."""
    if kind not in NAMES:
        return 0.0
    if nouns & set(terms(plain_title(item.title), item.language)):
        return IN_TITLE
    fits = [(label_fit(label, nouns, mentioned) == SAYS, named) for label, named in labels_of(item)]
    if any(fit and named for fit, named in fits):
        return IN_TITLE
    if any(fit for fit, _ in fits) or kind not in ("text", "list"):
        return 0.0
    if item.kind in RECORD_KINDS:
        return RECORD
    first = set(terms(" ".join(item.text.split()[:FIRST_WORDS]), item.language))
    return CALLED if item.ordinal == 0 and nouns & first else 0.0  # "A short book on …"


BEST_SENTENCES = 12  # chosen, not measured
# What a value is worth beside its sentence: kind, noun, title, and how many of its words the
# question says itself.
KIND, NOUN, TITLE, MENTIONED = 0.5, 0.4, 0.3, 0.3  # by hand
# What the reader takes for the answer, of so many words at most (by hand; HotpotQA and MuSiQue,
# n = 77: .44 printed without, .48 with it).
READ, MOST_READ = 1.0, 6
# A longer form of a name that the question says: two or more of its words, and this share.
SAME_NAME = 0.5  # by hand
# A title is the answer only where it is, or is said to be, what the question asks for.
LEAST_TITLE = 0.6  # by hand
MOST_VALUES = 20  # chosen, not measured
EDGES = " \t\n,.;:!?\"'“”‘’«»()[]（）《》「」。，；：！？"
# What is written but not said: an address, a file, words run together or joined, "File:".
_UNSPOKEN = re.compile(
    r"://|www\.|@|\w_\w|[a-z]{12}[A-Z]|:\w$"
    r"|\.(?:com|org|net|html?|svg|png|jpe?g|pdf|xml|json|csv|md|txt|py|ya?ml)\b"
)


class _Asked(NamedTuple):
    """What a question wants, the terms of its noun with synonyms, and the terms it says itself."""

    kind: AnswerKind
    noun: str
    nouns: frozenset[str]
    terms: frozenset[str]


class _Scored(NamedTuple):
    worth: float
    item: Evidence
    value: ValueSpan
    field: Literal["text", "title"] = "text"

    @property
    def text(self) -> str:
        source = self.item.text if self.field == "text" else self.item.title
        return source[self.value.start : self.value.end]


def extract(
    question: SubQuestion, evidence: Sequence[Evidence], relevance: Relevance
) -> list[Finding]:
    """Return values with their exact spans, best first, each once; none for yes or no.

    What the question says itself is no answer. Where no value of the wanted kind stands in the
    best sentences, what they say their subject is, or the sentence, is the value.
    """
    if question.wants == "yesno":
        return []
    lists = lexicon(question.language)
    noun, kind = wanted_noun(question, lists)
    mentioned = frozenset(terms(question.query, question.language))
    asked = _Asked(kind, noun, noun_terms(noun, question.language, lists), mentioned)
    ranked = relevance.ranked(question, evidence)[:BEST_SENTENCES]
    scored: list[_Scored] = []
    best: set[str] = set()
    for sentence in ranked:
        worth = sentence.score
        scored += _read(_scored(worth, sentence, asked), worth, sentence, asked)
        if sentence.evidence.chunk_id not in best:  # its best sentence comes first
            best.add(sentence.evidence.chunk_id)
            scored += _title(worth, sentence.evidence, asked)
            scored += _fields(worth, sentence.evidence, asked)
    scored.sort(key=lambda one: (-one.worth, one.item.chunk_id, one.value.start))
    return _findings(scored)


def _findings(scored: Sequence[_Scored]) -> list[Finding]:
    found: dict[str, Finding] = {}
    for one in scored:
        key = "".join(character for character in one.text.casefold() if character.isalnum())
        if key and key not in found:
            found[key] = Finding(
                value=one.text,
                evidence_id=one.item.evidence_id,
                start=one.value.start,
                end=one.value.end,
                field=one.field,
            )
    return list(found.values())[:MOST_VALUES]


def _scored(worth: float, sentence: Sentence, asked: _Asked) -> list[_Scored]:
    item = sentence.evidence
    lists = lexicon(item.language)
    if sentence.text.rstrip().endswith(("?", "？")):
        return []
    found = []
    for value in _candidates(sentence, asked, lists):
        text = item.text[value.start : value.end]
        own = set(content_terms(text, item.language))
        share = len(own & asked.terms) / len(own) if own else 1.0
        unspoken = _UNSPOKEN.search(item.text[value.start : value.end + 2])
        if _in_question(own, asked) or (
            unspoken and asked.noun not in lists.any_of("written_noun")
        ):
            continue
        fit = noun_fit(asked.nouns, value, item.text, item.language)
        score = worth - MENTIONED * share
        score += KIND * kind_fit(asked.kind, asked.noun, value, item.text, lists)
        score += NOUN * fit
        score += TITLE / 2 * (value.form == "TITLE")
        found.append(_Scored(score, item, value))
    return found


def _read(found: list[_Scored], worth: float, sentence: Sentence, asked: _Asked) -> list[_Scored]:
    """Return the values found in a sentence with what the reader takes for the answer, first.

    Of several names in that each may be the answer; the question does not say it itself.
    """
    if sentence.value is None:
        return found
    item, (start, end) = sentence.evidence, sentence.value
    text = item.text[start:end]
    end -= len(text) - len(text.rstrip(EDGES))
    start += len(text) - len(text.lstrip(EDGES))
    inside = [one for one in found if one.value.start < end and start < one.value.end]
    value = ValueSpan(start, end, "phrase", "READ")
    own = set(content_terms(item.text[start:end], item.language))
    several = len(inside) > 1 or len(own) > MOST_READ
    unfit = start >= end or _in_question(own, asked) or not _of_kind(asked.kind, value, item)
    if several or unfit or (not inside and asked.kind in ("person", "place")):
        return [one._replace(worth=one.worth + READ) if one in inside else one for one in found]
    return [_Scored(worth + READ + KIND, item, value), *found]


def _candidates(sentence: Sentence, asked: _Asked, lists: Lexicon) -> list[ValueSpan]:
    """Return the values of a sentence, and the phrases that end with the noun asked for."""
    item = sentence.evidence
    things: list[ValueSpan] = []
    if asked.kind in ("text", "list"):
        things = list(led_phrases(item.text, sentence.start, sentence.end, asked.nouns, lists))
    values = [
        completed(value, asked.noun, item.text, item.language)
        for value in values_in(item.text, item.language, item.title)
        if sentence.start <= value.start
        and value.end <= sentence.end
        and not any(one.start <= value.start and value.end <= one.end for one in things)
    ]
    return [*values, *things]


def _in_question(own: set[str], asked: _Asked) -> bool:
    """Tell whether the question says a value itself, or a shorter form of it."""
    shared = own & asked.terms
    return len(shared) == len(own) or (len(shared) > 1 and len(shared) >= SAME_NAME * len(own))


def _title(worth: float, item: Evidence, asked: _Asked) -> list[_Scored]:
    """Return the title where it is what is asked for: what "it" stands for in other sentences."""
    fit = title_fit(item, asked.nouns, asked.kind, asked.terms)
    title = title_value(item) if fit >= LEAST_TITLE else None
    if title is None or _in_question(set(content_terms(item.title, item.language)), asked):
        return []
    score = worth + TITLE + NOUN * fit
    score += KIND * kind_fit(asked.kind, asked.noun, title, item.title, lexicon(item.language))
    return [_Scored(score, item, title, "title")]


def _fields(worth: float, item: Evidence, asked: _Asked) -> list[_Scored]:
    """Return what stands in a record behind a label that the question asks for."""
    found = []
    for field in fields(item.text) if item.kind in RECORD_KINDS else ():
        fit = label_fit(field.label, asked.nouns, asked.terms)
        value = ValueSpan(field.start, field.end, "phrase", "FIELD")
        own = set(content_terms(item.text[field.start : field.end], item.language))
        if fit and not _in_question(own, asked) and _of_kind(asked.kind, value, item):
            score = worth + KIND / 2 + NOUN * fit + TITLE
            found.append(_Scored(score, item, value))
    return found


def _of_kind(kind: AnswerKind, value: ValueSpan, item: Evidence) -> bool:
    if kind not in ("number", "date"):
        return True
    spans = values_in(item.text, item.language, item.title)
    return any(
        one.kind == kind and value.start < one.end and one.start < value.end for one in spans
    )
