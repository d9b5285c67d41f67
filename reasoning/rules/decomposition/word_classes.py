"""What a word is called in the patterns: the lists that hold it, and what its form says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from core.language.inflection import readings
from core.language.stopwords import stopwords
from reasoning.rules.decomposition.noun_phrase import is_past, is_plural, is_verb, singular
from reasoning.rules.decomposition.phrases import POSSESSIVE, Word, words_of
from reasoning.rules.lexicon import Lexicon


def classes_of(words: Sequence[Word], place: int, lists: Lexicon) -> set[str]:
    """Return the classes of words[place]: its lists, its kind, and what its form says."""
    word = words[place]
    found = {f"={word.low}", word.kind, *_listed(lists).get(word.low, ())}
    found |= set(_forms(word.text, word.kind, lists))
    if word.kind == "mark":
        found |= _mark(words, place)
    return found


def _mark(words: Sequence[Word], place: int) -> set[str]:
    """Tell marks that end a clause from those within a name: "Lyon, France", "Acme Inc."."""
    word, inner = words[place], 0 < place < len(words) - 1
    named = inner and words[place - 1].named
    if word.text in ",;:，、；：":
        both = named and words[place + 1].named and word.text in ",:"
        return {"joining"} if both else {"pause"}
    if word.text in ".?!？！。…":
        short = (
            named and word.text == "." and (words[place + 1].plain or _initial(words[place - 1]))
        )
        return {"joining"} if short else {"end"}
    return {"pause"} if word.text in "()（）—–" else set()


def _initial(word: Word) -> bool:
    return len(word.text) < 4


@lru_cache(maxsize=8)
def _listed(lists: Lexicon) -> dict[str, frozenset[str]]:
    """Return the lists that hold each word."""
    found: dict[str, set[str]] = {}
    for name in lists.names():
        for word in lists.any_of(name) | lists.table(name).keys():
            found.setdefault(word, set()).add(name)
    return {word: frozenset(names) for word, names in found.items()}


@lru_cache(maxsize=4096)
def _forms(text: str, kind: str, lists: Lexicon) -> frozenset[str]:
    """Say of a word: named, capital, plain, owner, stop or content, and its grammar."""
    word = Word(text, 0, len(text), kind)
    tests = {
        "named": word.named,
        "capital": word.capital,
        "plain": word.plain,
        "owner": kind in ("word", "slot") and POSSESSIVE.search(text) is not None,
        "stop": word.low in stopwords(lists.language),
        "content": kind != "mark" and word.low not in stopwords(lists.language),
        "han": kind == "han",
        "number": text.isdigit() and len(text) < 3 and text not in ("0", "1"),
    }
    known = lists.known
    if known.spaced and not known.dictionary:
        gerund = bool(known.gerund) and word.low.endswith(known.gerund)
        tests |= {
            "past": word.plain and is_past(word.low, lists),
            "verb": is_verb(word, lists),
            "ing": gerund and word.low not in lists.any_of("noun_ing"),
            "plural": is_plural(word.low, lists),
            "date_noun": singular(word.low, lists) in lists.any_of("date_noun"),
        }
    found = {name for name, holds in tests.items() if holds}
    if known.dictionary and kind == "word":
        parses = readings(word.low, known.dictionary)
        if word.plain:
            found |= {one.pos.lower() for one in parses}
            # What it is likeliest, and its case and number there.
            found |= {f"{one.pos.lower()}1" for one in parses[:1]}
            found |= {mark for one in parses[:1] for mark in (one.case, one.number)}
        elif any(one.case == "gent" and one.pos == "NOUN" for one in parses) and not any(
            one.pos == "ADJF" for one in parses[:1]
        ):
            found.add("owned")
        for one in parses:
            found |= _listed(lists).get(one.form, frozenset())
    return frozenset(found)


def han_words(text: str, lists: Lexicon) -> list[Word]:
    """Cut a Chinese text into the words of the lists, titles, Latin words and single signs."""
    words: list[Word] = []
    for word in words_of(text):
        if word.kind != "word":
            words.append(word)
            continue
        for match in _han_pattern(lists).finditer(word.text):
            start = word.start + match.start()
            kind = "word" if match.group()[0].isascii() else "han"
            words.append(Word(match.group(), start, start + len(match.group()), kind))
    return words


@lru_cache(maxsize=4)
def _han_pattern(lists: Lexicon) -> re.Pattern[str]:
    known = sorted(_listed(lists), key=lambda one: (-len(one), one))
    return re.compile(
        "|".join([*map(re.escape, known), r"[A-Za-z0-9][A-Za-z0-9_.+#/-]*", r"[\s\S]"])
    )
