"""The phrases of questions over records, found in a text of any language."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import cache, cached_property, lru_cache
from os.path import commonprefix
from pathlib import Path
from typing import Any

from core.language.analysis import terms
from core.language.cues import stopwords
from core.language.words import languages_of
from languages.language import known_languages, read_yaml

HAN = re.compile(r"[\u3400-\u9fff]")
CYRILLIC = re.compile(r"[\u0400-\u04ff]")
_CYRILLIC_WORD = re.compile(r"[\u0400-\u04ff'’ʼ-]+")
FILE = Path(__file__).with_name("records.yaml")
_DECADES = "|".join(one.decade for one in known_languages().values() if one.decade)
# Ways to write a word as a term: those of each language of its script.
Forms = frozenset[str]

TOKEN = re.compile(
    rf"[\"“«„《「](?P<quoted>[^\"”»“》」]{{2,80}})[\"”»“》」]|(?P<decade>\d{{3}}0)(?:{_DECADES})"
    r"|(?P<date>\d{4}-(?:0\d|1[0-2])(?:-\d{2})?(?!\d))|(?P<number>\d+(?:[.,]\d+)*)(?!\w*[a-z-]\d)"
    r"|(?P<han>[\u3400-\u9fff])|(?P<sign>[<>]=?|≥|≤|[$€]|[-–—~](?=\s?\d|$))"
    r"|(?P<word>[^\W\d_\u3400-\u9fff][^\W_\u3400-\u9fff]*(?:['’ʼ_-][^\W_\u3400-\u9fff]+)*(?:\+\+|\#)?)"
)
POSSESSIVE = re.compile(r"['’]s$|['’]$")
_ENDING = re.compile(r"(?:[ыиоеуюіаяє][йяеюхмії]|[оеі]?[гмв][оуіь]?|[аыиоуеюяіїь])$")
LEAST_FOR_TYPO = 4  # chosen, not measured


@dataclass(frozen=True)
class Meaning:
    """Say what a phrase may stand for: a mark, a field, one of its values, an order, a table."""

    kind: str
    name: str = ""
    value: str = ""


@dataclass(frozen=True)
class PhraseMatch:
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
    """Return the phrases of all languages, and what records have whatever their language.

    Names of fields that the files `fields` have are added to those of the files `records`.
    """
    loaded: dict[str, Any] = {**read_yaml(FILE), "general": {}}
    for one in known_languages().values():
        loaded = _merged(loaded, one.read("records"))
        loaded["general"] = _merged(loaded["general"], one.read("fields"))
    general = loaded["general"]["fields"]
    names = {name: list(more) for name, more in loaded["fields"].items()}
    for name, ways in general.items():
        names.setdefault(name, []).extend([*ways.get("nouns", ()), *ways.get("labels", ())])
    loaded["fields"] = names
    for name, ways in general.items():
        loaded["when"].setdefault(name, []).extend(ways.get("when", ()))
    return loaded


def _merged(ours: Any, theirs: Any) -> Any:  # noqa: ANN401 - tables of any depth
    """Join two tables: what both have one behind the other, each text once."""
    if isinstance(ours, dict):
        both = {name: _merged(ours[name], theirs[name]) for name in ours if name in theirs}
        return {**ours, **theirs, **both}
    return list(dict.fromkeys([*ours, *theirs]))


class _PhraseIndex:
    """Hold phrases by the forms of their words."""

    def __init__(self, listed: Iterable[tuple[str, Meaning]], base: _PhraseIndex | None) -> None:
        """Hold these phrases, and those of `base`."""
        self.meanings: dict[tuple[str, tuple[Forms, ...]], tuple[Meaning, ...]] = {}
        self.meanings |= base.meanings if base is not None else {}
        for text, meaning in listed:
            words = [_forms(match.group()) for match in TOKEN.finditer(text)]
            for word in words[0] if words else ():
                key = word, tuple(words[1:])
                self.meanings[key] = tuple(dict.fromkeys((*self.meanings.get(key, ()), meaning)))
        self.starts: dict[str, list[tuple[Forms, ...]]] = {}
        for word, rest in sorted(self.meanings, key=lambda key: -len(key[1])):
            self.starts.setdefault(word, []).append(rest)


class Phrases:
    """Find phrases in a text, the longest at each place."""

    def __init__(self, listed: Iterable[tuple[str, Meaning]], base: Phrases | None = None) -> None:
        """Take these phrases, and those of `base`."""
        self._listed = [*listed]
        self._base = base

    @cached_property
    def _all(self) -> _PhraseIndex:
        return _PhraseIndex(self._listed, None if self._base is None else self._base._all)

    @cached_property
    def _without_cyrillic(self) -> _PhraseIndex:
        """Return what a text without Cyrillic may have: two dictionaries are not loaded for it."""
        listed = (one for one in self._listed if not _has_cyrillic_word(one[0]))
        return _PhraseIndex(listed, None if self._base is None else self._base._without_cyrillic)

    def _index_of(self, text: str) -> _PhraseIndex:
        return self._all if CYRILLIC.search(text) else self._without_cyrillic

    def scan(self, text: str) -> list[PhraseMatch]:
        """Cut a text into phrases, known or not."""
        index = self._index_of(text)
        tokens = [*TOKEN.finditer(text)]
        found: list[PhraseMatch] = []
        place = 0
        while place < len(tokens):
            token = tokens[place]
            kind = str(token.lastgroup)
            if kind in ("word", "sign", "han"):
                meanings, length = _longest_at(index, tokens, place)
                start, end = token.start(), tokens[place + length - 1].end()
                unknown = kind == "han" and not meanings and found and not found[-1].meanings
                if unknown and found[-1].end == start and HAN.search(found[-1].text):
                    start = found.pop().start  # characters that no list knows are one word
                found.append(PhraseMatch(text[start:end], start, end, meanings))
                place += length - 1
            else:
                content = token.group(kind)
                found.append(PhraseMatch(content, *token.span(), (Meaning(kind, content),)))
            place += 1
        return found

    def corrected(self, word: str) -> tuple[Meaning, ...]:
        """Return what a word may stand for that is mistyped by one letter."""
        if len(word) < LEAST_FOR_TYPO or is_common(word):
            return ()
        near = [found for (one, rest), found in self._index_of(word).meanings.items()
                if not rest and one_slip(word, one)
                and all(m.kind != "filler" for m in found)]  # fmt: skip
        # What the schema has is meant before what every collection has.
        return min(near, key=lambda found: min(_likely(one) for one in found), default=())


def _longest_at(
    index: _PhraseIndex, tokens: Sequence[re.Match[str]], place: int
) -> tuple[tuple[Meaning, ...], int]:
    word = tokens[place].group()
    found: tuple[Meaning, ...] = ()
    best = 1
    for form in sorted(_forms(word)):
        for rest in index.starts.get(form, ()):
            following = tokens[place + 1 : place + 1 + len(rest)]
            if len(rest) + 1 < best or len(following) < len(rest):
                continue
            if all(_forms(one.group()) & want for one, want in zip(following, rest, strict=True)):
                more = index.meanings[form, rest]
                found = more if len(rest) + 1 > best else (*found, *more)
                best = len(rest) + 1
    return tuple(dict.fromkeys(found)), best


def _likely(meaning: Meaning) -> tuple[int, str, str]:
    order = ("value", "table", "field", "noun")
    return order.index(meaning.kind) if meaning.kind in order else len(order), *astuple(meaning)[1:]


@lru_cache(maxsize=65536)
def _forms(word: str) -> Forms:
    """Return the forms under which a word is known: as it is, and as its inflections share."""
    bare = POSSESSIVE.sub("", word)
    if not CYRILLIC.search(bare) or len(bare) < LEAST_FOR_TYPO:  # "яка" is no form of "як"
        return frozenset({bare.casefold()})
    # The lemma of an adjective may be taken for that of a noun: "толстая" for "толстой".
    begins = _ENDING.sub("~", bare.casefold())
    found = {term for language in languages_of(bare) for term in terms(bare, language)}
    return frozenset({*found, bare.casefold(), begins if len(begins) > LEAST_FOR_TYPO else bare})


def _has_cyrillic_word(text: str) -> bool:
    """Tell whether a word of a phrase is all Cyrillic, as are then all its forms."""
    return CYRILLIC.search(text) is not None and any(
        _CYRILLIC_WORD.fullmatch(match.group()) for match in TOKEN.finditer(text)
    )


def one_slip(word: str, other: str) -> bool:
    """Tell whether words differ by one letter less, more or other, or two in the other order."""
    start = len(commonprefix([word, other]))
    a, b = word[start:], other[start:]
    end = len(commonprefix([a[::-1], b[::-1]]))
    a, b = a[: len(a) - end], b[: len(b) - end]
    return len(a) <= 1 >= len(b) or (len(a) == 2 and a == b[::-1])


def is_common(word: str) -> bool:
    """Tell whether a word is a function word of a language of its script."""
    low = word.casefold()
    return any(low in stopwords(language) for language in languages_of(low))


@cache
def general_phrases() -> Phrases:
    """Return the phrases of every collection."""
    loaded = tables()
    listed = [(str(t), Meaning(kind)) for kind, texts in loaded["marks"].items() for t in texts]
    for name, order in loaded["orders"].items():
        for way in ("most", "least", "gt", "lt"):
            listed += [(str(t), Meaning(f"order {way}", name)) for t in order.get(way, ())]
    listed += [
        (str(t), Meaning("number", str(n))) for n, ts in loaded["numbers"].items() for t in ts
    ]
    for kind, group in loaded["tables"].items():
        listed += [(str(text), Meaning("noun", kind)) for text in group]
    return Phrases([*listed, *plurals(listed)])


def plurals(listed: Iterable[tuple[str, Meaning]]) -> Iterator[tuple[str, Meaning]]:
    """Yield the English plurals of names and values."""
    for text, meaning in listed:
        if meaning.kind in ("noun", "field", "value") and text.isascii() and len(text) > 2:
            yield (f"{text[:-1]}ies" if text.endswith("y") else f"{text}s"), meaning
