"""Which language a text is in."""

from __future__ import annotations

import copy
import re
from functools import cache
from typing import Any

from core.language import words
from core.language.cues import resource, stopwords
from core.language.identifiers import is_identifier
from languages.language import FALLBACK, Language, of_script

UNDETERMINED = "und"
_SAMPLE = 1000
_SHORT = 40
_SURE = 0.9

# A Han or Hangul character says as much as two or three letters; Cyrillic text often quotes
# English names and code, English text seldom quotes Cyrillic.
_WEIGHT = {"han": 3.0, "kana": 3.0, "hangul": 2.0, "cyrillic": 1.5}
_LATIN_WORD = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]+(?:['’][a-z]+)?")
_ASCII_TOKEN = re.compile(r"[A-Za-z0-9_.()\[\]+#/@:-]*[A-Za-z0-9_][A-Za-z0-9_.()\[\]+#/@:-]*")
_CODE_MARKS = re.compile(r"[{}\[\]()<>=;_$\\|&*+/^~`#]|\d")
_CYRILLIC_WORD = re.compile("[\u0400-\u052f]+")
_TABLES = resource("detection")
_SCRIPTS = {name: re.compile(f"[{marks}]") for name, marks in _TABLES["scripts"].items()}
_KEYWORDS = frozenset(_TABLES["keywords"].split())


def detect_language(text: str) -> str:
    """Name the language of a text by its ISO 639-1 code, or "und" for code, digits and symbols.

    Short Latin text counts as English unless it clearly is something else. Only a bounded sample
    of a long text is read.
    """
    sample = _sample(text)
    if sample.isascii():
        return _latin(sample, _latin_words(sample))
    counts = {name: len(pattern.findall(sample)) for name, pattern in _SCRIPTS.items()}
    if counts["kana"] * 10 >= counts["han"] and counts["kana"]:
        counts["kana"] += counts.pop("han")
    elif counts["kana"]:
        counts["han"] += counts.pop("kana")
    weights = {name: count * _WEIGHT.get(name, 1.0) for name, count in counts.items()}
    script, weight = max(weights.items(), key=lambda item: item[1])
    latin = _latin_words(sample)
    if weight < max(_latin_weight(latin), 1.0):
        code = _latin(sample, latin)
        if code != UNDETERMINED or weight == 0:
            return code
    if script == "cyrillic":
        return _cyrillic(sample.casefold())
    if script in _TABLES["plausible"]:
        return _classify(sample, script)[0]
    return str(_TABLES["of_script"].get(script, script))


def _sample(text: str) -> str:
    """Take the beginning, the middle and the end of a long text."""
    if len(text) <= 3 * _SAMPLE:
        return text
    middle = (len(text) - _SAMPLE) // 2
    return " ".join((text[:_SAMPLE], text[middle : middle + _SAMPLE], text[-_SAMPLE:]))


def _latin_words(sample: str) -> list[str]:
    """List the Latin words of prose: names from code, paths and addresses say nothing."""
    prose = _ASCII_TOKEN.sub(_drop_identifier, sample)
    return [word.casefold().replace("’", "'") for word in _LATIN_WORD.findall(prose)]


def _drop_identifier(match: re.Match[str]) -> str:
    """Blank out one token when it is a name from code."""
    token = match.group().strip(".:()[]-/")
    coded = is_identifier(token) or any(mark in token for mark in "_/@(")
    return " " if coded else match.group()


def _latin_weight(latin: list[str]) -> float:
    """Weigh Latin letters; in a text of another script, words without grammar are names."""
    letters = sum(map(len, latin))
    grammar = sum(word in stopwords(FALLBACK) for word in latin)
    return float(letters) if grammar >= 2 else letters * 0.4


def _latin(sample: str, latin: list[str]) -> str:
    """Tell the languages of the Latin script apart."""
    letters = sum(map(len, latin))
    if not letters or _is_code(sample, latin):
        return UNDETERMINED
    english = sum(word in stopwords(FALLBACK) for word in latin)
    plain = sum(map(str.isascii, latin)) >= 0.97 * len(latin)
    foreign = max(sum(word in listed for word in latin) for listed in _foreign_words())
    for one in of_script("latin"):
        own = sum(word in one.stopwords for word in latin)
        if one.code != FALLBACK and own > max(1, english) and own >= foreign:
            return one.code
    if plain and (english >= 2 and english >= 0.15 * len(latin) and english > foreign):
        return FALLBACK
    if letters < _SHORT and plain and (foreign < 2 or foreign <= english):
        return FALLBACK
    code, probability = _classify(" ".join(latin), "latin")
    accented = letters >= _SHORT and not (plain or english)
    return code if probability >= _SURE or foreign > english or accented else FALLBACK


@cache
def _foreign_words() -> list[frozenset[str]]:
    return [frozenset(listed.split()) for listed in _TABLES["foreign"].values()]


def _is_code(sample: str, latin: list[str]) -> bool:
    """Tell source code, tables of numbers and the like from prose by their punctuation."""
    marks = len(_CODE_MARKS.findall(sample))
    if marks < 0.12 * len(sample):
        return False
    prose = sum(word in stopwords(FALLBACK) and word not in _KEYWORDS for word in latin)
    return prose < 0.08 * len(latin)


def _cyrillic(folded: str) -> str:
    """Tell the languages of the Cyrillic script apart by letters, function words, dictionary."""
    if any(letter in folded for letter in _TABLES["letters"]["cyrillic"]):
        return _classify(folded, "cyrillic")[0]
    known = [one for one in of_script("cyrillic") if one.letters]
    own = {one.code: _own_letters(one, folded) for one in known}
    shared = {one.code: sum(map(folded.count, one.shared_letters)) for one in known}
    if any(shared.values()) and not any(own.values()):
        code, times = max(shared.items(), key=lambda item: item[1])
        return _classify(folded, "cyrillic")[0] if times > 0.01 * len(folded) else code
    hits = {one.code: one.letter_weight * (own[one.code] + shared[one.code]) for one in known}
    # і alone is 6 % of Ukrainian; ы, э and ё together are 3 % of Russian.
    if len({own[code] + shared[code] for code in hits}) == 1:
        found = _CYRILLIC_WORD.findall(folded)
        hits = {code: sum(word in stopwords(code) for word in found) for code in hits}
        if len({*hits.values()}) == 1:
            hits = {one.code: _known_words(found[:50], one.dictionary) for one in known}
    return max(hits, key=lambda code: hits[code])


def _known_words(found: list[str], dictionary: str) -> int:
    return sum(words.is_known(word, dictionary) for word in found) if dictionary else 0


def _own_letters(known: Language, folded: str) -> int:
    """Count what only one language of a script is written with."""
    marks = len(re.findall(known.marks, folded)) if known.marks else 0
    return sum(map(folded.count, known.letters)) + marks


def _classify(sample: str, script: str) -> tuple[str, float]:
    """Ask the trained model, among the plausible languages of one script."""
    code, probability = _model(script).classify(sample)
    return str(code), float(probability)


@cache
def _model(script: str = "") -> Any:  # noqa: ANN401 - langid has no types
    """Load the trained model (about 0.5 s); that of one script shares its weights."""
    if script:
        restricted = copy.copy(_model())
        restricted.set_languages(_TABLES["plausible"][script].split())
        return restricted
    from py3langid import langid  # type: ignore[import-untyped]

    return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
