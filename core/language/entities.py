"""Names in a text by rules: persons, organisations, titles, abbreviations, names from code.

A tagger (a trained model) may add what it finds; longer finds win over shorter ones (SPEC M3).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import NamedTuple

from core.language.chinese import CODE, segment
from core.language.cues import cues, stopwords
from core.language.identifiers import find_identifiers
from core.language.scan import APOSTROPHES, HAN, UNSPACED, fold, script_of
from core.language.sentences import sentence_spans
from core.language.words import cyrillic_dictionary, languages_of, lemma
from languages.language import FALLBACK

_INSIDE = rf"[^\W_{HAN}{UNSPACED}]+"
# An initial keeps its full stop; any other word is letters, hyphens and apostrophes.
_WORD = re.compile(rf"(?<!\w)[^\W\d_]\.|{_INSIDE}(?:[-{APOSTROPHES}&]{_INSIDE})*|&")
_POSSESSIVE = re.compile(rf"[{APOSTROPHES}]s$")
ROMAN = re.compile(r"M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
_MAX_CONNECTORS = 2
_HEADLINE_WORDS = 5
_HEADLINE_SHARE = 0.8
_NOUNS_CAPITALISED = frozenset({"de", "lb"})


class _Word(NamedTuple):
    text: str
    start: int
    end: int

    @property
    def named(self) -> bool:
        return self.text[0].isupper()

    @property
    def by_capitals(self) -> bool:
        """Tell whether it is a lone capital or has one inside, as units and abbreviations do."""
        return len(self.text) == 1 or not self.text[1:].islower()

    @property
    def folded(self) -> str:
        return fold(self.text.rstrip("."))


class _Lists(NamedTuple):
    """The words of one language that decide what a capital means."""

    common: frozenset[str]
    connectors: frozenset[str]
    organisations: frozenset[str]
    titles: frozenset[str]


@cache
def _lists(language: str) -> _Lists:
    words = cues(language)
    english = cues(FALLBACK)
    return _Lists(
        stopwords(language)
        | stopwords(FALLBACK)
        | {*words.words("request"), *words.words("calendar")},
        frozenset(words.words("connector")),
        frozenset(words.words("organisation") + english.words("organisation")),
        frozenset(words.words("person_title") + english.words("person_title")),
    )


def capitalised_names(text: str, language: str) -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of runs of capitalised words; kind is PERSON, ORG or NAME.

    Small connecting words may stand inside a run ("University of Oslo"). Alone, a word counts
    only inside a sentence that is neither a headline nor in a language that capitalises nouns.
    """
    lists = _lists(language)
    for start, end in sentence_spans(text):
        words = [_Word(m.group(), m.start(), m.end()) for m in _WORD.finditer(text, start, end)]
        if not any(word.named for word in words) or text[start:end].isupper():
            continue
        single = language not in _NOUNS_CAPITALISED and not _is_headline(words, lists)
        for run, before in _runs(text, words, lists):
            initial = bool(run) and run[0].start == words[0].start
            yield from _name(run, before, lists, single and not initial)


def _is_headline(words: list[_Word], lists: _Lists) -> bool:
    content = [word for word in words if word.folded not in lists.common]
    named = sum(word.named for word in content)
    return len(content) >= _HEADLINE_WORDS and named >= _HEADLINE_SHARE * len(content)


def _runs(
    text: str, words: list[_Word], lists: _Lists
) -> Iterator[tuple[list[_Word], _Word | None]]:
    """Yield runs of capitalised words, each with the word before it."""
    run: list[_Word] = []
    waiting: list[_Word] = []  # connectors that belong to the run if a name follows
    before: _Word | None = None
    previous: _Word | None = None
    for word in words:
        adjacent = previous is not None and _adjacent(text, previous, word, lists)
        is_unit = word.by_capitals and text[: word.start].rstrip()[-1:].isdigit()
        # "Smith of NASA" names two; "University of Oslo" names one.
        apart = bool(waiting) and len(word.text) > 1 and word.text.isupper()
        if run and (not adjacent or is_unit or apart):
            yield run, before
            run, waiting = [], []
        if word.named and not is_unit:
            if not run:
                before = previous if adjacent else None
            run, waiting = [*run, *waiting, word], []
        elif run and word.folded in lists.connectors and len(waiting) < _MAX_CONNECTORS:
            waiting.append(word)
        elif run:
            yield run, before
            run, waiting = [], []
        previous = word
    if run:
        yield run, before


