"""Cut a text into raw tokens by script, count a model's tokens, replace whole words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003347f"
# Written without spaces and without a segmenter here: kana, Thai, Lao, Burmese, Khmer.
UNSPACED = (
    "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecd\u1000-\u103f\u1780-\u17d3"
)
APOSTROPHES = "'\u2019\u2018\u02bc\uff07"
# Soft hyphen, zero-width characters and direction marks: invisible, so not part of any term.
IGNORABLE = "\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff"


def _marks() -> str:
    """List the combining marks: no word characters to `re`, although they belong to a word."""
    blocks = (range(0x0300, 0x1E00), range(0x20D0, 0x2100), range(0xFE20, 0xFE30))
    return "".join(
        chr(code)
        for block in blocks
        for code in block
        if unicodedata.category(chr(code)) in ("Mn", "Mc")
    )


_LETTERS = rf"[^\W{HAN}{UNSPACED}]+"
_INSIDE = f"[{_marks()}{IGNORABLE}]++"
_WORD = rf"{_LETTERS}(?:{_INSIDE}(?:{_LETTERS})?)*"

# The first alternative that matches wins; lastgroup names it. Repeats are bounded or
# unambiguous, so that no input makes a scan quadratic.
TOKEN = re.compile(
    r"(?P<mail>[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})+)"
    r"|(?P<flag>(?<![\w-])--[A-Za-z][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)*)"
    r"|(?P<grouped>(?<![\d.,])\d{1,3}(?:[,\u00a0\u202f\u2009]\d{3})+(?![\d,]))"
    r"|(?P<number>[vV]?\d+(?:\.\d+)+(?:[-.+]?(?:rc|alpha|beta|dev|post|a|b)\.?\d+)?"
    r"(?![A-Za-z0-9_]*\.[A-Za-z]))"
    r"|(?P<dotted>[A-Za-z0-9_]++(?:\.[A-Za-z0-9_]++(?![\u00c0-\u024f]))+)"
    r"|(?P<plus>[A-Za-z][A-Za-z0-9_]*(?:\+\+|#)(?![\w+#]))"
    r"|(?P<slash>[A-Z][A-Z0-9]*/[A-Z0-9]+(?:\.\d+)?(?!\w))"
    rf"|(?P<word>{_WORD}(?:[{APOSTROPHES}]{_WORD})*)"
    rf"|(?P<han>[{HAN}]+)"
    rf"|(?P<unspaced>[{UNSPACED}]+)"
)
_INVISIBLE = re.compile(f"[{IGNORABLE}]")
_ANY_APOSTROPHE = re.compile(f"[{APOSTROPHES}]")
CYRILLIC = re.compile("[\u0400-\u052f]")
_LATIN = re.compile("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
SCRIPTS = {"latin": _LATIN, "cyrillic": CYRILLIC, "han": re.compile(f"[{HAN}]")}


def fold(raw: str) -> str:
    """Normalise one token for comparison: NFKC, casefold, one apostrophe, nothing invisible."""
    if raw.isascii():
        return raw.lower()
    visible = unicodedata.normalize("NFKC", _INVISIBLE.sub("", raw)).casefold()
    folded = unicodedata.normalize("NFKC", _ANY_APOSTROPHE.sub("'", visible))
    return "".join(folded.replace('"', "").split())


def script_of(folded: str) -> str:
    """Name the script that decides how a folded word is reduced: cyrillic, latin or other."""
    if folded.isascii():
        return "latin"
    if CYRILLIC.search(folded):
        return "cyrillic"
    return "latin" if _LATIN.search(folded) else "other"


WORD = re.compile(r"[^\W\d_]+")


def words_replaced(text: str, found: Mapping[str, str]) -> str:
    """Return the text with these words, as they are written, replaced by others."""
    return WORD.sub(lambda match: found.get(match.group(), match.group()), text)


BYTES_PER_TOKEN = 4


def estimate_tokens(text: str) -> int:
    """Estimate model tokens: a quarter of the UTF-8 bytes, which is close for all our scripts."""
    return max(1, len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)
