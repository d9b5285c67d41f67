"""Whether a sentence speaks of the things that a question names, or of others of their kind."""

from __future__ import annotations

import re

from core.language.analysis import analyze, content_terms, terms
from core.language.passages import TABLE
from languages.language import find_language
from reasoning.rules.answering.relevance import Sentence
from reasoning.rules.answering.wanted import CODE, NamedThing, QueryTerms
from reasoning.rules.lexicon import lexicon

BESIDE = ("", ",", "(", "（", ":", "：", "–", "—")  # what parts an office and a name
HALF = 2  # characters of most words of Chinese, of which longer ones are made
BEFORE = 300  # characters before a sentence that may say what it is about; chosen, not measured
STEM = 6  # letters of a term of which other words may be made; by hand
FIRST = 2  # words behind "how do I" of which one is the action: "safely delete"; by hand


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
        if not _has(group, (inside if one.terms & own else here) if wanted.is_short else document)
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
        if not _has(group, document) and not _spells(word, beside, spaced=is_spaced)
    ]
    named = wanted.entity_terms or not parts or any(_has(group, here) for _, group in parts)
    if not (lacking or named or any(_spells(word, before, spaced=is_spaced) for word, _ in parts)):
        lacking = [word for word, _ in parts]
    return list(dict.fromkeys(lacking))


def lacking_action(wanted: QueryTerms, sentence: Sentence) -> str:
    """Return the action whose way is asked for and that nothing near a sentence is about, or "".

    Only actions of `languages/*/actions.yaml` are looked for, and only in one language.
    """
    item, language = sentence.evidence, wanted.language
    action = _asked_action(wanted.written or wanted.text, language) if wanted.howto else None
    if action is None or item.language != language:
        return ""
    near = item.text[max(0, sentence.start - BEFORE) : sentence.end + BEFORE].casefold()
    inside = terms_above(sentence) | frozenset(terms(near, language))
    spaced = find_language(language).spaced
    known = any(
        own <= inside if (own := frozenset(terms(one, language))) and spaced else one in near
        for one in (*action["asks"], *action["says"])
    )
    return "" if known else action["asks"][0]


def _asked_action(question: str, language: str) -> dict[str, list[str]] | None:
    """Return the words of the action that a question asks the way of, None for an unknown one."""
    lists = lexicon(language)
    how = lists.search("asks_how", question)
    if how is None:
        return None
    asked = question[how.end() :].casefold()
    first = content_terms(asked, language)[:FIRST]
    return next(
        (
            one
            for one in find_language(language).read("actions").values()
            for word in one["asks"]
            if (word in asked if not lists.known.spaced else {*terms(word, language)} & {*first})
        ),
        None,
    )


def terms_above(sentence: Sentence) -> frozenset[str]:
    """Return the terms of the headings of a sentence."""
    item = sentence.evidence
    return frozenset(terms(f"{item.title} {item.section}", item.language))


def terms_before(sentence: Sentence) -> frozenset[str]:
    """Return the terms of a sentence, of what stands before it and of its headings."""
    item = sentence.evidence
    before = item.text[max(0, sentence.start - BEFORE) : sentence.end]
    return terms_above(sentence) | frozenset(terms(before, item.language))


def _has(group: frozenset[str], found: frozenset[str]) -> bool:
    """Tell whether one of a group of terms is found, or one made of it: "search", "searchable"."""
    long = tuple(one for one in group if len(one) >= STEM)
    return bool(group & found) or (bool(long) and any(one.startswith(long) for one in found))


def _spells(word: str, text: str, *, spaced: bool) -> bool:
    """Tell whether a text has a word in one or in two: "checkout", "check-out", "check out"."""
    letters = r"[-\s]?".join(map(re.escape, word))
    if not spaced and len(word) > HALF:  # 烘干机: "烘干由两台新机器完成"
        return word[:HALF] in text and all(one in text for one in word[HALF:])
    return re.search(rf"\b{letters}\b" if spaced else letters, text, re.IGNORECASE) is not None


def is_other_entry(wanted: QueryTerms, sentence: Sentence) -> bool:
    """Tell whether a sentence is the row or the entry of another code than a question names."""
    own = {_shape(one) for one in CODE.findall(sentence.text) if not one.isdigit()}  # but years
    asked = [one for one in wanted.codes if _shape(one) in own]
    first = CODE.search(sentence.text)
    leads = sentence.evidence.kind == TABLE or (
        first is not None and not any(map(str.isalnum, sentence.text[: first.start()]))
    )
    text = sentence.text.casefold()
    return leads and bool(asked) and not any(one.casefold() in text for one in asked)


def _shape(code: str) -> str:
    """Return a code with one zero for its digits: "v-0" for "V-17"."""
    return re.sub(r"\d+", "0", code.casefold())


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
