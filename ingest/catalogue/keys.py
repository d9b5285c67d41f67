"""Keys by which a full text and the record of its book are known to belong together.

The rules, the surest first: the record has a field that names the file; the file is named by the
record's id; both have the same ISBN; title and one author are the same. None of them guesses: keys
are equal or they are not.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any

from ingest.catalogue.prints import plain
from stores.books import FILE, ID, ISBN, TITLE, Key

_ENDING = re.compile(r"\.[^\W_]{1,8}$")
_NUMBER = re.compile(r"[\dXx](?:[ \-\u2010-\u2013]?[\dXx]){8,16}")
_MAX_NAME = 500


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
