"""Which language a text is in."""

from __future__ import annotations

import copy
import re
from functools import cache
from typing import Protocol

from core.language import words
from core.language.identifiers import is_identifier
from core.language.scan import HAN
from core.language.stopwords import stopwords

UNDETERMINED = "und"
_SAMPLE = 1000
_SHORT = 40
_SURE = 0.9

_SCRIPTS = {
    "han": re.compile(f"[{HAN}]"),
    "kana": re.compile("[\u3041-\u3096\u30a1-\u30fa]"),
    "hangul": re.compile("[\uac00-\ud7af\u1100-\u11ff]"),
    "cyrillic": re.compile("[\u0400-\u052f]"),
    "arabic": re.compile("[\u0620-\u06ff]"),
    "devanagari": re.compile("[\u0900-\u097f]"),
    "el": re.compile("[\u0370-\u03ff\u1f00-\u1fff]"),
    "he": re.compile("[\u05d0-\u05ea]"),
    "th": re.compile("[\u0e01-\u0e4e]"),
    "hy": re.compile("[\u0531-\u0587]"),
    "ka": re.compile("[\u10a0-\u10ff]"),
    "bn": re.compile("[\u0980-\u09ff]"),
    "ta": re.compile("[\u0b80-\u0bff]"),
}
_PLAUSIBLE = {
    "latin": tuple("en de fr es it pt nl sv no da fi pl cs sk sl hr ro hu tr ca id vi lt lv et"
                   .split()),
    "cyrillic": ("ru", "uk", "be", "bg", "sr", "mk", "kk", "mn"),
    "arabic": ("ar", "fa", "ur"),
    "devanagari": ("hi", "mr", "ne"),
}  # fmt: skip
# A Han or Hangul character says as much as two or three letters; Cyrillic text often quotes
# English names and code, English text seldom quotes Cyrillic.
_WEIGHT = {"han": 3.0, "kana": 3.0, "hangul": 2.0, "cyrillic": 1.5}
_LATIN_WORD = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]+(?:['’][a-z]+)?")
_ASCII_TOKEN = re.compile(r"[A-Za-z0-9_.()\[\]+#/@:-]*[A-Za-z0-9_][A-Za-z0-9_.()\[\]+#/@:-]*")
_CODE_MARKS = re.compile(r"[{}\[\]()<>=;_$\\|&*+/^~`#]|\d")
_CYRILLIC_WORD = re.compile("[\u0400-\u052f]+")
_UKRAINIAN_APOSTROPHE = re.compile("[\u0430-\u044f]['’\u02bc][юяєї]")
# English function words that are also keywords of programming languages.
_KEYWORDS = frozenset(
    "for in is not and or if else with as from while none any all do this then than on by "
    "until unless per off not let in-place into over where".split()
)
_FOREIGN = {
    "de": "der die das und ist nicht ein eine wie wo wer warum mit für auf von den dem im zu",
    "fr": "le la les des est une un et que qui où quel quelle comment pourquoi dans pour sur du",
    "es": "el la los las es una un y que qué cómo dónde cuál por para en del con se",
    "it": "il lo gli è una un e che come dove perché di del della per con nel sono",
    "pt": "o os as é uma um e que como onde qual por para em do da dos das não",
    "pl": "jest nie się jak co gdzie dlaczego czy w z na i do że to",
    "nl": "de het een is niet en hoe wat waar wie van voor met op te",
}
_FOREIGN_WORDS = {code: frozenset(listed.split()) for code, listed in _FOREIGN.items()}


class _Classifier(Protocol):
    """What is used of the trained model."""

    def classify(self, text: str) -> tuple[str, float]: ...  # noqa: D102
    def set_languages(self, langs: tuple[str, ...]) -> None: ...  # noqa: D102


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
    if script in _PLAUSIBLE:
        return _classify(sample, script)[0]
    return {"han": "zh", "kana": "ja", "hangul": "ko"}.get(script, script)


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
    grammar = sum(word in stopwords("en") for word in latin)
    return float(letters) if grammar >= 2 else letters * 0.4


def _latin(sample: str, latin: list[str]) -> str:
    """Tell the languages of the Latin script apart."""
    letters = sum(map(len, latin))
    if not letters or _is_code(sample, latin):
        return UNDETERMINED
    english = sum(word in stopwords("en") for word in latin)
    plain = sum(map(str.isascii, latin)) >= 0.97 * len(latin)
    foreign = max(sum(word in listed for word in latin) for listed in _FOREIGN_WORDS.values())
    if plain and (english >= 2 and english >= 0.15 * len(latin) and english > foreign):
        return "en"
    if letters < _SHORT and plain and (foreign < 2 or foreign <= english):
        return "en"
    code, probability = _classify(" ".join(latin), "latin")
    accented = letters >= _SHORT and not (plain or english)
    return code if probability >= _SURE or foreign > english or accented else "en"


def _is_code(sample: str, latin: list[str]) -> bool:
    """Tell source code, tables of numbers and the like from prose by their punctuation."""
    marks = len(_CODE_MARKS.findall(sample))
    if marks < 0.12 * len(sample):
        return False
    prose = sum(word in stopwords("en") and word not in _KEYWORDS for word in latin)
    return prose < 0.08 * len(latin)


def _cyrillic(folded: str) -> str:
    """Tell the languages of the Cyrillic script apart by letters, function words, dictionary."""
    if any(letter in folded for letter in "ўђћљњџѓќјәғқңөұүһ"):
        return _classify(folded, "cyrillic")[0]
    ukrainian = sum(map(folded.count, "іїєґ")) + len(_UKRAINIAN_APOSTROPHE.findall(folded))
    russian = sum(map(folded.count, "ыэё")) + folded.count("ъ")
    if russian and not ukrainian and not any(letter in folded for letter in "ыэё"):
        return _classify(folded, "cyrillic")[0] if russian > 0.01 * len(folded) else "ru"
    if ukrainian != russian:
        # і alone is 6 % of Ukrainian; ы, э and ё together are 3 % of Russian.
        return "uk" if ukrainian > 2 * russian else "ru"
    found = _CYRILLIC_WORD.findall(folded)
    hits = {code: sum(word in stopwords(code) for word in found) for code in ("ru", "uk")}
    if hits["ru"] == hits["uk"]:
        hits = {code: sum(words.is_known(word, code) for word in found[:50]) for code in hits}
    return "uk" if hits["uk"] > hits["ru"] else "ru"


def _classify(sample: str, script: str) -> tuple[str, float]:
    """Ask the trained model, among the plausible languages of one script."""
    code, probability = _identifier(script).classify(sample)
    return str(code), float(probability)


@cache
def _identifier(script: str) -> _Classifier:
    """Restrict the model to the languages of one script; the weights stay shared."""
    identifier = copy.copy(_model())
    identifier.set_languages(_PLAUSIBLE[script])
    return identifier


@cache
def _model() -> _Classifier:
    """Load the trained model (about 0.5 s)."""
    from py3langid.langid import (  # type: ignore[import-untyped]
        MODEL_FILE,
        LanguageIdentifier,
    )

    model: _Classifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    return model
