"""Patterns over the words of a question, written in word classes; the tables hold them as text.

A pattern is a regular expression whose atoms are words: `of` is the word itself, `.` any word,
`<role|work -past>` a word of one of these classes and of none behind a minus, `(noun: …)` a named
group, and a word in capitals a part that the table of the language names. A class is a list of the
lexicon, what word_classes.py says of a word, or `=of`, the word itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from core.language.cues import stopwords
from core.language.words import readings
from languages.language import find_language
from reasoning.rules.decomposition.phrases import (
    POSSESSIVE,
    Word,
    is_past,
    is_plural,
    is_verb,
    singular,
    words_of,
)
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
        initial = named and len(words[place - 1].text) < 4
        short = named and word.text == "." and (words[place + 1].plain or initial)
        return {"joining"} if short else {"end"}
    return {"pause"} if word.text in "()（）—–" else set()


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


_ATOM = re.compile(r"<([^<>]*)>|\((\w+):|([A-Z]{2,})|([^\W\d_A-Z][^\W_A-Z]*|(?<!\d),)|(\.)|\s+")
_ANY = "\x01[^\x03]*\x03"
_PIECE = re.compile(
    r"(?P<ahead>\(\?[=!])|(?P<group>\((?:\?:|\w+:)?)|(?P<end>\))|(?P<or>\|)"
    r"|(?P<times>(?:[?*+]|\{[\d,]*\})\??)|(?P<part>[A-Z]{2,})|<(?P<classes>[^<>]*)>"
    r"|(?P<word>[^\W\d_A-Z][^\W_A-Z]*|(?<!\d),)"
)
# Of each of these sets of classes a line must have one.
Needs = list[frozenset[str]]


@dataclass(frozen=True)
class Row:
    """Hold one row: where it matches, what it asks first, and what it asks then."""

    expression: str
    needs: Needs
    ask: str
    then: str
    given: Mapping[str, Any]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Return the pattern, compiled when a line has what it needs: most never are."""
        return re.compile(self.expression)


class PatternTable(NamedTuple):
    """The patterns of a language by section, and the word classes that they use."""

    rows: Mapping[str, Sequence[Row]]
    classes: frozenset[str]
    templates: Mapping[str, str]


class PatternMatch(NamedTuple):
    """Where a pattern matched: the words of each of its groups, by position."""

    row: Row
    words: Sequence[Word]
    places: Mapping[str, tuple[int, int]]

    def group(self, name: str) -> Sequence[Word]:
        """Return the words of a group, none where it did not take part."""
        start, end = self.places.get(name, (0, 0))
        return self.words[start:end]

    def named(self, **names: str) -> PatternMatch:
        """Return the same with groups called by other names, too."""
        others = {name: self.places[group] for name, group in names.items()}
        return self._replace(places={**self.places, **others})


@lru_cache(maxsize=8)
def table(language: str) -> PatternTable:
    """Read the table of patterns of a language."""
    raw = find_language(language).read("patterns")
    parts = raw.get("parts", {})
    used: set[str] = set()
    rows = {
        section: [
            Row(
                _expression(row["find"], parts, used),
                _needs(_PIECE.finditer(row["find"]), parts),
                row["ask"],
                row.get("then", ""),
                row,
            )
            for row in raw.get(section, ())
        ]
        for section in ("beside", "inside", "whole")
    }
    return PatternTable(rows, frozenset(used), raw.get("templates", {}))


def _needs(pieces: Iterator[re.Match[str]], parts: Mapping[str, str]) -> Needs:
    """Return what a line must have for a pattern to match it, up to the end of a group."""
    ways: list[list[Needs]] = [[]]
    for piece in pieces:
        text = piece.group()
        if piece["end"]:
            break
        if piece["or"]:
            ways.append([])
        elif piece["times"]:
            if text[0] in "?*" or text.startswith(("{0", "{,")):
                ways[-1][-1:] = []
        elif piece["group"] or piece["ahead"]:
            inside = _needs(pieces, parts)
            ways[-1].append([] if text == "(?!" else inside)
        elif piece["part"]:
            ways[-1].append(_needs(_PIECE.finditer(parts[text]), parts))
        else:
            names, _ = (
                _split(piece["classes"]) if piece["classes"] is not None else ([f"={text}"], [])
            )
            ways[-1].append([frozenset(names)] if names else [])
    joined = [[need for atom in way for need in atom] for way in ways]
    if len(joined) == 1:
        return joined[0]
    return [frozenset[str]().union(*(way[0] for way in joined))] if all(joined) else []


def _expression(source: str, parts: Mapping[str, str], used: set[str]) -> str:
    def atom(match: re.Match[str]) -> str:
        classes, group, part, word, any_word = match.groups()
        if part:
            return f"(?:{_expression(parts[part], parts, used)})"
        if group:
            return f"(?P<{group}>"
        if word:
            return f"(?:\x01{re.escape(word)}\x02[^\x03]*\x03)"
        if any_word:
            return f"(?:{_ANY})"
        return "" if classes is None else _one_of(classes, used)

    return _ATOM.sub(atom, source)


def _one_of(classes: str, used: set[str]) -> str:
    names, barred = _split(classes)
    used.update(names, barred)
    ahead = f"(?=[^\x03]*,(?:{'|'.join(map(re.escape, names))}),)" if names else ""
    if barred:
        ahead += f"(?![^\x03]*,(?:{'|'.join(map(re.escape, barred))}),)"
    return f"(?:\x01[^\x02\x03]*\x02{ahead}[^\x03]*\x03)"


def _split(classes: str) -> tuple[list[str], list[str]]:
    """Return the classes of which a word must be of one, and those of which it may be of none."""
    wanted, *barred = [piece.strip() for piece in classes.split(" -")]
    if wanted.startswith("-"):
        wanted, barred = "", [wanted[1:], *barred]
    return wanted.split("|") if wanted else [], [name for name in barred if name]


def find(text: str, section: str, lists: Lexicon) -> list[PatternMatch]:
    """Return what the rows of a section match in a text, in the order of the rows."""
    known = table(lists.language)
    words = words_of(text) if lists.known.spaced else han_words(text, lists)
    pieces: list[str] = []
    starts: dict[int, int] = {}
    at = 0
    has: set[str] = set()
    for place, word in enumerate(words):
        starts[at] = place
        classes = classes_of(words, place, lists) & known.classes
        has |= {*classes, f"={_bare(word.low)}"}
        pieces.append(f"\x01{_bare(word.low)}\x02,{','.join(sorted(classes))},\x03")
        at += len(pieces[-1])
    starts[at] = len(words)
    line = "".join(pieces)
    rows = (row for row in known.rows[section] if all(need & has for need in row.needs))
    matches = ((row, row.pattern.match(line)) for row in rows)
    return [
        PatternMatch(
            row,
            words,
            {
                name: (starts[match.start(name)], starts[match.end(name)])
                for name, group in match.groupdict().items()
                if group is not None
            },
        )
        for row, match in matches
        if match is not None
    ]


def _bare(word: str) -> str:
    return re.sub("[\x01-\x03]", " ", word)
