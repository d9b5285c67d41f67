"""Signs of damage in a text: wrong encodings, broken words, noise, sentences without an end."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache

LOST = "\ufffd"
HEAD, REACH = 12, 2000  # characters by which what two passages share is known, and found
RUN = 3
# The encodings that UTF-8 is read as by mistake, and the letters that it then held.
_WRONG = {"cp1252": "LATIN", "latin-1": "LATIN", "cp1251": "CYRILLIC", "cp866": "CYRILLIC"}
_BROKEN = re.compile(r"(?P<word>[^\W\d_]{2,})[-\u2010\u00ac][ \n]+(?P<rest>[^\W\d_]{2,})")
_WORD = re.compile(r"[^\W\d_]{4,}")
_END = re.compile(r"[.!?\u2026\u3002\uff01\uff1f\uff1b;:]|\n\s*\n")


def garbled(text: str) -> str:
    """Return the first stretch that is UTF-8 read as another encoding, "" for none."""
    if text.isascii():
        return ""
    for encoding, script in _WRONG.items():
        for match in _sequences(encoding).finditer(text):
            try:
                read = match.group().encode(encoding).decode("utf-8")
            except UnicodeError:
                continue
            # Ukrainian in capitals has single pairs that could be letters of another encoding.
            enough = script == "LATIN" or len(read) >= RUN or any(map(_is_sign, read))
            if enough and all(_is_sign(one) or _is_letter(one, script) for one in read):
                return match.group()
    return ""


@cache
def _sequences(encoding: str) -> re.Pattern[str]:
    """Match what sequences of UTF-8 look like in an encoding of one byte a character."""
    lead = re.escape(bytes(range(0xC2, 0xF5)).decode(encoding, "ignore"))
    rest = re.escape(bytes(range(0x80, 0xC0)).decode(encoding, "ignore"))
    return re.compile(f"(?:[{lead}][{rest}]{{1,3}})+")


def _is_sign(character: str) -> bool:
    return "\u2010" <= character <= "\u2026"  # dashes and quotes


def _is_letter(character: str, script: str) -> bool:
    return unicodedata.name(character, "").startswith(script)


def broken_words(text: str) -> Iterator[str]:
    """Yield, in small letters, the two halves joined of what may be words broken by a hyphen.

    They are when the whole word stands in the text as well: "two- and more" has no "twoand".
    """
    for match in _BROKEN.finditer(text):
        if match.group("rest").islower():
            yield f"{match.group('word')}{match.group('rest')}".casefold()


def words_of(text: str) -> set[str]:
    """Return the words of a text in small letters."""
    return set(_WORD.findall(text.casefold()))


def other_signs(text: str) -> float:
    """Return the share of characters that are no letters, among those that are no spaces."""
    seen = "".join(text.split())
    if not seen:
        return 0.0
    letters = sum(map(str.isalpha, seen))
    if letters < len(seen) and not seen.isascii():
        letters += sum(unicodedata.category(character)[0] == "M" for character in seen)
    return 1 - letters / len(seen)


def unended(text: str, before: int) -> tuple[int, int]:
    """Return the longest run of characters without the end of a sentence, and the one left open.

    `before` is what the text before has left open; a blank line ends a sentence too.
    """
    longest, start = 0, -before
    for match in _END.finditer(text):
        longest = max(longest, match.end() - start)
        start = match.end()
    return max(longest, len(text) - start), len(text) - start


def new_part(before: str, text: str) -> str:
    """Return a chunk's text without what it repeats of the chunk before."""
    head = text[:HEAD]
    place = before.rfind(head, -REACH) if len(head) == HEAD else -1
    if place < 0 or not text.startswith(before[place:]):
        return text
    return text[len(before) - place :]
