"""Whether the text layer of a PDF says what its pages show, and which pages have none."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from core.errors import DocumentError

_WORD = re.compile(r"[^\W\d_]{3,}")
_MIN_WORDS = 10
_MAX_MIXED = 0.4
# They stand beside one another in a word, or are signs that have the shape of letters.
_ONE_SCRIPT = frozenset(
    "CJK HIRAGANA KATAKANA KATAKANA-HIRAGANA HANGUL FULLWIDTH HALFWIDTH IDEOGRAPHIC "
    "BOPOMOFO".split()
)
_SIGNS = frozenset(
    "MODIFIER COMBINING FEMININE MASCULINE MICRO DOUBLE-STRUCK MATHEMATICAL SCRIPT BLACK-LETTER "
    "GREEK KELVIN OHM ANGSTROM INFORMATION SUPERSCRIPT SUBSCRIPT".split()
)


def check_readable(pages: Sequence[str]) -> None:
    """Raise DocumentError when most words mix scripts: the fonts do not name their characters."""
    words = [word for page in pages for word in _WORD.findall(page)]
    mixed = sum(len(_scripts(word)) > 1 for word in words)
    if len(words) >= _MIN_WORDS and mixed > _MAX_MIXED * len(words):
        raise DocumentError(
            "its fonts do not say which characters they show, so that its text layer is no text;"
            " OCR it first"
        )


def _scripts(word: str) -> set[str]:
    names = {unicodedata.name(letter, "NONE").split()[0] for letter in word}
    return {"CJK" if name in _ONE_SCRIPT else name for name in names - _SIGNS}


def ranges(numbers: Sequence[int]) -> str:
    """Write ascending page numbers as "3, 5-7"."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return ", ".join("-".join(str(end) for end in part) for part in parts)
