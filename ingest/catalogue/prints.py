"""Prints: equal for texts that say the same in other capitals, quotes, dashes or spaces."""

from __future__ import annotations

import hashlib
import re
import unicodedata

EXACT = {"code", "table"}  # where every sign can mean something
_DASHES = re.compile("[\u2010-\u2015\u2212]")
# A minus before a number, and signs that name or calculate, say something; the rest of the
# punctuation does not. A point between digits leaves a gap, so that 3.5 is not 35.
_SIGNS = frozenset("#%&@*/\\")


def print_of(kind: str, text: str) -> bytes:
    """Return the print of a chunk, 16 bytes; annotations and content are never equal."""
    group = "annotation" if kind == "annotation" else "content"
    said = " ".join(text.split()) if kind in EXACT else plain(text)
    encoded = f"{group}\n{said or text}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(encoded, digest_size=16).digest()


def plain(text: str) -> str:
    """Return a text in small letters, without punctuation that says nothing, one space between."""
    folded = _DASHES.sub("-", unicodedata.normalize("NFKC", text).casefold())
    folded = unicodedata.normalize("NFKC", folded)
    if folded.isascii() and folded.replace(" ", "").isalnum():
        return " ".join(folded.split())
    kept = [character if _says(folded, place) else " " for place, character in enumerate(folded)]
    return " ".join("".join(kept).split())


def _says(text: str, place: int) -> bool:
    character = text[place]
    if character == "-":  # of a number, not within a word or between two
        before, after = text[place - 1 : place] if place else "", text[place + 1 : place + 2]
        return after.isdigit() and (not before or before.isspace() or before in "([=<>")
    return not unicodedata.category(character).startswith(("P", "Z", "C")) or character in _SIGNS
