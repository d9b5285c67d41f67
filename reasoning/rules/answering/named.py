"""Whether a sentence speaks of the things that a question names, or of others of their kind."""

from __future__ import annotations

from core.language.analysis import analyze, terms
from reasoning.rules.answering.relevance import Relevance, Sentence
from reasoning.rules.answering.wanted import NamedThing, QueryTerms

BEFORE = 300  # characters before a sentence that may say what it is about; chosen, not measured


def lacking_things(
    relevance: Relevance, wanted: QueryTerms, sentence: Sentence, beside: str
) -> list[str]:
    """Return the things of a question that a sentence does not speak of, none where it may.

    Of a short question the document, whose evidence is `beside`, names everything, and the sentence
    or what stands before it one thing; of a longer one it is enough that one is not unknown. A word
    near to one in the sentence will do, but not another word before the same noun.
    """
    item, language = sentence.evidence, wanted.language
    if not wanted.things or item.language != language:
        return []
    before = item.text[max(0, sentence.start - BEFORE) : sentence.end]
    here = frozenset(terms(f"{item.title} {item.section} {before}", language))
    document = frozenset(terms(beside, language))
    near: dict[str, bool] = {}

    def is_near(word: str) -> bool:
        if word not in near:
            text = f"{item.section} {sentence.text}"
            near[word] = relevance.says_near(word, text, language)
        return near[word]

    lacking = [
        word
        for one in wanted.things
        for word, group in one.beside
        if not group & (here if wanted.is_short else document)
        and _is_of_another_kind(sentence.text, one, wanted)
    ]
    if not wanted.is_short:
        nouns = [one for one in wanted.things if not one.is_wanted]
        known = wanted.entity_terms or not nouns or any(one.terms - wanted.unknown for one in nouns)
        if not known and not any(is_near(one.noun) for one in nouns):
            lacking.append(nouns[0].noun)
        return lacking
    parts = [part for one in wanted.things for part in one.parts]
    lacking += [word for word, group in parts if not group & document and not is_near(word)]
    named = wanted.entity_terms or not parts or any(group & here for _, group in parts)
    if not (lacking or named or any(is_near(word) for word, _ in parts)):
        lacking = [word for word, _ in parts]
    return list(dict.fromkeys(lacking))


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
