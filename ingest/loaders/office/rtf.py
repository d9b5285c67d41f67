"""RTF to paragraphs."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from striprtf.striprtf import rtf_to_text

from core.errors import DocumentError
from ingest.loaders import metadata
from ingest.loaders.limits import LoadLimits, report_damage
from ingest.loaders.text.plain_text import first_short_line, text_blocks
from ingest.loaders.visibility import WHITE, Colour, is_legible
from ingest.types import ParsedDocument

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


# Hidden text, and text of less than three points, up to its end or that of its group.
_UNSEEN = re.compile(rb"\\(?:v1?|fs[0-4])(?![a-z0-9])[^{}]*?(?=\\(?:v0|fs|plain)(?![a-z])|[{}])")

_CHANNELS = (b"red", b"green", b"blue")
_CHANNEL = re.compile(rb"\\(red|green|blue)(\d{1,3})")
_COLOURS = re.compile(rb"\{\\colortbl([^{}]*)\}")
_SHADED = re.compile(rb"\\(?:highlight|cb|chcbpat|cbpat|clcbpat|shp)(?![a-z])")


def _without_pale(raw: bytes) -> bytes:
    """Take out text in a colour that nobody can make out on white, where nothing else is behind."""
    table = _COLOURS.search(raw)
    if table is None or _SHADED.search(raw):
        return raw
    found = []
    for number, written in enumerate(table[1].split(b";")):
        parts = {name: int(value) / 255 for name, value in _CHANNEL.findall(written)}
        if parts and not is_legible(Colour(*(parts.get(one, 0) for one in _CHANNELS)), WHITE):
            found.append(b"%d" % number)
    pattern = rb"\\cf(?:%s)(?![0-9])[^{}]*?(?=\\(?:cf|plain)(?![a-z])|[{}])" % b"|".join(found)
    return re.sub(pattern, b"", raw) if found else raw


def flatten_groups(raw: bytes) -> bytes:
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


RTF_MAGIC = b"{\\rtf"
_CODE_PAGE = re.compile(rb"\\ansicpg(\d+)")
_INFO = re.compile(r"\{\\(title|author|keywords|subject)\s([^{}]*)\}")
_EMBEDDED = re.compile(rb"\{\\\*?\\?(?:bin|objdata)\b[^{}]*\}")


def load(path: Path, relative: str, limits: LoadLimits) -> Iterator[ParsedDocument]:
    """Yield the one document of an RTF file of any code page."""
    raw = path.read_bytes()
    if not raw.lstrip().startswith(RTF_MAGIC):
        raise DocumentError("no RTF: it does not begin with {\\rtf")
    text, described = text_of(raw, limits)
    titles = described.get("title"), first_short_line(text)
    yield ParsedDocument.of_file(relative, "rtf", text_blocks(text), described, *titles)


def text_of(raw: bytes, limits: LoadLimits) -> tuple[str, dict[str, object]]:
    """Return the text of RTF, a blank line after each paragraph, and its metadata."""
    convert: Callable[[str, str, str], str] = rtf_to_text
    # RTF is ASCII; bytes above it stand for the document's code page and are written as such.
    shown = _EMBEDDED.sub(b"", flatten_groups(_UNSEEN.sub(b"", _without_pale(raw))))
    source = re.sub(rb"[\x80-\xff]", lambda byte: b"\\'%02x" % ord(byte[0]), shown).decode("ascii")
    if len(source) > limits.max_characters * 20:
        raise DocumentError(
            f"{len(source)} characters of RTF; the limit is 20 times {limits.max_characters}"
            " (ingest.max_characters); split the file or raise it"
        )
    with report_damage("the RTF is damaged"):
        text = convert(source, _code_page(raw), "replace")
        found = {
            name: convert("{\\rtf1 " + value + "}", _code_page(raw), "replace").strip()
            for name, value in _INFO.findall(source)
        }
    if author := found.pop("author", ""):
        found["authors"] = author
    # Emoji are written as two halves.
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    text = with_notes(text.replace("\r", "\n"))
    lines = (line.strip() for line in text.split("\n"))
    return "\n\n".join(line for line in lines if line), metadata.normalise(found)


def _code_page(raw: bytes) -> str:
    match = _CODE_PAGE.search(raw[:4096])
    name = f"cp{int(match.group(1))}" if match else "cp1252"
    try:
        return codecs.lookup(name).name
    except LookupError:
        return {"cp10007": "mac-cyrillic", "cp65001": "utf-8"}.get(name, "cp1252")
