"""One word: its index form (Snowball stem or dictionary lemma) and its Cyrillic forms."""

from __future__ import annotations

import unicodedata
import warnings
from functools import cache, lru_cache
from typing import Any, NamedTuple

from core.language.cues import resource
from core.language.scan import CYRILLIC, script_of
from languages.language import FALLBACK, Language, known_languages, of_script

LONGEST = 64  # a longer one is no word


def latin_stemmer(language: str | None) -> str:
    """Name the Snowball language a Latin word is stemmed in: the text's own, or English."""
    return language if language and _snowball().get(language) in _algorithms() else FALLBACK


@lru_cache(maxsize=65536)
def stem(word: str, language: str) -> str:
    """Stem a casefolded Latin word; English also drops the accents ("café" is "cafe")."""
    if any(character.isdigit() for character in word):
        return word
    if language == FALLBACK:
        word = word if word.isascii() else _without_accents(word)
    return str(_stemmer(language).stemWord(word)) or word


def cyrillic_dictionary(word: str, language: str | None) -> str:
    """Choose the dictionary for a casefolded Cyrillic word: its own letters outrank the text."""
    known = _with_dictionary()
    own = next((one for one in known if one.code == language), known[0])
    letters = set(word)
    if letters.isdisjoint(own.letters + own.shared_letters):
        others = (one for one in known if letters & {*one.letters, *one.shared_letters})
        return next(others, own).dictionary
    return own.dictionary


@cache
def _with_dictionary() -> list[Language]:
    return [one for one in of_script("cyrillic") if one.dictionary]


@lru_cache(maxsize=65536)
def lemma(word: str, dictionary: str) -> str:
    """Give the dictionary form of a casefolded Cyrillic word; Russian ё becomes е."""
    if len(word) > LONGEST or any(character.isdigit() for character in word):
        return word
    form = _normal_form(word, dictionary)
    return form.replace("ё", "е") if dictionary == "ru" else form


def _normal_form(word: str, dictionary: str) -> str:
    """Choose the likeliest reading; weighing them is half the cost, so only when they differ."""
    morphology, weigher = _morphology(dictionary)
    parses = morphology.parse(word)
    if not parses:
        return word
    if weigher is None:  # a surname is listed before the word that it was made of
        return str(min(parses, key=lambda parse: "Surn" in parse.tag).normal_form)
    if len({parse.normal_form for parse in parses}) > 1:
        parses = weigher.apply_to_parses(word, word, parses)
    return str(parses[0].normal_form)


@lru_cache(maxsize=16384)
def other_lemmas(word: str, language: str | None) -> frozenset[str]:
    """Return every dictionary form of a casefolded Cyrillic word, where no reading is likelier."""
    if script_of(word) != "cyrillic" or len(word) > LONGEST:
        return frozenset()
    morphology, weigher = _morphology(cyrillic_dictionary(word, language))
    if weigher is not None:
        return frozenset()
    return frozenset(str(one.normal_form) for one in morphology.parse(word))


def languages_of(word: str) -> list[str]:
    """Return the languages that a word may be of by its script."""
    return [one.code for one in of_script("cyrillic" if CYRILLIC.search(word) else "latin")]


def is_known(word: str, dictionary: str) -> bool:
    """Tell whether the dictionary ("ru" or "uk") holds a casefolded word."""
    return bool(_morphology(dictionary)[0].word_is_known(word))


@cache
def _snowball() -> dict[str, str]:
    """Return the Snowball algorithms by ISO 639-1 code."""
    own = {one.code: one.stemmer for one in known_languages().values() if one.stemmer}
    return {**resource("languages")["snowball"], **own}


@cache
def _algorithms() -> frozenset[str]:
    """List what the installed Snowball offers; older builds lack some languages."""
    import Stemmer  # type: ignore[import-not-found]

    return frozenset(Stemmer.algorithms())


@cache
def _stemmer(language: str) -> Any:  # noqa: ANN401 - an untyped library
    """Make one stemmer; its own word cache is off, since `stem` keeps one."""
    import Stemmer

    return Stemmer.Stemmer(_snowball()[language], 0)


@cache
def _morphology(dictionary: str) -> tuple[Any, Any]:
    """Load a dictionary (about 0.1 s), and what ranks the readings of a word if there is one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # old releases import the deprecated pkg_resources
        import pymorphy3  # type: ignore[import-untyped]

        morphology = pymorphy3.MorphAnalyzer(lang=dictionary)
    weigher, morphology.prob_estimator = morphology.prob_estimator, None
    return morphology, weigher


def _without_accents(word: str) -> str:
    """Drop combining marks: "Dvořák" is searched for as "Dvorak"."""
    bare = "".join(c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c))
    return unicodedata.normalize("NFC", bare)


# The rare second cases and the common ones that they stand for.
_SECOND_CASES = {"gen2": "gent", "loc2": "loct", "acc2": "accs", "gen1": "gent"}


class MorphAnalysis(NamedTuple):
    """Hold one reading of a word: OpenCorpora names of its part of speech, case and so on.

    `gender` is masc, femn, neut or "" (a plural), `number` sing or plur, `form` the dictionary
    form, `tense` past, pres or futr. An empty string stands for what the reading does not have.
    """

    pos: str
    case: str
    gender: str
    number: str
    form: str
    tense: str


@lru_cache(maxsize=8192)
def readings(word: str, dictionary: str) -> tuple[MorphAnalysis, ...]:
    """Return the readings of a casefolded word, likeliest first, by a pymorphy3 dictionary."""
    found = []
    for parse in _parses(word, dictionary):
        tag = parse.tag
        found.append(
            MorphAnalysis(
                _part_of_speech(tag),
                _SECOND_CASES.get(str(tag.case), str(tag.case or "")),
                "" if "plur" in tag else str(tag.gender or ""),
                "plur" if "plur" in tag else "sing",
                parse.normal_form,
                str(tag.tense or ""),
            )
        )
    return tuple(found)


@lru_cache(maxsize=8192)
def inflected(word: str, dictionary: str, pos: str, gender: str, number: str) -> str:
    """Return the nominative of a casefolded word; "" when there is none.

    Gender and number may be "", which leaves them as they are.
    """
    # The Ukrainian dictionary marks plurals alone.
    counted = number if number == "plur" or dictionary == "ru" else ""
    wanted = {name for name in ("nomn", "" if number == "plur" else gender, counted) if name}
    for parse in _parses(word, dictionary):
        if _part_of_speech(parse.tag) == pos:
            made = parse.inflect(wanted)
            if made is not None:
                return str(made.word)
            if pos == "NOUN" and number != "plur":
                return str(parse.normal_form)  # the Ukrainian one has no case
    return ""


def _part_of_speech(tag: Any) -> str:  # noqa: ANN401 - an untyped library
    """Name a participle as one, also where the dictionary calls it an adjective."""
    voiced = "pssv" in tag or "actv" in tag
    return "PRTF" if str(tag.POS) == "ADJF" and voiced else str(tag.POS or "")


def _parses(word: str, dictionary: str) -> list[Any]:
    """Return the dictionary's own readings, likeliest first; the weigher's lack other forms."""
    if len(word) > 64:
        return []
    morphology, weigher = _morphology(dictionary)
    parses: list[Any] = list(morphology.parse(word))
    if weigher is None or len(parses) < 2:
        return parses
    weighed = weigher.apply_to_parses(word, word, parses)
    order = [(str(one.tag), one.normal_form) for one in weighed]
    return sorted(parses, key=lambda parse: order.index((str(parse.tag), parse.normal_form)))
