"""Arrange a collection after its documents have changed: number repeats, link texts to books.

Both are worked out from the truth alone, so that they do not depend on the order of files or on
how often something was ingested; what has not changed since is not looked at again.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any

from core.auth import AuthContext
from core.settings import Settings
from stores.ports import Intake
from stores.sqlite.catalogue import Collection
from stores.sqlite.quality import FILE, ID, ISBN, TITLE, Key
from stores.store import Store

EXACT = {"code", "table"}  # where every sign can mean something
_DASHES = re.compile("[\u2010-\u2015\u2212]")
# A minus before a number, and signs that name or calculate, say something; the rest of the
# punctuation does not. A point between digits leaves a gap, so that 3.5 is not 35.
_SIGNS = frozenset("#%&@*/\\")


def print_of(kind: str, text: str) -> bytes:
    """Return the print of a chunk, 16 bytes; annotations and content are never equal."""
    group = "annotation" if kind == "annotation" else "content"
    compared = " ".join(text.split()) if kind in EXACT else plain(text)
    encoded = f"{group}\n{compared or text}".encode("utf-8", "surrogatepass")
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


_ENDING = re.compile(r"\.[^\W_]{1,8}$")
_NUMBER = re.compile(r"[\dXx](?:[ \-\u2010-\u2013]?[\dXx]){8,16}")
_MAX_NAME = 500  # characters of a file's name; chosen, not measured


def text_keys(document_id: str, title: str, metadata: dict[str, Any]) -> Iterator[Key]:
    """Yield the keys of a full text."""
    name = _file_name(document_id)
    if name:
        parts = name.split("/")
        for start in range(len(parts)):
            yield FILE, "/".join(parts[start:])
        stem = PurePosixPath(name).stem
        yield ID, stem
        for isbn in isbns([stem]):
            yield ISBN, isbn
    for isbn in isbns(_values(metadata, "isbn")):
        yield ISBN, isbn
    yield from _title_keys(title, metadata)


def book_keys(
    document_id: str, title: str, metadata: dict[str, Any], fields: Iterable[tuple[str, str]]
) -> Iterator[Key]:
    """Yield the keys of a record; `fields` are the names and values of all its fields."""
    if "#" not in document_id:  # the number of a row says nothing
        yield ID, _folded(document_id)
    for name, value in fields:
        if file := _file_name(value):
            yield FILE, file
        if "isbn" in name.casefold():
            for isbn in isbns([value]):
                yield ISBN, isbn
    yield from _title_keys(title, metadata)


def isbns(values: Iterable[str]) -> Iterator[str]:
    """Yield the valid ISBN in texts, each as its 13 digits."""
    for value in values:
        for match in _NUMBER.finditer(value):
            digits = re.sub(r"[^\dXx]", "", match.group()).upper()
            if isbn := _isbn13(digits):
                yield isbn


def _isbn13(digits: str) -> str:
    if len(digits) == 13 and digits.isdigit() and digits[:3] in ("978", "979"):
        return digits if _check(digits[:12]) == digits[12] else ""
    if len(digits) != 10 or not digits[:9].isdigit():
        return ""
    total = sum((10 - place) * int(digit) for place, digit in enumerate(digits[:9]))
    last = 10 if digits[9] == "X" else int(digits[9])
    if (total + last) % 11:
        return ""
    return f"978{digits[:9]}{_check(f'978{digits[:9]}')}"


def _check(digits: str) -> str:
    total = sum((3 if place % 2 else 1) * int(digit) for place, digit in enumerate(digits))
    return str(-total % 10)


def _title_keys(title: str, metadata: dict[str, Any]) -> Iterator[Key]:
    named = plain(title)
    for author in _values(metadata, "authors"):
        # "Abbott, Edwin A., 1838-1926" is "Edwin A. Abbott".
        words = [word for word in plain(author).split() if not any(map(str.isdigit, word))]
        if named and words:
            yield TITLE, f"{named}\n{' '.join(sorted(words))}"


def _values(metadata: dict[str, Any], name: str) -> list[str]:
    value = metadata.get(name)
    return [str(item) for item in value] if isinstance(value, list) else [str(value or "")]


def _file_name(value: str) -> str:
    """Return a value as the name of a file, folded; "" for what cannot be one."""
    if len(value) > _MAX_NAME or "://" in value or "\n" in value or not _ENDING.search(value):
        return ""
    return _folded(value.replace("\\", "/")).removeprefix("./").lstrip("/")


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text.strip()).casefold()


RULES = 1  # raise it when prints or keys change


def arrange(
    store: Store, collection: Collection, settings: Settings, auth: AuthContext | None = None
) -> list[str]:
    """Bring repeats and links up to date; return notes on what is left out of searches.

    With `auth` they count only what this caller may see.
    """
    mark = f"{RULES}:{settings.library.drop_repeats:d}{settings.library.book_links:d}"
    intake, catalogue = store.intake, store.catalogue
    version = catalogue.index_version()
    if intake.arrangement(collection) != f"{version}:{mark}":
        changed = (
            intake.number_duplicates(collection, print_of)
            if settings.library.drop_repeats
            else intake.clear_duplicates(collection)
        )
        changed += (
            intake.link_books(collection, text_keys, book_keys)
            if settings.library.book_links
            else intake.clear_books(collection)
        )
        intake.note_arrangement(collection, mark, changed=bool(changed))
    return _notes(intake, collection, auth)


def _notes(intake: Intake, collection: Collection, auth: AuthContext | None) -> list[str]:
    annotations, passages = intake.count_duplicates(collection, auth)
    notes = []
    if annotations:
        notes.append(
            f"{annotations} annotations are those of other records and found there only;"
            " `carrel quality` lists them"
        )
    if passages:
        notes.append(f"{passages} passages repeat others and are found only once")
    return notes
