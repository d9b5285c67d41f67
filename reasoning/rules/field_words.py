"""Words that name the fields of works and files, found in questions and labels of any language."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache, lru_cache

from core.language.analysis import terms
from core.language.stopwords import stopwords
from reasoning.rules.field_table import (
    CYRILLIC,
    CYRILLIC_LANGUAGES,
    HAN,
    PARTS,
    STEERING,
    Entry,
    Word,
    han_entries,
    listed_forms,
    spaced_entries,
    words_of,
)
from reasoning.rules.lexicon import LANGUAGES, lexicon

_BY_KIND = {"date": "when", "place": "where", "person": "by", "text": "by", "list": "by"}
_KINDS = ("date", "place", "person", "number", "yesno", "list", "text")


@dataclass(frozen=True)
class Scanned:
    """Hold the fields that a text names by a noun and by a verb, and its words left unexplained.

    `mentioned` are all fields that it has any word of; `parts` tells that it speaks of a part of a
    work, or of what was made from it.
    """

    nouns: frozenset[str] = frozenset()
    verbs: frozenset[str] = frozenset()
    mentioned: frozenset[str] = frozenset()
    left: tuple[Word, ...] = ()
    parts: bool = False


@dataclass
class _Found:
    nouns: set[str] = field(default_factory=set)
    verbs: set[str] = field(default_factory=set)
    mentioned: set[str] = field(default_factory=set)
    parts: bool = False

    def add(self, entry: Entry, verb: str) -> None:
        if entry.kind in ("nouns", "labels"):
            self.nouns.add(entry.name)
        elif entry.kind == verb:
            self.verbs.add(entry.name)
        self.mentioned |= {entry.name} - {""}
        self.parts = self.parts or entry.kind == PARTS


def field_of(label: str) -> str:
    """Return the field that a label names, whatever language it is in, or ""."""
    return _field_of(" ".join(re.sub(r"[_.:-]+", " ", label).split()))


@lru_cache(maxsize=4096)
def _field_of(label: str) -> str:
    found = scan(label, label=True)  # "published", "created" are labels, and no nouns
    return next(iter(found.nouns)) if len(found.nouns) == 1 and not found.left else ""


@lru_cache(maxsize=4096)
def scan(text: str, kind: str = "", *, label: bool = False) -> Scanned:
    """Find the names of fields in a text; a verb counts by the kind of answer that is wanted."""
    found = _Found()
    verb = _BY_KIND.get(kind, "")
    left: list[Word] = []
    words = words_of(text)
    place = 0
    while place < len(words):
        word = words[place]
        if HAN.search(word.text):
            left += _scan_han(word, found, verb, label=label)
            place += 1
            continue
        entries = _at(words, place, verb, label=label)
        for entry in entries:
            found.add(entry, verb)
        if not entries and not _is_common(word):
            left.append(word)
        place += len(entries[0].words) if entries else 1
    return Scanned(
        frozenset(found.nouns),
        frozenset(found.verbs),
        frozenset(found.mentioned),
        tuple(left),
        found.parts,
    )


def _at(words: list[Word], place: int, verb: str, *, label: bool) -> list[Entry]:
    """Return the entries of the longest phrase at a place: one word may be in several lists."""
    best: list[Entry] = []
    for form in listed_forms(words[place].text):
        for entry in spaced_entries().get(form, ()):
            if entry.kind == "labels" and not label:
                continue
            if not _follows(entry, words[place : place + len(entry.words)]):
                continue
            if not best or len(entry.words) > len(best[0].words):
                best = [entry]
            elif len(entry.words) == len(best[0].words) and entry not in best:
                best.append(entry)
    return best


def _follows(entry: Entry, words: list[Word]) -> bool:
    if len(words) < len(entry.words):
        return False
    pairs = zip(words, entry.words, strict=True)
    return all(listed_forms(word.text) & wanted for word, wanted in pairs)


def _scan_han(word: Word, found: _Found, verb: str, *, label: bool) -> list[Word]:
    """Take the known phrases out of a run of Han characters; return what is left of it."""
    text = word.text
    pattern, entries = han_entries()
    rest = []
    end = 0
    cut = frozenset(terms(text, "zh"))
    for match in pattern.finditer(text):
        if len(match.group()) == 1 and match.group() not in cut:
            continue
        if match.start() > end:
            rest.append((end, text[end : match.start()]))
        for entry in entries.get(match.group(), ()):
            if entry.kind != "labels" or label:
                found.add(entry, verb)
        end = match.end()
    rest.append((end, text[end:]))
    left = []
    for start, piece in rest:
        common = stopwords("zh")
        for term in terms(piece, "zh"):
            if term not in common:
                left.append(Word(term, word.start + start, frozenset({term})))
    return left


def _is_common(word: Word) -> bool:
    if len(word.text) < 2 and not word.text.isdigit():
        return True
    low = word.text.casefold()
    if CYRILLIC.search(low):
        return any(_common(language, low) for language in CYRILLIC_LANGUAGES)
    return _common("en", low)


def _common(language: str, word: str) -> bool:
    return word in stopwords(language) or word in _steering(language)


@cache
def _steering(language: str) -> frozenset[str]:
    listed = lexicon(language).any_of(*STEERING, "person", "date", "place", "number")
    return frozenset(part for entry in listed for part in entry.casefold().split())


@lru_cache(maxsize=1024)
def kind_of(text: str) -> str:
    """Return the kind of answer that a question wants under any language it may be in.

    A short question that quotes a title of another language is easily misjudged.
    """
    languages = [one for one in LANGUAGES if one != "zh" or HAN.search(text)]
    kinds = {lexicon(language).answer_kind(text) for language in languages}
    return next(kind for kind in _KINDS if kind in kinds)
