"""The configuration in a LangServe path: JSON, compressed by lz-string for URLs."""

from __future__ import annotations

import json
from typing import Any

from core.errors import CallerError

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-$"
BITS = 6  # of one character of the alphabet
NARROW, WIDE, END = 0, 1, 2  # codes: a new character of 8 bits, one of 16, the end
FIRST_CODE = 3


def config_of(config_hash: str, limit: int) -> dict[str, Any]:
    """Return the configuration; raises a CallerError unless it is an object of valid JSON."""
    try:
        config = json.loads(decompressed(config_hash, limit))
    except (ValueError, RecursionError):
        config = None
    if not isinstance(config, dict):
        raise CallerError(
            "Invalid config hash", hint="it is the config as JSON, compressed by lz-string"
        )
    return config


def decompressed(text: str, limit: int) -> str:
    """Undo `LZString.compressToEncodedURIComponent`; at most `limit` characters come out.

    lz-string is LZW with codes as wide as the dictionary needs, least significant bit first.
    """
    reader = _Bits(text.replace(" ", "+"))
    words: dict[int, str] = {}
    parts: list[str] = []
    size = 0
    before = ""
    next_code, width, room = FIRST_CODE, 2, 1
    while True:
        code = reader.take(width)
        if code == END:
            return "".join(parts)
        fresh = code in (NARROW, WIDE)
        if fresh:
            words[next_code] = chr(reader.take(8 if code == NARROW else 16))
            code, next_code = next_code, next_code + 1
            room, width = _grown(room, width)
        if code in words:
            word = words[code]
        elif code == next_code and before:
            word = before + before[0]
        else:
            raise ValueError("a code that no dictionary has")
        parts.append(word)
        size += len(word)
        if size > limit:
            raise ValueError("too long")
        if before:
            words[next_code] = before + word[0]
            next_code += 1
            room, width = _grown(room, width)
        before = word


def _grown(room: int, width: int) -> tuple[int, int]:
    """Count a new word; codes get wider by a bit when the words of a width are used up."""
    return (room - 1, width) if room > 1 else (1 << width, width + 1)


class _Bits:
    """Read numbers from the bits of a text; raises ValueError at its end."""

    def __init__(self, text: str) -> None:
        self._values = [ALPHABET.find(character) for character in text]
        if -1 in self._values:
            raise ValueError("a character outside of the alphabet")
        self._at = 0

    def take(self, count: int) -> int:
        """Return the next `count` bits; the first is the least significant one."""
        number = 0
        for place in range(count):
            index, offset = divmod(self._at, BITS)
            if index >= len(self._values):
                raise ValueError("the text ends too early")
            # The 65th character of the alphabet, 64, only pads the end.
            number |= (self._values[index] >> (BITS - 1 - offset) & 1) << place
            self._at += 1
        return number
