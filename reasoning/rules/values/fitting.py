"""How well a value fits what is asked for: its kind, and the noun that the question asks with."""

from __future__ import annotations

import re

from core.language.analysis import terms
from core.language.inflection import readings
from core.types import AnswerKind, SubQuestion
from languages.language import find_language, known_languages
from reasoning.rules.decomposition.noun_phrase import is_past, kind_of, singular
from reasoning.rules.lexicon import Lexicon
from reasoning.rules.values.value_spans import ValueSpan

AROUND, BESIDE = 40, 0.7  # characters; what a noun beside a value is worth
_NEXT_WORD = re.compile(r"\s[^\W\d_]+")
_BORN = "|".join(re.escape(word) for one in known_languages().values() for word in one.born)
_AFTER_NAME = re.compile(rf"\s*(?:\((?:[^()]{{0,40}}\b)?(?:{_BORN}|\d{{4}}))|[（(]\d{{4}}")


def wanted_noun(question: SubQuestion, lists: Lexicon) -> tuple[str, AnswerKind]:
    """Return the noun a question asks with ("" for none) and the kind of value it wants."""
    slot = (question.slot or "").rstrip("0123456789").replace("_", " ")
    noun = slot or asked_noun(question.text, lists)
    kind = question.wants
    if kind in ("text", "list"):
        quantity = singular(noun, lists) in lists.any_of("number_noun")
        kind = "number" if quantity else kind_of(noun, lists) or kind
    return noun, kind


def asked_noun(text: str, lists: Lexicon) -> str:
    """Return the noun after "which" or "what", or after "what is the", in small letters."""
    match = lists.search("noun_asker", text) if lists.any_of("noun_asker") else None
    if match is None:
        return ""
    words: list[str] = []
    for word in text[match.end() :].split():
        bare = word.strip(",.?!'\"()«»").casefold()
        if dictionary := lists.known.dictionary:
            found = [one.pos for one in readings(bare, dictionary)[:2]]
            if "NOUN" in found:
                return bare
            continue
        stops = lists.any_of("auxiliary_verb", "relative_preposition", "relative", "joint")
        if not bare or bare in stops or bare.startswith("{") or len(words) > 4:
            break
        if words and (bare in lists.any_of("base_verb") or is_past(bare, lists)):
            break
        if words and (kind_of(words[-1], lists) or word[:1].isupper()):
            break
        words.append(bare)
    words = [word for word in words if word not in lists.any_of("determiner", "indefinite")]
    if words:
        return words[-1]
    measured = (bare.strip(",.?!'\"()").casefold() for bare in text.split())
    return next((one for one in measured if one in lists.any_of("number_noun")), "")


def kind_fit(kind: AnswerKind, noun: str, value: ValueSpan, text: str, lists: Lexicon) -> float:
    """Return -1..1: how well a value is of the wanted kind."""
    if kind == "date":
        return 1.0 if value.kind == "date" else -1.0
    if kind == "number":
        weak = value.form == "WORD"
        return (0.7 if weak else 1.0) if value.kind == "number" else -0.6
    if kind in ("person", "place"):
        if value.kind != "name":
            return -1.0
        return _person(value, text, lists) if kind == "person" else _place(value, text, noun, lists)
    if value.kind == "name" or value.form == "FIELD":
        return 0.5
    return 0.0 if value.kind == "phrase" else -0.4


def _person(value: ValueSpan, text: str, lists: Lexicon) -> float:
    name = text[value.start : value.end]
    if value.form == "PERSON" or _AFTER_NAME.match(text, value.end):
        return 1.0
    if value.form in ("ORG", "ABBREVIATION", "CODE", "WORK_OF_ART"):
        return -0.5
    count = len(name) if value.form == "RUN" else len(name.split())
    fit = 0.5 if 2 <= count <= 4 else 0.0
    if value.form == "TITLE":
        fit += 0.2
    before = text[max(0, value.start - AROUND) : value.start]
    if _led(before, "by", lists):
        fit += 0.4
    last = before.split()[-1].casefold() if before.split() else ""
    if last in lists.any_of("person_noun") or _led(before, "person_noun", lists):
        fit += 0.4
    if _led(before, "place_preposition", lists):
        fit -= 0.5
    return min(1.0, fit)


def _place(value: ValueSpan, text: str, noun: str, lists: Lexicon) -> float:
    if text[value.start : value.end].split()[-1].casefold() in lists.any_of("place_noun"):
        return 1.0
    if value.form in ("PERSON", "ABBREVIATION", "CODE", "WORK_OF_ART"):
        return -0.5
    before = text[max(0, value.start - AROUND) : value.start]
    if noun in lists.any_of("wide_place") and before.rstrip().endswith(","):
        return 1.0  # the last of "Vienna, Austria"
    if _led(before, "place_preposition", lists):
        return 0.8
    return 0.0 if value.form == "ORG" else 0.3


def _led(before: str, name: str, lists: Lexicon) -> bool:
    """Tell whether a word of a list, and perhaps an article, stands right before a value."""
    if not lists.known.spaced:
        return before.endswith(tuple(lists.any_of(name)))
    words = before.casefold().split()
    while words and words[-1] in lists.any_of("determiner", "indefinite"):
        words.pop()
    return bool(words) and words[-1] in lists.any_of(name)


def noun_fit(wanted: frozenset[str], value: ValueSpan, text: str, language: str) -> float:
    """Return 0..1: whether the noun, given by its terms and its synonyms', is in a value or by it.

    What cues tell a birthplace or an author changed none of 130 answers of HotpotQA and MuSiQue.
    """
    if wanted & set(terms(text[value.start : value.end], language)):
        return 1.0
    around = text[max(0, value.start - AROUND) : value.end + AROUND]
    return BESIDE if wanted & set(terms(around, language)) else 0.0


def completed(value: ValueSpan, noun: str, text: str, language: str) -> ValueSpan:
    """Return a Cyrillic name with the noun asked for, and whose it is: "Русское общество врачей".

    Only the first word of such a name has a capital.
    """
    dictionary = find_language(language).dictionary
    if value.kind != "name" or not noun or not dictionary:
        return value
    wanted = set(terms(noun, language))
    end = value.end
    for number, match in enumerate(_NEXT_WORD.finditer(text, value.end)):
        if match.start() != end or number > 2:
            break
        word = match.group().strip()
        named = bool(wanted & set(terms(word, language)))
        owner = any(one.case == "gent" for one in readings(word.casefold(), dictionary)[:1])
        if not (named if number == 0 else owner):
            break
        end = match.end()
    return value._replace(end=end)
