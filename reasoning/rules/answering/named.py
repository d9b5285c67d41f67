"""Whether a sentence speaks of the things that a question names, or of others of their kind."""

from __future__ import annotations

import re

from core.language.analysis import analyze, terms
from languages.language import find_language
from reasoning.rules.answering.relevance import Sentence
from reasoning.rules.answering.wanted import NamedThing, QueryTerms

BESIDE = ("", ",", "(", "（", ":", "：", "–", "—")  # what parts an office and a name
HALF = 2  # characters of most words of Chinese, of which longer ones are made
BEFORE = 300  # characters before a sentence that may say what it is about; chosen, not measured


def lacking_things(wanted: QueryTerms, sentence: Sentence, beside: str) -> list[str]:
    """Return the things of a question that a sentence does not speak of, none where it may.

    Of a short question the document, whose evidence is `beside`, names everything, and the sentence
    or what stands before it one thing; of a longer one it is enough that one is not unknown. A
    synonym will do, but not another word before the same noun.
    """
    item, language = sentence.evidence, wanted.language
    is_spaced = find_language(language).spaced
    if not wanted.things or item.language != language:
        return []
    before = item.text[max(0, sentence.start - BEFORE) : sentence.end]
    here = terms_before(sentence)
    own = frozenset(terms(sentence.text, language))
    inside = own | terms_above(sentence)
    document = frozenset(terms(beside, language))
    lacking = [
        word
        for one in wanted.things
        for word, group in one.beside
        # "Its head is …" leaves out what stands before it.
        if not group & ((inside if one.terms & own else here) if wanted.is_short else document)
        and _is_of_another_kind(sentence.text, one, wanted)
    ]
    if not wanted.is_short:
        nouns = [one for one in wanted.things if not one.is_wanted]
        known = wanted.entity_terms or not nouns
        # What a conversation's notes say is not in the weights of the collection.
        known = known or any(
            one.terms - wanted.unknown
            or one.terms & document
            or _spells(one.noun, beside, spaced=is_spaced)
            for one in nouns
        )
        return lacking if known else [*lacking, nouns[0].noun]
    parts = [part for one in wanted.things for part in one.parts]
    lacking += [
        word
        for word, group in parts
        if not group & document and not _spells(word, beside, spaced=is_spaced)
    ]
    named = wanted.entity_terms or not parts or any(group & here for _, group in parts)
    if not (lacking or named or any(_spells(word, before, spaced=is_spaced) for word, _ in parts)):
        lacking = [word for word, _ in parts]
    return list(dict.fromkeys(lacking))


def terms_above(sentence: Sentence) -> frozenset[str]:
    """Return the terms of the headings of a sentence."""
    item = sentence.evidence
    return frozenset(terms(f"{item.title} {item.section}", item.language))


def terms_before(sentence: Sentence) -> frozenset[str]:
    """Return the terms of a sentence, of what stands before it and of its headings."""
    item = sentence.evidence
    before = item.text[max(0, sentence.start - BEFORE) : sentence.end]
    return terms_above(sentence) | frozenset(terms(before, item.language))


def _spells(word: str, text: str, *, spaced: bool) -> bool:
    """Tell whether a text has a word in one or in two: "checkout", "check-out", "check out"."""
    letters = r"[-\s]?".join(map(re.escape, word))
    if not spaced and len(word) > HALF:  # 烘干机: "烘干由两台新机器完成"
        return word[:HALF] in text and all(one in text for one in word[HALF:])
    return re.search(rf"\b{letters}\b" if spaced else letters, text, re.IGNORECASE) is not None


def is_entry(wanted: QueryTerms, sentence: Sentence) -> bool:
    """Tell whether a sentence is the entry of a code, or puts a name beside the office asked for.

    "E4: the pump is too hot" and "the caretaker, Ann Lee" say so without a verb.
    """
    text = sentence.text
    if any(
        re.match(rf"\W*{re.escape(one)}\W*?(?: [–—-] |[:：]| ?\|)", text) for one in wanted.codes
    ):
        return True
    if wanted.wants != "person" or wanted.act.terms:
        return False
    office = frozenset().union(*(one.terms for one in wanted.things if one.is_wanted))
    tokens = analyze(text, sentence.evidence.language)
    for one, other in zip(tokens, tokens[1:], strict=False):
        name, noun = (other, one) if one.term in office else (one, other)
        gap = text[one.end : other.start].strip()
        is_name = (
            name.start and text[name.start].isupper() and text[name.start : name.end].isalpha()
        )
        if noun.term in office and is_name and gap in BESIDE:
            return True
    return False


def _is_of_another_kind(text: str, thing: NamedThing, wanted: QueryTerms) -> bool:
    """Tell whether every mention of a noun stands behind a word that the question does not say."""
    tokens = analyze(text, wanted.language)
    kinds = [
        not before.is_function
        and before.term not in wanted.terms
        and not text[before.end : token.start].strip()
        for before, token in zip(tokens, tokens[1:], strict=False)
        if token.term in thing.terms
    ]
    first = bool(tokens) and tokens[0].term in thing.terms
    return bool(kinds) and all(kinds) and not first
