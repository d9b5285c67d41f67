"""The table of the names of fields, works and their parts in every language, for quick look-up."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache

import yaml

from core.language.analysis import terms
from reasoning.rules.lexicon import FOLDER, lexicon

HAN = re.compile(r"[\u3400-\u9fff]")
CYRILLIC = re.compile(r"[\u0400-\u04ff]")
_WORD = re.compile(r"[\u3400-\u9fff]+|[^\W_\u3400-\u9fff]+(?:['’ʼ-][^\W_\u3400-\u9fff]+)*")
CYRILLIC_LANGUAGES = ("ru", "uk")
STEERING = ("question", "auxiliary", "filler", "joiner", "recommend")
WORKS, PARTS = "works", "parts"

# Ways to write a word as a term: those of each language of its script.
Forms = frozenset[str]


@dataclass(frozen=True)
class Word:
    """Hold a word of a text that no list explains; a Han word has no blanks around it."""

    text: str
    start: int
    forms: Forms


@dataclass(frozen=True)
class Entry:
    """Hold a phrase: the list it is in ("works", "parts", "nouns", "labels", "by" …), its field."""

    kind: str
    name: str
    words: tuple[Forms, ...]
    text: str


@lru_cache(maxsize=65536)
def forms(word: str) -> Forms:
    """Return the terms of a word under each language that its script may be of."""
    if HAN.search(word):
        return frozenset({word})
    languages = CYRILLIC_LANGUAGES if CYRILLIC.search(word) else ("en",)
    found = {term for language in languages for term in terms(word, language)}
    return frozenset(found or {word.casefold()})


def listed_forms(word: str) -> Forms:
    """Return the forms under which a word is listed: "publisher" and "published" are two."""
    if HAN.search(word) or CYRILLIC.search(word):
        return forms(word)
    return frozenset({word.casefold()})


def words_of(text: str) -> list[Word]:
    """Return the words of a text, each run of Han characters as one."""
    return [Word(m.group(), m.start(), forms(m.group())) for m in _WORD.finditer(text)]


@cache
def _entries() -> tuple[Entry, ...]:
    loaded = yaml.safe_load((FOLDER / "fields.yaml").read_text(encoding="utf-8"))
    lists = [(kind, "", loaded[kind]) for kind in (WORKS, PARTS)]
    for name, ways in loaded["fields"].items():
        lists += [(kind, name, listed) for kind, listed in ways.items()]
    return tuple(
        Entry(kind, name, tuple(listed_forms(word.text) for word in words_of(str(text))), str(text))
        for kind, name, listed in lists
        for text in listed
    )


@cache
def spaced_entries() -> dict[str, tuple[Entry, ...]]:
    """Return the phrases of scripts with blanks by each form of their first word."""
    found: dict[str, list[Entry]] = {}
    for entry in _entries():
        if not HAN.search(entry.text):
            for form in entry.words[0]:
                found.setdefault(form, []).append(entry)
    return {form: tuple(listed) for form, listed in found.items()}


@cache
def han_entries() -> tuple[re.Pattern[str], dict[str, tuple[Entry, ...]]]:
    """Return a pattern of all phrases in Han characters, longest first, and the entries of each."""
    found: dict[str, list[Entry]] = {}
    for entry in _entries():
        if HAN.search(entry.text):
            found.setdefault(entry.text, []).append(entry)
    chinese = lexicon("zh")
    steering = chinese.any_of(*STEERING, "person", "date", "place", "number")
    listed = sorted({*found, *steering}, key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, listed)))
    return pattern, {text: tuple(entries) for text, entries in found.items()}
