"""Which legacy encoding bytes are in: the one whose characters make the likeliest words."""

from __future__ import annotations

import codecs
import re
import unicodedata

from ingest.loaders import legacy_letters as letters
from ingest.loaders.legacy_score import score

# How much better text must read for a rarer encoding to be chosen before a commoner one.
CANDIDATES = {
    "cp1252": 0.0, "cp1251": 0.0, "gb18030": 0.0, "koi8_u": 0.0, "cp866": 0.0, "big5": 0.02,
    "cp932": 0.02, "cp949": 0.02, "euc_jp": 0.03, "cp1125": 0.01, "cp855": 0.03, "iso8859_5": 0.03,
    "cp1250": 0.03, "iso8859_2": 0.04, "cp1254": 0.03, "cp1257": 0.04, "iso8859_15": 0.07,
    "cp850": 0.1, "cp437": 0.12, "mac_cyrillic": 0.05, "mac_roman": 0.12, "cp1253": 0.15,
    "iso8859_7": 0.16, "iso8859_6": 0.17, "cp1255": 0.15, "cp1256": 0.15, "cp874": 0.2,
}  # fmt: skip
_SAMPLE = 6_000
_FROM_HIGH = re.compile(rb"[\x80-\xff][^\r\n]{0,6000}")
_LINE_END = re.compile(rb"[\r\n]")
_BEFORE = 200
_LEAST = -0.5
_CHINESE = ("gb18030", "big5", "cp949")
_KANA_COST = 0.5
_BELIEVED = 0.15
_PARTS = {
    "iso8859_1": "cp1252", "koi8_r": "koi8_u", "gb2312": "gb18030", "gbk": "gb18030",
    "shift_jis": "cp932", "euc_kr": "cp949", "tis_620": "cp874", "iso8859_9": "cp1254",
    "iso8859_13": "cp1257", "big5hkscs": "big5", "cp950": "big5",
}  # fmt: skip
_ESCAPED = ("iso2022_jp_2", "iso2022_kr")
# Four bytes first: half of such text is NUL in two.
_WIDE = {"utf-32-le": 4, "utf-32-be": 4, "utf-16-le": 2, "utf-16-be": 2}
_ODD = ("Cc", "Cn", "Co", "Cs")
_MAX_ODD = 0.02
_LEAST_WIDE = 0.1
_SURE = 0.6


def guess(raw: bytes, declared: str = "") -> str | None:
    """Return the name of the likeliest encoding of bytes that are no UTF, or None if none fits.

    A declared one is chosen when it reads nearly as well as the best.
    """
    sample = b"\n".join(_sampled(raw))
    scored = {
        name: score(sample.decode(name, "replace"), letters.LATIN.get(name, letters.WESTERN))
        - (_KANA_COST * _kana(sample.decode(name, "replace")) if name in _CHINESE else 0.0)
        for name in CANDIDATES
    }
    said = _usual(declared)
    name = max(
        scored, key=lambda name: scored[name] - CANDIDATES[name] + _BELIEVED * (name == said)
    )
    if scored[name] < _SURE and (utf := wide(raw)):
        text = raw[: _SAMPLE // 4 * 4].decode(utf, "ignore")
        if score(text) >= scored[name]:
            return utf
    return name if scored[name] > _LEAST else None


def _usual(declared: str) -> str:
    """Return the candidate that a declared encoding is a part of, or ""."""
    try:
        name = codecs.lookup(declared).name.replace("-", "_")
    except LookupError:
        return ""
    name = _PARTS.get(name, name)
    return name if name in CANDIDATES else ""


def _kana(text: str) -> float:
    """Return the share of Japanese letters, which the Chinese encodings have too."""
    foreign = [character for character in text if character > "\x7f"]
    return sum("\u3041" <= c < "\u3100" for c in foreign) / max(len(foreign), 1)


def escaped(raw: bytes) -> str | None:
    """Return which encoding of seven bits with escapes bytes are in, or None."""
    for name in _ESCAPED:
        try:
            raw[: raw.rfind(b"\n") + 1 or None].decode(name)
        except UnicodeDecodeError:
            continue
        return name
    return None


def wide(raw: bytes) -> str | None:
    """Return which UTF-16 or UTF-32 without a mark bytes are in, or None."""
    for name, unit in _WIDE.items():
        sample = raw[: _SAMPLE // unit * unit]
        try:
            text = sample[: len(sample) // unit * unit].decode(name)
        except UnicodeDecodeError:
            continue
        odd = sum(unicodedata.category(c) in _ODD and c not in "\t\n\r\f" for c in text)
        if (
            text
            and odd <= _MAX_ODD * len(text)
            and (unit == 4 or text.isascii() or score(text) > _LEAST_WIDE)
        ):
            return name
    return None


def _sampled(raw: bytes) -> list[bytes]:
    lines: list[bytes] = []
    size = 0
    for match in _FROM_HIGH.finditer(raw):
        start = match.start()
        before = _LINE_END.split(raw[max(0, start - _BEFORE) : start])[-1]
        lines.append((before + match.group())[:_SAMPLE])
        size += len(lines[-1])
        if size > _SAMPLE:
            break
    return lines
