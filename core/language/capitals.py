"""Names that capitals show: runs of capitalised words, Latin or Cyrillic."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from core.language.cues import cues
from core.language.scan import APOSTROPHES, HAN, UNSPACED, fold, script_of
from core.language.sentences import sentence_spans
from core.language.stopwords import stopwords
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
