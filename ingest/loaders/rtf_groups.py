r"""What the RTF converter would lose or take for text: notes, text boxes, list numbers, binary."""

from __future__ import annotations

import re

_TOKEN = re.compile(rb"\\bin(\d*) ?|\\([a-zA-Z]{1,32})(-?\d*) ?|\\[^a-zA-Z]|[{}]|[^\\{}]+", re.S)
_WANTED = re.compile(rb"\\(?:bin\d|footnote\b|pntext\b|shptxt\b)")
_IGNORABLE = b"\\*"
# Groups of text whose name makes a converter drop them, and what stands before that text instead.
_OPENED = {
    b"footnote": b"\\'01",
    b"pntext": b"",
    b"shp": b"",
    b"shpinst": b"",
    b"shptxt": b"\\par ",
}
_NOTE = re.compile(r"\s*\x01([^\x01\x02]*)\x02")


def opened(raw: bytes) -> bytes:
    """Return RTF whose notes and text boxes are plain groups, without binary data."""
    if not _WANTED.search(raw):
        return raw
    kept: list[bytes] = []
    notes: list[int] = []
    depth = at = 0
    while match := _TOKEN.match(raw, at):
        at = match.end()
        token, word = match.group(), match.group(2)
        if token.startswith(b"\\bin") and match.group(1):
            at += int(match.group(1)[:10])
            continue
        if token == b"{":
            depth += 1
        elif token == b"}":
            if notes and notes[-1] == depth:
                notes.pop()
                kept.append(b"\\'02")
            depth -= 1
        elif word in _OPENED and not match.group(3):
            if kept and kept[-1] == _IGNORABLE:
                kept.pop()
            if word == b"footnote":
                notes.append(depth)
            token = _OPENED[word]
        kept.append(token)
    return b"".join(kept) + raw[at:]


def with_notes(text: str) -> str:
    """Put the notes of converted text in brackets, each in one line behind what it is about."""
    text = _NOTE.sub(lambda match: f" [{' '.join(match[1].split())}]", text)
    return text.replace("\x01", " ").replace("\x02", " ")
