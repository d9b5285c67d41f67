"""Names across scripts: "Достоевского" and "Dostoyevsky" have the same consonants."""

from __future__ import annotations

import re
from functools import lru_cache

from core.language.analysis import terms

LEAST = 3  # letters of a skeleton that tell names apart
_CYRILLIC = re.compile(r"[\u0400-\u04ff]")
_WORD = re.compile(r"[^\W\d_]+")
# Letters that are written in one way or another, or not at all, are alike: vowels, h, w, y.
_SOUNDS = (
    ("дж", "j"), ("sch", "s"), ("sh", "s"), ("ch", "k"), ("ph", "v"), ("ck", "k"),
    ("ts", "s"), ("tz", "s"), ("x", "ks"), ("zh", "j"),
)  # fmt: skip
_LETTERS = {
    ord(letter): sound
    for letters, sound in (
        ("б", "b"), ("в", "v"), ("гґ", "g"), ("д", "d"), ("ж", "j"), ("зсцшщz", "s"), ("кчcq", "k"),
        ("л", "l"), ("м", "m"), ("н", "n"), ("п", "p"), ("р", "r"), ("т", "t"), ("фf", "v"),
    )
    for letter in letters
}  # fmt: skip
_SILENT = re.compile(r"[^bvgdjklmnprst]")


@lru_cache(maxsize=65536)
def skeleton(word: str) -> str:
    """Return the consonants of a name as they sound in any script; "" where they are too few."""
    low = word.casefold()
    for written, sound in _SOUNDS:
        low = low.replace(written, sound)
    heard = _SILENT.sub("", low.translate(_LETTERS))
    single = re.sub(r"(.)\1+", r"\1", heard)
    return single if len(single) >= LEAST else ""


def sounds_like(value: str, name: str) -> bool:
    """Tell whether a value has a word that sounds like each word of a name."""
    if not _CYRILLIC.search(value + name):
        return False
    held = {skeleton(word) for word in _WORD.findall(value)} - {""}
    heard = [
        {skeleton(form) for form in (word, *_lemmas(word))} - {""} for word in _WORD.findall(name)
    ]
    long = [one for one in heard if one]
    return bool(long) and all(one & held for one in long)


def _lemmas(word: str) -> list[str]:
    languages = ("ru", "uk") if _CYRILLIC.search(word) else ()
    return [term for one in languages for term in terms(word, one)]
