"""The one analysis of text into index terms, used at ingest and at query time alike."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from core.language.detect import detect_language
from core.language.pieces import Piece, chinese_pieces, compound_pieces, piece_of, word_pieces
from core.language.scan import CYRILLIC, TOKEN, fold
from languages.language import known_languages

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


def analyze(text: str, language: str | None = None) -> list[Token]:
    """Cut a text into terms, in order of the text.

    The script of a token decides how it is reduced; `language` chooses the stemmer among the
    languages of that script. Cyrillic in a text of no given language is detected as a whole.
    """
    return [
        Token(piece.term, start + piece.start, start + piece.end)
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

    A short query's own language is easily misjudged, so a word matches under any of them. A word
    is a function word when it is one in the query's own language.
    """
    detected = detect_language(text)
    places: dict[tuple[int, int], set[str]] = {}
    content: set[tuple[int, int]] = set()
    for language in dict.fromkeys([detected, *sorted(languages)]):
        for start, piece in _pieces(text, language):
            place = (start + piece.start, start + piece.end)
            places.setdefault(place, set()).add(piece.term)
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
            pieces = chinese_pieces(raw)
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
