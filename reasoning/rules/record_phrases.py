"""The phrases of questions over records, found in a text of any language."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import cache, lru_cache
from typing import Any

import yaml

from core.language.stopwords import stopwords
from reasoning.rules.field_table import CYRILLIC, CYRILLIC_LANGUAGES, HAN, Forms, forms
from reasoning.rules.lexicon import FOLDER

TOKEN = re.compile(
    r"[\"“«„《「](?P<quoted>[^\"”»“》」]{2,80})[\"”»“》」]|(?P<decade>\d{3}0)(?:['’]?s|-?х|-?ті|年代)"
    r"|(?P<date>\d{4}-(?:0\d|1[0-2])(?:-\d{2})?(?!\d))|(?P<number>\d+(?:[.,]\d+)*)(?!\w*[a-z-]\d)"
    r"|(?P<han>[\u3400-\u9fff]+)|(?P<sign>[<>]=?|≥|≤|[$€]|[-–—~](?=\s?\d))"
    r"|(?P<word>[^\W\d_\u3400-\u9fff][^\W_\u3400-\u9fff]*(?:['’ʼ_-][^\W_\u3400-\u9fff]+)*)"
)
POSSESSIVE = re.compile(r"['’]s$|['’]$")
_ENDING = re.compile(r"(?:[ыиоеуюіаяє][йяеюхмії]|[оеі]?[гмв][оуіь]?|[аыиоуеюяіїь])$")
LEAST_FOR_TYPO = 4


@dataclass(frozen=True)
class Meaning:
    """Say what a phrase may stand for: a mark, a field, one of its values, an order, a table."""

    kind: str
    name: str = ""
    value: str = ""


@dataclass(frozen=True)
class Said:
    """Hold a phrase where a question says it, with all that it may mean; nothing if unknown."""

    text: str
    start: int
    end: int
    meanings: tuple[Meaning, ...] = ()

    def of(self, kind: str) -> list[Meaning]:
        """Return what it means of one kind."""
        return [one for one in self.meanings if one.kind == kind]

    def is_a(self, *kinds: str) -> bool:
        """Tell whether it may be of any of these kinds."""
        return any(one.kind in kinds for one in self.meanings)


@cache
def tables() -> dict[str, Any]:
    """Return the file of phrases; names of fields that fields.yaml has are added to its own."""
    loaded: dict[str, Any] = yaml.safe_load((FOLDER / "records.yaml").read_text(encoding="utf-8"))
    general = yaml.safe_load((FOLDER / "fields.yaml").read_text(encoding="utf-8"))["fields"]
    names = {name: list(more) for name, more in loaded["fields"].items()}
    for name, ways in general.items():
        names.setdefault(name, []).extend([*ways.get("nouns", ()), *ways.get("labels", ())])
    loaded["fields"] = names
    loaded["when"] = {name: ways["when"] for name, ways in general.items() if "when" in ways}
    return loaded


class Phrases:
    """Find phrases in a text, the longest at each place."""

    def __init__(self, listed: Iterable[tuple[str, Meaning]], base: Phrases | None = None) -> None:
        """Hold these phrases, and those of `base`."""
        self._spaced: dict[tuple[str, tuple[Forms, ...]], tuple[Meaning, ...]] = {}
        self._han: dict[str, tuple[Meaning, ...]] = {}
        if base is not None:
            self._spaced |= base._spaced
            self._han |= base._han
        for text, meaning in listed:
            if HAN.search(text):
                self._add(self._han, text, meaning)
            elif words := tuple(map(_said, words_of(text))):
                for word in words[0]:
                    self._add(self._spaced, (word, words[1:]), meaning)
        self._starts: dict[str, list[tuple[Forms, ...]]] = {}
        for word, rest in self._spaced:
            self._starts.setdefault(word, []).append(rest)
        for rests in self._starts.values():
            rests.sort(key=len, reverse=True)
        self._longest = max(map(len, self._han), default=0)

    @staticmethod
    def _add(held: dict[Any, tuple[Meaning, ...]], key: object, meaning: Meaning) -> None:
        known = held.get(key, ())
        if meaning not in known:
            held[key] = (*known, meaning)

    def scan(self, text: str) -> list[Said]:
        """Cut a text into phrases, known or not."""
        tokens = [*TOKEN.finditer(text)]
        found: list[Said] = []
        place = 0
        while place < len(tokens):
            token = tokens[place]
            kind = str(token.lastgroup)
            if kind == "han":
                found += self._scan_han(token.group(), token.start())
            elif kind in ("word", "sign"):
                meanings, length = self._longest_at(tokens, place)
                end = tokens[place + length - 1].end()
                found.append(Said(text[token.start() : end], token.start(), end, meanings))
                place += length - 1
            else:
                said = token.group(kind)
                found.append(Said(said, *token.span(), (Meaning(kind, said),)))
            place += 1
        return found

    def _longest_at(
        self, tokens: Sequence[re.Match[str]], place: int
    ) -> tuple[tuple[Meaning, ...], int]:
        word = tokens[place].group()
        found: tuple[Meaning, ...] = ()
        best = 1
        for form in _said(word):
            for rest in self._starts.get(form, ()):
                following = tokens[place + 1 : place + 1 + len(rest)]
                if len(rest) + 1 < best or len(following) < len(rest):
                    continue
                if all(
                    _said(one.group()) & want for one, want in zip(following, rest, strict=True)
                ):
                    more = self._spaced[form, rest]
                    found = more if len(rest) + 1 > best else (*found, *more)
                    best = len(rest) + 1
        return tuple(dict.fromkeys(found)), best

    def mended(self, word: str) -> tuple[Meaning, ...]:
        """Return what a word may stand for that is mistyped by one letter."""
        if len(word) < LEAST_FOR_TYPO or is_common(word):
            return ()
        near = [self._spaced[one, ()] for one in one_letter_off(word) if (one, ()) in self._spaced]
        # What the schema has is meant before what every collection has.
        near = [found for found in near if all(one.kind != "filler" for one in found)]
        return min(near, key=lambda found: min(_likely(one) for one in found), default=())

    def _scan_han(self, run: str, start: int) -> Iterator[Said]:
        place = unknown = 0
        while place < len(run):
            length = next(
                (n for n in range(min(self._longest, len(run) - place), 0, -1)
                 if run[place : place + n] in self._han),
                0,
            )  # fmt: skip
            if length:
                if unknown < place:
                    yield Said(run[unknown:place], start + unknown, start + place)
                said = run[place : place + length]
                yield Said(said, start + place, start + place + length, self._han[said])
                unknown = place + length
            place += max(1, length)
        if unknown < len(run):
            yield Said(run[unknown:], start + unknown, start + len(run))


def _likely(meaning: Meaning) -> tuple[int, str, str]:
    order = ("value", "table", "field", "noun")
    return order.index(meaning.kind) if meaning.kind in order else len(order), *astuple(meaning)[1:]


@lru_cache(maxsize=4096)
def _said(word: str) -> Forms:
    """Return the forms under which a word is known: as it is, and as its inflections share."""
    bare = POSSESSIVE.sub("", word)
    if not CYRILLIC.search(bare):
        return frozenset({bare.casefold()})
    # The lemma of an adjective may be taken for that of a noun: "толстая" for "толстой".
    begins = _ENDING.sub("~", bare.casefold())
    return forms(bare) | {bare.casefold(), begins if len(begins) > LEAST_FOR_TYPO else bare}


def words_of(text: str) -> list[str]:
    """Return the words and numbers of a text."""
    return [match.group() for match in TOKEN.finditer(text)]


def one_letter_off(word: str) -> set[str]:
    """Return what a word becomes by one letter less, two in the other order, or one more or other.

    Only letters of its own script are tried.
    """
    letters = (
        "абвгдежзийклмнопрстуфхцчшщьыъэюяієїґ"
        if CYRILLIC.search(word)
        else "abcdefghijklmnopqrstuvwxyz"
    )
    splits = [(word[:n], word[n:]) for n in range(len(word) + 1)]
    less = {a + b[1:] for a, b in splits[1:] if b}
    swapped = {a + b[1] + b[0] + b[2:] for a, b in splits if len(b) > 1}
    other = {a + letter + b[1:] for a, b in splits if b for letter in letters}
    more = {a + letter + b for a, b in splits for letter in letters}
    return (less | swapped | other | more) - {word}


def is_common(word: str) -> bool:
    """Tell whether a word is a function word of a language of its script."""
    low = word.casefold()
    languages = CYRILLIC_LANGUAGES if CYRILLIC.search(low) else ("en",)
    return any(low in stopwords(language) for language in languages)


@cache
def general_phrases() -> Phrases:
    """Return the phrases of every collection."""
    loaded = tables()
    listed = [(str(t), Meaning(kind)) for kind, texts in loaded["marks"].items() for t in texts]
    for place, order in enumerate(loaded["orders"]):
        for way in ("most", "least", "gt", "lt"):
            listed += [(str(t), Meaning(f"order {way}", str(place))) for t in order.get(way, ())]
    for place, group in enumerate(loaded["tables"]):
        listed += [(str(text), Meaning("noun", str(place))) for text in group]
    return Phrases([*listed, *plurals(listed)])


def plurals(listed: Iterable[tuple[str, Meaning]]) -> Iterator[tuple[str, Meaning]]:
    """Yield the English plurals of names and values."""
    for text, meaning in listed:
        if meaning.kind in ("noun", "field", "value") and text.isascii() and len(text) > 2:
            yield (f"{text[:-1]}ies" if text.endswith("y") else f"{text}s"), meaning
