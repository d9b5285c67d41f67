"""Find the value that answers a sub-question, in the sentences that answer it best."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from core.language.analysis import content_terms, terms
from core.types import AnswerKind, Evidence, Finding, SubQuestion
from reasoning.rules.answer import ranked_sentences
from reasoning.rules.fitting import completed, kind_fit, noun_fit, wanted_noun
from reasoning.rules.lexicon import Lexicon, lexicon
from reasoning.rules.nearness import nearness, places
from reasoning.rules.noun_spans import noun_phrases, within_name
from reasoning.rules.record_values import RECORD_KINDS, fields, label_fit, noun_terms
from reasoning.rules.relevance import Relevance, evidence_languages
from reasoning.rules.sentences import Sentence
from reasoning.rules.title_values import title_value
from reasoning.rules.value_spans import Value, phrase_after_copula, values_in
from reasoning.rules.wanted import Wanted

BEST_SENTENCES = 12
# What a value is worth beside its sentence: kind, noun, title, nearness to the question's words,
# and how many of its words the question says itself.
KIND, NOUN, TITLE, NEAR, SAID, RARE = 0.5, 0.4, 0.15, 0.3, 0.3, 0.1
# A longer form of a name that the question says: two or more of its words, and this share.
SAME_NAME = 0.5
# A title is the answer only where it is, or is said to be, what the question asks for.
LEAST_TITLE = 0.6
MOST_VALUES = 20
# What is written but not said: an address, a file, words run together, a prefix as in "File:".
_UNSPOKEN = re.compile(
    r"://|\bwww\.|@|\.(?:com|org|net|gov|edu|html?|svg|png|jpe?g|gif|pdf|xml|json|csv)\b|[a-z]{12}[A-Z]"
)
_PREFIX = re.compile(r":\w")


class _Asked(NamedTuple):
    """What a question wants, the terms of its noun with synonyms, and the terms it says itself."""

    kind: AnswerKind
    noun: str
    nouns: frozenset[str]
    said: frozenset[str]


class _Scored(NamedTuple):
    worth: float
    item: Evidence
    value: Value
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
    wanted = relevance.wanted(question, evidence_languages(evidence))
    lists = lexicon(question.language)
    noun, kind = wanted_noun(question, lists)
    said = frozenset(terms(question.query, question.language))
    asked = _Asked(kind, noun, noun_terms(noun, question.language, lists), said)
    ranked = ranked_sentences(question, evidence, relevance)[:BEST_SENTENCES]
    scored: list[_Scored] = []
    best: set[str] = set()
    for sentence in ranked:
        worth = sentence.score
        scored += _scored(worth, sentence, asked, wanted, relevance)
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


def _scored(
    worth: float, sentence: Sentence, asked: _Asked, wanted: Wanted, relevance: Relevance
) -> list[_Scored]:
    item = sentence.evidence
    lists = lexicon(item.language)
    if sentence.text.rstrip().endswith(("?", "？")):
        return []
    matched = places(sentence, wanted)
    found = []
    for value in _candidates(sentence, asked, lists):
        text = item.text[value.start : value.end]
        own = set(content_terms(text, item.language))
        share = len(own & asked.said) / len(own) if own else 1.0
        if _is_said(own, asked) or not _is_spoken(value, item.text, asked, lists):
            continue
        fit = noun_fit(asked.nouns, asked.noun, value, item.text, item.language, lists)
        score = worth - SAID * share
        score += KIND * kind_fit(asked.kind, asked.noun, value, item.text, lists)
        score += NOUN * fit
        score += TITLE * (value.form == "TITLE")
        score += NEAR * nearness(value, matched)
        score += RARE * _rarity(own, relevance)
        found.append(_Scored(score, item, value))
    return found


def _candidates(sentence: Sentence, asked: _Asked, lists: Lexicon) -> list[Value]:
    """Return the values of a sentence, names as whole phrases where they end one."""
    item = sentence.evidence
    values = [
        value
        for value in values_in(item.text, item.language, item.title)
        if sentence.start <= value.start and value.end <= sentence.end
    ]
    if asked.kind not in ("text", "list"):
        return [completed(value, asked.noun, item.text, item.language) for value in values]
    phrases = list(noun_phrases(item.text, sentence.start, sentence.end, asked.nouns, lists))
    found = []
    for value in values:
        value = completed(value, asked.noun, item.text, item.language)
        whole = within_name(value, phrases, item.text, lists)
        found.append(value if whole is None else whole._replace(kind="name"))
    for phrase in phrases:
        if asked.nouns & set(terms(item.text[phrase.start : phrase.end], item.language)):
            found.append(phrase._replace(kind="name"))
    said = phrase_after_copula(item.text, sentence.start, sentence.end, lists)
    if said is not None:
        found.append(said)
    return list(dict.fromkeys(found))


def _is_spoken(value: Value, text: str, asked: _Asked, lists: Lexicon) -> bool:
    """Tell whether a value is words of a language, or what is written is just what is asked for."""
    if asked.noun in lists.any_of("written_noun"):
        return True
    said = text[value.start : value.end]
    return _UNSPOKEN.search(said) is None and _PREFIX.match(text, value.end) is None


def _is_said(own: set[str], asked: _Asked) -> bool:
    """Tell whether the question says a value itself, or a shorter form of it."""
    said = own & asked.said
    return len(said) == len(own) or (len(said) > 1 and len(said) >= SAME_NAME * len(own))


def _title(worth: float, item: Evidence, asked: _Asked) -> list[_Scored]:
    """Return the title where it is what is asked for: what "it" stands for in other sentences."""
    title = title_value(item, asked.noun, asked.nouns, asked.kind, asked.said)
    if title is None or title.fit < LEAST_TITLE:
        return []
    if _is_said(set(content_terms(item.title, item.language)), asked):
        return []
    text = item.text if title.field == "text" else item.title
    score = worth + TITLE + NEAR / 2 + NOUN * title.fit
    score += KIND * kind_fit(asked.kind, asked.noun, title.value, text, lexicon(item.language))
    return [_Scored(score, item, title.value, title.field)]


def _fields(worth: float, item: Evidence, asked: _Asked) -> list[_Scored]:
    """Return what stands in a record behind a label that the question asks for."""
    found = []
    for field in fields(item.text) if item.kind in RECORD_KINDS else ():
        fit = label_fit(field.label, asked.nouns, asked.said)
        value = Value(field.start, field.end, "phrase", "FIELD")
        own = set(content_terms(item.text[field.start : field.end], item.language))
        if fit and not _is_said(own, asked) and _of_kind(asked.kind, value, item):
            score = worth + KIND / 2 + NOUN * fit + NEAR / 2 + TITLE
            found.append(_Scored(score, item, value))
    return found


def _of_kind(kind: AnswerKind, value: Value, item: Evidence) -> bool:
    if kind not in ("number", "date"):
        return True
    held = values_in(item.text, item.language, item.title)
    return any(one.kind == kind and value.start <= one.start < value.end for one in held)


def _rarity(own: set[str], relevance: Relevance) -> float:
    rarity = relevance.rarity(sorted(own))
    return max(rarity.values(), default=0.0)
