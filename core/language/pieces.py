"""What one raw token becomes: an index term, or an identifier and its parts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from core.language import chinese, words
from core.language.identifiers import is_camel, split_identifier
from core.language.scan import fold, script_of
from core.language.stopwords import stopwords
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


def chinese_pieces(run: str) -> Iterator[Piece]:
    """Segment a run of Han characters."""
    stops = stopwords(chinese.CODE)
    for term, start, end in chinese.segment(run):
        yield Piece(fold(term)[:MAX_TERM], start, end, term in stops)