def _adjacent(text: str, one: _Word, other: _Word, lists: _Lists) -> bool:
    """Tell whether only blanks lie between, or a full stop that an initial or a title has."""
    gap = text[one.end : other.start]
    if gap.startswith(".") and one.folded in lists.titles:
        gap = gap[1:]
    return "\n" not in gap and not gap.strip()


def _name(
    run: list[_Word], before: _Word | None, lists: _Lists, single: bool
) -> Iterator[tuple[str, int, int]]:
    """Yield the name in a run without the common words and titles around it."""
    titled = before is not None and before.folded in lists.titles
    while run and (run[0].folded in lists.common or run[0].folded in lists.titles):
        titled = run[0].folded in lists.titles
        run, single = run[1:], True
    while run and (run[-1].folded in lists.common or run[-1].folded in lists.connectors):
        run = run[:-1]
    while run and run[0].folded in lists.connectors:
        run = run[1:]
    if not run or (len(run) == 1 and (ROMAN.fullmatch(run[0].text) or not (single or titled))):
        return
    initials = len(run) > 1 and any(word.text.endswith(".") for word in run)
    kind = "NAME"
    if any(_is_organisation(word, lists) for word in run):
        kind = "ORG"
    elif titled or initials:
        kind = "PERSON"
    possessive = _POSSESSIVE.search(run[-1].text)
    yield kind, run[0].start, run[-1].end - (len(possessive.group()) if possessive else 0)


def _is_organisation(word: _Word, lists: _Lists) -> bool:
    folded = word.folded
    if folded in lists.organisations or script_of(folded) != "cyrillic":
        return folded in lists.organisations
    dictionaries = {cyrillic_dictionary(folded, language) for language in languages_of(folded)}
    return any(lemma(folded, dictionary) in lists.organisations for dictionary in dictionaries)


_RUN = re.compile(f"[{HAN}]+")
_FOREIGN = re.compile(f"[{HAN}]{{1,8}}(?:[·•・][{HAN}]{{1,8}})+")
_MAX_SINGLES = 4  # an unknown name falls apart into single characters


def chinese_names(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of persons and organisations; overlaps are possible."""
    for match in _FOREIGN.finditer(text):
        yield "PERSON", *_trim_name(match)
    for match in _titled().finditer(text):
        yield "PERSON", match.start(), match.end()
    endings = cues(CODE).words("organisation")
    for match in _RUN.finditer(text):
        if any(ending in match.group() for ending in endings):
            for start, end in _organisations(match.group(), endings):
                yield "ORG", match.start() + start, match.start() + end


def _trim_name(match: re.Match[str]) -> tuple[int, int]:
    """Cut the words of the sentence off both ends of "A·B", as far as they are function words."""
    start, end = match.span()
    parts = re.split("[·•・]", match.group())
    common = stopwords(CODE)
    heads = [to for at, to in _words(parts[0]) if parts[0][at:to] in common]
    tails = [at for at, to in _words(parts[-1]) if at and parts[-1][at:to] in common]
    start += max((to for to in heads if to < len(parts[0])), default=0)
    return start, end - len(parts[-1]) + min(tails, default=len(parts[-1]))


@cache
def _titled() -> re.Pattern[str]:
    """Match a surname and a given name before a title, the title left out."""
    words = cues(CODE)
    surnames = "|".join(sorted(words.words("surname"), key=len, reverse=True))
    titles = "|".join(words.words("person_title"))
    return re.compile(f"(?:{surnames})[{HAN}]{{1,2}}(?={titles})")


def _organisations(run: str, endings: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """Yield the spans of a run that end like an organisation, with the name before the ending."""
    words = _words(run)
    for place, (start, end) in enumerate(words):
        word = run[start:end]
        ending = next((e for e in endings if word.endswith(e)), None)
        if ending is None:
            continue
        if word == ending:
            start = _name_start(run, words[:place], start)
        if start < end - len(ending):
            yield start, end


def _name_start(run: str, before: list[tuple[int, int]], start: int) -> int:
    """Go back over one known word, or over the single characters of an unknown name."""
    for taken, (word_start, word_end) in enumerate(reversed(before)):
        word = run[word_start:word_end]
        counted = word[-1] in cues(CODE).words("counter") and len(word) <= 2  # 这家, 一个
        if word in stopwords(CODE) or counted or taken == _MAX_SINGLES or (taken and len(word) > 1):
            break
        start = word_start
        if len(word) > 1:
            break
    return start


def _words(run: str) -> list[tuple[int, int]]:
    """Return the spans of the words, none inside another."""
    return [(start, end) for _, start, end in segment(run, "default")]


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
