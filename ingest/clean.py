"""Clean text for display and for the models; search normalises further on its own."""

from __future__ import annotations

import html
import re
import unicodedata
from typing import Any

from ingest.types import Block, ParsedDocument

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
    text = _BB_CODE.sub("", _NAMED_LINK.sub(r"\1", text))
    if "://" in text or "www." in text.lower():
        text = _EMPTY.sub("", _ADDRESS.sub(_after, text))
    return _HEADING.sub("", _EMPHASIS.sub(r"\2", _EMPHASIS.sub(r"\2", text)))


def _after(match: re.Match[str]) -> str:
    """Keep the punctuation after an address, or the space before it."""
    ending = _END.search(match.group())
    return ending.group() if ending else str(match["gap"])


PROSE = {"text", "annotation"}

# Format characters (Cf): zero-width, direction, soft hyphen, tags, which hide text from a reader
# but not from a model; and variation selectors beyond the first 16, which can carry hidden bytes.
# The few visible ones (Arabic number signs) stay.
_HIDDEN = (
    "\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "\x00-\x08\x0b\x0e-\x1f\x7f\x80-\x84\x86-\x9f\ud800-\udfff"
)
_SPACE = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_LINE_END = "\r\x0c\x85\u2028\u2029"
# Control characters where Windows has quotes and dashes: what stands there in mail, PDF and HTML.
_WINDOWS = {
    code: bytes([code]).decode("cp1252")
    for code in range(0x80, 0xA0)
    if code not in (0x81, 0x85, 0x8D, 0x8F, 0x90, 0x9D)
}
_INVISIBLE = re.compile(f"[{_HIDDEN}]")
_SPACES = re.compile(f"[{_SPACE}]")
_LINE_ENDS = re.compile(f"\r\n|[{_LINE_END}]")
_ODD = re.compile(f"[{_HIDDEN}{_SPACE}{_LINE_END}]")
TAG_NAMES = (
    "a|abbr|article|b|big|blockquote|br|button|center|cite|code|dd|del|details|dfn|div|dl|dt|em|"
    "figcaption|figure|font|footer|h[1-6]|header|hr|i|iframe|img|input|ins|kbd|li|main|mark|nav|ol|"
    "p|picture|pre|q|s|samp|section|small|source|span|strike|strong|sub|summary|sup|table|tbody|td|"
    "tfoot|th|thead|tr|tt|u|ul|video|wbr"
)
_TAG = re.compile(rf"</?(?:{TAG_NAMES})(?:\s[^<>]*)?/?>|<!--(?:(?!<!--).)*?-->", re.I | re.S)
_ENTITY = re.compile(r"&(?:amp;)*(?:#\d{1,7}|#x[\da-f]{1,6}|[a-z][a-z\d]{1,31});", re.I)
_CODE_SPAN = re.compile(r"(`[^`\n]+`)")
_BRACKETED_LINK = re.compile(r" ?(?:\(\s*https?://[^\s()]+\s*\)|\[\s*https?://[^\s\[\]]+\s*\])")
_BLANKS = re.compile(r"[ \t]{2,}|\t")
_LINE_EDGES = re.compile(r" *\n *")
_TRAILING = re.compile(r"[ \t]+(?=\n)")
_EMPTY_LINES = re.compile(r"\n{3,}")
_EMPTY_CODE_LINES = re.compile(r"\n{4,}")  # Python has two between functions
_MAX_ROUNDS = 5  # of unpacking nested escapes; chosen, not measured


def clean_text(text: str, *, code: bool = False) -> str:
    """Remove what a reader cannot see or should not: the result is stable under a second call.

    Code keeps its spaces, tags and entities; so do `code spans` in prose, except runs of spaces.
    """
    for _ in range(_MAX_ROUNDS):
        cleaned = _clean_code(text) if code else _clean_prose(text)
        if cleaned == text:
            return text
        text = cleaned
    # Nested escapes ("&amp;lt;…") made to outlast any number of rounds: nobody wrote that to be
    # read. Without these signs the rounds have nothing left to unpack.
    for _ in range(_MAX_ROUNDS):
        text = re.sub(r"[<>&`()\[\]]", " ", text)
        text = _clean_code(text) if code else _clean_prose(text)
    return text


def clean_document(document: ParsedDocument, *, plain: bool = False) -> ParsedDocument:
    """Clean every block, the title and the field values; empty and repeated blocks go.

    With `plain`, texts and annotations lose their hyperlinks and marks of formatting too.
    """
    blocks: list[Block] = []
    annotations: set[str] = set()
    for block in document.blocks:
        raw = plain_prose(block.text) if plain and block.kind in PROSE else block.text
        text = clean_text(raw, code=block.kind == "code")
        if not text or (block.kind == "annotation" and text in annotations):
            continue
        if block.kind == "annotation":
            annotations.add(text)
        section = _one_line(block.section) if block.section else ""
        blocks.append(block.model_copy(update={"text": text, "section": section}))
    return document.model_copy(
        update={
            "title": _one_line(document.title) or document.document_id,
            "blocks": blocks,
            "fields": _clean_value(document.fields),
            "metadata": _clean_value(document.metadata),
        }
    )


def _clean_value(value: Any) -> Any:  # noqa: ANN401 (a field is any scalar or a list of them)
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {key: _clean_value(item) for key, item in value.items()}
    return [_clean_value(item) for item in value] if isinstance(value, list) else value


def _one_line(text: str) -> str:
    return " ".join(clean_text(text).split())


def _characters(text: str) -> str:
    if text.isascii():
        odd = not text.isprintable()
    else:
        text = unicodedata.normalize("NFC", text)
        odd = bool(_ODD.search(text))
    if not odd:
        return text
    text = _INVISIBLE.sub("", _LINE_ENDS.sub("\n", text.translate(_WINDOWS)))
    # Again: what an invisible character kept apart may now compose.
    return unicodedata.normalize("NFC", _SPACES.sub(" ", text))


def _clean_code(text: str) -> str:
    text = _TRAILING.sub("", _characters(text))
    return _EMPTY_CODE_LINES.sub("\n\n\n", text).strip("\n").rstrip()


def _clean_prose(text: str) -> str:
    text = _BRACKETED_LINK.sub("", _without_markup(_characters(text)))
    text = _LINE_EDGES.sub("\n", _BLANKS.sub(" ", text))
    return _EMPTY_LINES.sub("\n\n", text).strip()


def _without_markup(text: str) -> str:
    parts = _CODE_SPAN.split(text)
    parts[::2] = [_TAG.sub(" ", _ENTITY.sub(_unescaped, part)) for part in parts[::2]]
    return "".join(parts)


def _unescaped(match: re.Match[str]) -> str:
    # An entity nobody defined ("&foo;") comes back as it was.
    return html.unescape(re.sub("&(?:amp;)+", "&", match.group()))
