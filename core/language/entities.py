"""Names in a text by rules: persons, organisations, titles, abbreviations, names from code.

A tagger (a trained model) may add what it finds; longer finds win over shorter ones (SPEC M3).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from core.language.capitals import ROMAN, capitalised_names
from core.language.chinese_names import chinese_names
from core.language.identifiers import find_identifiers
from core.language.sentences import sentence_spans

MIN_CHARACTERS = 2
MAX_CHARACTERS = 80
MAX_WORDS = 8

_QUOTED = re.compile(
    r"《([^《》\n]+)》|〈([^〈〉\n]+)〉|「([^「」\n]+)」|『([^『』\n]+)』|«([^«»\n]+)»"
    r"|“([^“”\n]+)”|„([^„“”\n]+)[“”]|(?<!\w)\"([^\"\n]+)\"(?!\w)"
)
_CAPITALS = "A-ZА-ЯЁІЇЄҐ"
_ABBREVIATION = re.compile(
    rf"(?<![\w.&/-])(?:(?:[{_CAPITALS}]\.){{2,6}}"
    rf"|[{_CAPITALS}](?:[{_CAPITALS}0-9]|[&/-](?=[{_CAPITALS}0-9])){{1,15}})(?=s?(?!\w))"
)
_AFTER_NUMBER = re.compile(r"\d[\s\u00a0\u202f]?$")
_SENTENCE_END = ".!?…。！？"


class Entity(NamedTuple):
    """Name something by a span: text[start:end] == entity.text.

    `kind` is PERSON, ORG, GPE, LOC, EVENT or WORK_OF_ART where it is known, else NAME,
    ABBREVIATION, CODE or, from a tagger, PHRASE.
    """

    text: str
    kind: str
    start: int
    end: int


Tagger = Callable[[str], Iterable[Entity]]


def entities(text: str, language: str, tagger: Tagger | None = None) -> list[Entity]:
    """List the names of a text in its order, without overlaps.

    `language` chooses the word lists (ISO 639-1). A single capitalised word counts only inside a
    sentence, since every sentence begins with a capital. Numbers with units are no names.
    """
    found = list(tagger(text)) if tagger else []
    spans = [*_titles(text), *_codes(text), *_abbreviations(text), *chinese_names(text)]
    spans += capitalised_names(text, language)
    found += [Entity(text[start:end], kind, start, end) for kind, start, end in spans]
    return _without_overlaps(entity for entity in found if _fits(entity.text))


def _fits(name: str) -> bool:
    """Keep what is neither too short nor too long, and says more than digits."""
    fits = MIN_CHARACTERS <= len(name) <= MAX_CHARACTERS and len(name.split()) <= MAX_WORDS
    return fits and any(character.isalpha() for character in name)


def _without_overlaps(found: Iterable[Entity]) -> list[Entity]:
    """Keep the longest of overlapping finds; of equal ones the first found."""
    kept: list[Entity] = []
    taken: set[int] = set()
    for entity in sorted(found, key=lambda entity: entity.start - entity.end):
        if taken.isdisjoint(range(entity.start, entity.end)):
            kept.append(entity)
            taken.update(range(entity.start, entity.end))
    return sorted(kept, key=lambda entity: entity.start)


def _titles(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield what is quoted and written like a title: no small first letter, no whole sentence."""
    for match in _QUOTED.finditer(text):
        start, end = match.span(match.lastindex or 0)
        title = text[start:end]
        if title.strip() == title and not title[0].islower() and title[-1] not in _SENTENCE_END:
            yield "WORK_OF_ART", start, end


def _codes(text: str) -> Iterator[tuple[str, int, int]]:
    for name in find_identifiers(text):
        for match in re.finditer(rf"(?<![\w.]){re.escape(name)}(?!\w)", text):
            if not _is_unit(text, match.start()):
                yield "CODE", match.start(), match.end()


def _abbreviations(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield capitals that are neither Roman numerals, units nor words of a shouted sentence."""
    matches = list(_ABBREVIATION.finditer(text))
    loud = _shouted(text) if matches else set()
    for match in matches:
        name, start = match.group(), match.start()
        letters = sum(character.isalpha() for character in name)
        if (
            letters > 1
            and not _is_unit(text, start)
            and not ROMAN.fullmatch(name)
            and start not in loud
        ):
            yield "ABBREVIATION", start, match.end()


def _is_unit(text: str, start: int) -> bool:
    return _AFTER_NUMBER.search(text[max(0, start - 2) : start]) is not None


def _shouted(text: str) -> set[int]:
    """Return the places within sentences of several words in capitals alone."""
    spans = [span for span in sentence_spans(text) if text[slice(*span)].isupper()]
    return {p for start, end in spans if text[start:end].count(" ") > 2 for p in range(start, end)}
