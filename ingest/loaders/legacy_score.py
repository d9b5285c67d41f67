"""How much text looks like words of some language."""

from __future__ import annotations

from ingest.loaders import legacy_letters as letters

_BAD = -5.0


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
