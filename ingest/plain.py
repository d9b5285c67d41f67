"""Take hyperlinks and marks of formatting out of prose: a catalogue is read, not clicked on."""

from __future__ import annotations

import re

_HAN = "\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef"
_NAMED_LINK = re.compile(r"!?\[([^\[\]\n]{0,300})\]\((?:[^()\s]|\([^()\s]*\)){1,2000}\)")
_ADDRESS = re.compile(
    rf"(?P<gap>[ \t]*)(?<![a-z0-9])(?:(?:https?|ftp)://|www\.)[^\s<>\"'«»“”()\[\]{{}}{_HAN}]+", re.I
)
_END = re.compile(r"[.,;:!?…]+$")
_EMPHASIS = re.compile(r"(?<![\w*])(\*{1,3}|_{1,3})(?=[^\s*_])([^*_\n]{1,500})(?<=\S)\1(?![\w*])")
_BB_CODE = re.compile(
    r"\[/?(?:b|i|u|s|url|img|quote|size|color|center|list)(?:=[^\[\]\n]{0,300})?\]", re.I
)
_HEADING = re.compile(r"^#{1,6}[ \t]+", re.M)
_EMPTY = re.compile(r"[ \t]*(?:\([ \t]*\)|\[[ \t]*\]|<[ \t]*>)")


def plain_prose(text: str) -> str:
    """Return a text without hyperlinks and marks of formatting; the words of a link stay."""
    if "[" in text:
        text = _BB_CODE.sub("", _NAMED_LINK.sub(r"\1", text))
    if "://" in text or "www." in text.lower():
        text = _EMPTY.sub("", _ADDRESS.sub(_after, text))
    if "*" in text or "_" in text:
        text = _EMPHASIS.sub(r"\2", _EMPHASIS.sub(r"\2", text))
    return _HEADING.sub("", text) if "#" in text else text


def _after(match: re.Match[str]) -> str:
    """Keep the punctuation after an address, or the space before it."""
    ending = _END.search(match.group())
    return ending.group() if ending else str(match["gap"])
