"""Text to index terms, in any script, and whether a text has a word in any form."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from core.language import chinese, words
from core.language.cues import stopwords
from core.language.detect import detect_language
from core.language.identifiers import is_camel, split_identifier
from core.language.scan import CYRILLIC, TOKEN, fold, script_of
from core.language.words import languages_of
from languages.language import FALLBACK, known_languages

MAX_TERM = 64
# "l'homme", "d'Artagnan", "O'Reilly": a head this short is a word of its own.
_ELISION = 2
_CLITICS = frozenset({"s", "t", "m", "d", "re", "ve", "ll"})


class Piece(NamedTuple):
    """One term with its place in the raw token, and whether it is a function word."""

    term: str
    start: int
    end: int
    is_function: bool


def piece_of(term: str, start: int, end: int, is_function: bool = False) -> tuple[Piece, ...]:
    """Make one piece of a term that fits the index, or none."""
    term = term[:MAX_TERM]
    return (Piece(term, start, end, is_function),) if term else ()


@lru_cache(maxsize=65536)
def word_pieces(raw: str, language: str | None) -> tuple[Piece, ...]:
    """Reduce one word; CamelCase and snake_case also give their parts."""
    folded = fold(raw)
    if script_of(folded) == "cyrillic":
        dictionary = words.cyrillic_dictionary(folded, language)
        form = words.lemma(folded, dictionary)
        stops = stopwords(dictionary)
        return piece_of(form, 0, len(raw), folded in stops or form in stops)
    if script_of(folded) == "other" or folded.isdigit():
        return piece_of(folded, 0, len(raw))
    head, apostrophe, tail = folded.partition("'")
    split_off = apostrophe and len(head) <= _ELISION and tail not in _CLITICS
    if split_off and folded not in stopwords(FALLBACK) and len(folded) == len(raw):
        cut = len(head) + 1
        tail_pieces = (p._replace(start=cut + p.start, end=cut + p.end)
                       for p in word_pieces(raw[cut:], language))  # fmt: skip
        return (*word_pieces(raw[: cut - 1], language), *tail_pieces)
    if raw.isascii() and ("_" in raw or is_camel(raw)):
        return _identifier(raw, language)
    return _latin(raw, folded, 0, language)


def _latin(raw: str, folded: str, start: int, language: str | None) -> tuple[Piece, ...]:
    """Stem one Latin word; capitals throughout ("US", "IT") are never a function word."""
    stemmer = words.latin_stemmer(language)
    is_name = len(raw) > 1 and raw.isupper()
    if len(raw) > _ELISION and raw[-1] == "s" and raw[:-1].isupper():
        folded = folded[:-1]  # GPUs, APIs
    known = known_languages().get(language or "")
    own = known.code if known is not None and known.script == "latin" else stemmer
    is_function = not is_name and folded in stopwords(own)
    return piece_of(words.stem(folded, stemmer), start, start + len(raw), is_function)


def _identifier(raw: str, language: str | None) -> tuple[Piece, ...]:
    """Keep an identifier whole, unstemmed, and add its parts.

    A name without separators also gets its stem: "numpy" in a question is stemmed as a word and
    has to meet "NumPy".
    """
    folded = raw.lower()
    pieces = list(piece_of(folded, 0, len(raw)))
    stem = words.stem(folded, words.latin_stemmer(language)) if folded.isalnum() else folded
    if stem != folded:
        pieces.extend(piece_of(stem, 0, len(raw)))
    for part, start, end in split_identifier(raw):
        if end - start < len(raw):
            pieces.extend(_latin(part, part.lower(), start, language))
    return tuple(pieces)


@lru_cache(maxsize=65536)
def compound_pieces(raw: str, kind: str, language: str | None) -> tuple[Piece, ...]:
    """Reduce what the scanner recognised by its punctuation."""
    if kind == "grouped":
        return piece_of("".join(c for c in raw if c.isdigit()), 0, len(raw))
    if kind == "number":
        return _number(raw)
    if kind == "plus":
        return piece_of(raw.lower(), 0, len(raw))
    if kind == "unspaced":
        folded = fold(raw)
        if len(folded) != len(raw):
            raw = folded
        last = max(1, len(folded) - 1)
        return tuple(p for i in range(last) for p in piece_of(fold(raw[i : i + 2]), i, i + 2))
    return _identifier(raw, language)


def _number(raw: str) -> tuple[Piece, ...]:
    """Keep a version or decimal whole; "v2.1" is also 2.1, and a year inside also a year."""
    folded = raw.lower()
    pieces = list(piece_of(folded, 0, len(raw)))
    if folded[0] == "v":
        pieces.extend(piece_of(folded[1:], 1, len(raw)))
    for part, start, end in split_identifier(raw):
        if len(part) == 4 and part.isdigit():
            pieces.extend(piece_of(part, start, end))
    return tuple(pieces)


# Longer than any word or name: encoded data, kept as one cut term and out of the caches.
_BLOB = 200


class Token(NamedTuple):
    """One term and the characters of the original text that it stands for.

    The words inside an identifier follow it, with places of their own; a word and its variant
    spelling share one place.
    """

    term: str
    start: int
    end: int
    is_function: bool = False


def analyze(text: str, language: str | None = None) -> list[Token]:
    """Cut a text into terms, in order of the text.

    The script of a token decides how it is reduced; `language` chooses the stemmer among the
    languages of that script. Cyrillic in a text of no given language is detected as a whole.
    """
    return [
        Token(piece.term, start + piece.start, start + piece.end, piece.is_function)
        for start, piece in _pieces(text, language)
    ]


def terms(text: str, language: str | None = None) -> list[str]:
    """Cut a text into terms, without their places."""
    return [piece.term for _, piece in _pieces(text, language)]


def content_terms(text: str, language: str | None = None) -> list[str]:
    """Cut a text into terms without function words, or into all terms when nothing is left."""
    pieces = [piece for _, piece in _pieces(text, language)]
    return [piece.term for piece in pieces if not piece.is_function] or [p.term for p in pieces]


def query_terms(text: str, languages: Collection[str]) -> list[frozenset[str]]:
    """Give each content word of a query the terms it has under each language of the collection.

    A short query's own language is easily misjudged, so a word matches under any of them, and
    under every reading where none is known for the likeliest. A word is a function word when it is
    one in the query's own language.
    """
    detected = detect_language(text)
    places: dict[tuple[int, int], set[str]] = {}
    content: set[tuple[int, int]] = set()
    for language in dict.fromkeys([detected, *sorted(languages)]):
        for start, piece in _pieces(text, language):
            place = (start + piece.start, start + piece.end)
            others = words.other_lemmas(fold(text[slice(*place)]), language)
            places.setdefault(place, set()).update({piece.term}, others)
            if language == detected and not piece.is_function:
                content.add(place)
    kept = [place for place in places if place in content] or list(places)
    return list(dict.fromkeys(frozenset(places[place]) for place in kept))


def _pieces(text: str, language: str | None) -> Iterator[tuple[int, Piece]]:
    """Scan a text; yields each piece with the start of its raw token."""
    cyrillic = language
    if language is None and CYRILLIC.search(text):
        detected = known_languages().get(detect_language(text))
        cyrillic = detected.code if detected is not None and detected.dictionary else None
    # A sentence in capitals; "US GDP" is two names.
    shouting = text.isascii() and text.isupper() and text.count(" ") > 2
    for match in TOKEN.finditer(text):
        kind = match.lastgroup or "word"
        raw = match.group()
        pieces: Iterable[Piece]
        if kind == "han":
            stops = stopwords(chinese.CODE)
            pieces = (
                Piece(fold(term)[:MAX_TERM], begin, end, term in stops)
                for term, begin, end in chinese.segment(raw)
            )
        elif len(raw) > _BLOB:
            pieces = piece_of(fold(raw), 0, len(raw))
        elif kind == "word":
            shown = raw.lower() if shouting else raw
            pieces = word_pieces(shown, language if raw.isascii() else cyrillic)
        else:
            pieces = compound_pieces(raw, kind, language)
        start = match.start()
        for piece in pieces:
            yield start, piece


WORD = re.compile(r"[\u3400-\u9fff]+|[^\W_\u3400-\u9fff]+")
HAN = re.compile(r"[\u3400-\u9fff]")


def has_words(value: str, text: str) -> bool:
    """Tell whether a value has all words of a text, in any form of theirs."""
    wanted = WORD.findall(text.casefold())
    folded = value.casefold()
    forms: set[str] = set()
    for word in WORD.findall(folded):
        forms |= forms_of(word)
    return bool(wanted) and all(
        word in folded if HAN.search(word) else bool(forms_of(word) & forms) for word in wanted
    )


@lru_cache(maxsize=65536)
def forms_of(word: str) -> frozenset[str]:
    """Return a word with what its inflections share in each language of its script."""
    found = (term for language in languages_of(word) for term in terms(word, language)[:1])
    return frozenset([word, *found])
