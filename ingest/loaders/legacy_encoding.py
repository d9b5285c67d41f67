"""Which legacy encoding bytes are in: the one whose characters make the likeliest words."""

from __future__ import annotations

import codecs
import re
import unicodedata

from ingest.loaders import legacy_letters as letters

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
_BAD = -5.0
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


def score(text: str, latin: frozenset[str] = letters.WESTERN) -> float:
    """Rate how much text looks like words: the mean over its characters above ASCII, up to 1.

    `latin` are the accented letters that are usual in the encoding it was read in.
    """
    total, count = 0.0, 0
    padded = f" {text} "
    for at, character in enumerate(text, start=1):
        if character > "\x7f":
            count += 1
            total += _weight(padded[at - 1], character, padded[at + 1], latin)
        elif character < " " and character not in "\t\n\r\f\x1a\x1b":
            count += 1
            total += _BAD
    return total / count if count else 0.0


def _weight(before: str, here: str, after: str, latin: frozenset[str]) -> float:
    script = _script(here)
    if script == "bad":
        return _BAD
    if script in ("hanzi", "kana", "hangul", "wide"):
        return _east_asian(before, here, script)
    if script == "mark":
        return _mark(before, here, after)
    return _alphabetic(before, here, after, script, latin)


def _mark(before: str, here: str, after: str) -> float:
    if here not in letters.MARKS:
        return -1.5 if before.isalpha() and after.isalpha() else -0.8
    if before.isalpha() and after.isalpha() and here not in "’·–":
        return -1.5
    return 0.5


def _script(character: str) -> str:
    code = ord(character)
    if character == "\ufffd" or code < 0xA0 or 0xE000 <= code < 0xF900 or code > 0xFFFF:
        return "bad"
    if code < 0x250:
        return "latin" if character.isalpha() else "mark"
    for script, start, end in (
        ("greek", 0x370, 0x400), ("cyrillic", 0x400, 0x530), ("hebrew", 0x591, 0x600),
        ("arabic", 0x600, 0x700), ("thai", 0xE00, 0xE80), ("kana", 0x3041, 0x3100),
        ("hanzi", 0x3400, 0xA000), ("hangul", 0xAC00, 0xD7B0), ("hanzi", 0xF900, 0xFB00),
        ("wide", 0x3000, 0x3041), ("wide", 0xFF01, 0xFF61),
    ):  # fmt: skip
        if start <= code < end:
            return script
    return "mark"


def _east_asian(before: str, here: str, script: str) -> float:
    if script == "wide":
        return 0.8 if here in letters.CJK_MARKS else 0.0
    if script == "kana":
        return 0.9 if here < "\u30a0" else 0.6
    if script == "hangul":
        return (1.0 if here in letters.HANGUL else 0.2) - 0.5 * (_script(before) == "hanzi")
    if here in letters.HANZI or here in letters.TRADITIONAL:
        return 1.0
    return -0.5 if _script(before) == "hangul" else 0.15 if _is_usual(here) else -0.7


def _is_usual(character: str) -> bool:
    """Tell whether a character is of the first level of GB 2312 or Big5."""
    try:
        if 0xB0 <= character.encode("gb2312")[0] <= 0xD7:
            return True
    except UnicodeEncodeError:
        pass
    try:
        return 0xA4 <= character.encode("big5")[0] <= 0xC6
    except UnicodeEncodeError:
        return False


def _alphabetic(before: str, here: str, after: str, script: str, latin: frozenset[str]) -> float:
    near = [_script(c) if c > "\x7f" else "latin" for c in (before, after) if c.isalpha()]
    if any(other != script for other in near):
        return -1.2  # no word is written in two scripts
    if (before.islower() and here.isupper()) or (here.islower() and after.isupper()):
        return -1.5
    if (
        here in letters.FINAL
        and after.isalpha()
        or here in letters.NOT_FINAL
        and not after.isalpha()
    ):
        return -1.0
    if script == "cyrillic":
        return _cyrillic(before, here)
    low = here.lower()
    if script == "latin":
        alone = sum(c > "\x7f" for c in (before, after) if c.isalpha()) * 0.2
        return (0.8 if low in latin else 0.4 if low in letters.SELDOM else -0.2) - alone
    common = {"greek": letters.GREEK, "hebrew": letters.HEBREW, "arabic": letters.ARABIC}
    if low in letters.RARE:
        return -0.5
    if script in ("thai", "hebrew") and low not in common.get(script, ()):
        return 0.5
    return 0.9 if low in common[script] else 0.0


def _cyrillic(before: str, here: str) -> float:
    lower = 0.1 if here.islower() else 0.0
    if not before.isalpha():
        return 0.5 + lower
    pair = (before + here).lower()
    return (0.9 if pair in letters.CYRILLIC_PAIRS else 0.0) + lower
