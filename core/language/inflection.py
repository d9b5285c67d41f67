"""Forms of Cyrillic words by the dictionary: what a word may be, and another case of it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from core.language.words import _morphology


class MorphAnalysis(NamedTuple):
    """Hold one reading of a word: OpenCorpora names of its part of speech, case and so on.

    `gender` is masc, femn, neut or "" (a plural), `number` sing or plur, `form` the dictionary
    form. An empty string stands for what the reading does not have.
    """

    pos: str
    case: str
    gender: str
    number: str
    form: str


@lru_cache(maxsize=8192)
def readings(word: str, dictionary: str) -> tuple[MorphAnalysis, ...]:
    """Return the readings of a casefolded word, likeliest first, by a pymorphy3 dictionary."""
    found = []
    for parse in _parses(word, dictionary):
        tag = parse.tag
        found.append(
            MorphAnalysis(
                _part_of_speech(tag),
                _case(str(tag.case or "")),
                "" if "plur" in tag else str(tag.gender or ""),
                "plur" if "plur" in tag else "sing",
                parse.normal_form,
            )
        )
    return tuple(found)


@lru_cache(maxsize=8192)
def inflected(word: str, dictionary: str, pos: str, case: str, gender: str, number: str) -> str:
    """Return the form of a casefolded word in a case; "" when there is none.

    Gender and number may be "", which leaves them as they are.
    """
    # The Ukrainian dictionary marks plurals alone.
    counted = number if number == "plur" or dictionary == "ru" else ""
    wanted = {name for name in (case, "" if number == "plur" else gender, counted) if name}
    for parse in _parses(word, dictionary):
        if _part_of_speech(parse.tag) == pos:
            made = parse.inflect(wanted)
            if made is not None:
                return str(made.word)
            if pos == "NOUN" and case == "nomn" and number != "plur":
                return str(parse.normal_form)  # the Ukrainian one has no case
    return ""


def _part_of_speech(tag: Any) -> str:  # noqa: ANN401 - an untyped library
    """Name a participle as one, also where the dictionary calls it an adjective."""
    voiced = "pssv" in tag or "actv" in tag
    return "PRTF" if str(tag.POS) == "ADJF" and voiced else str(tag.POS or "")


def _case(name: str) -> str:
    """Name the rare second cases as the common ones they stand for."""
    return {"gen2": "gent", "loc2": "loct", "acc2": "accs", "gen1": "gent"}.get(name, name)


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
