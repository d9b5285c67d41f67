"""Bytes to text: find the encoding, refuse binary content."""

from __future__ import annotations

import codecs
import re

from core.errors import DocumentError

_MAGIC = (
    b"%PDF-",
    b"PK\x03\x04",
    b"\x89PNG",
    b"GIF8",
    b"\xff\xd8\xff",
    b"\x1f\x8b",
    b"\x7fELF",
    b"\xd0\xcf\x11\xe0",
    b"SQLite format 3\x00",
)
# UTF-32-LE first: its mark begins with that of UTF-16-LE.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# What people's old files are really in; the detector otherwise also offers EBCDIC and Mac pages.
_LEGACY = (
    "cp1251", "koi8_u", "gb18030", "big5", "cp932", "euc_jp", "cp949",
    "cp1252", "cp1250", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257",
)  # fmt: skip
_SAMPLE = 200_000
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\x80-\x84\x86-\x9f]")
_MAX_CONTROL_SHARE = 0.02


def decode(raw: bytes, suffix: str) -> str:
    r"""Decode a text file; line ends become \n and NUL is removed.

    Raises DocumentError when the content is not text.
    """
    if raw.startswith(_MAGIC):
        raise _binary(suffix)
    text = _decoded(raw)
    if text is None:
        raise _binary(suffix)
    sample = text[:_SAMPLE]
    if len(_CONTROL.findall(sample)) > _MAX_CONTROL_SHARE * max(len(sample), 100):
        raise _binary(suffix)
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "").lstrip("\ufeff")


def _binary(suffix: str) -> DocumentError:
    return DocumentError(f"binary content in a {suffix or 'text'} file")


def _decoded(raw: bytes) -> str | None:
    for mark, name in _MARKS:
        if raw.startswith(mark):
            # A torn last character must not cost the whole file.
            return raw.decode(name, errors="replace")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return _guessed(raw)
    if text.count("\x00") > len(text) // 4:
        return _utf16_without_mark(raw)
    return text


def _utf16_without_mark(raw: bytes) -> str | None:
    """ASCII text in UTF-16 has its NULs on one side of every pair."""
    even, odd = raw[0::2].count(0), raw[1::2].count(0)
    if min(even, odd) > 0.1 * max(even, odd):
        return None
    return raw.decode("utf-16-be" if even > odd else "utf-16-le", errors="replace")


def _guessed(raw: bytes) -> str | None:
    if raw.count(b"\x00") > len(raw) // 10:
        return _utf16_without_mark(raw)
    damaged = raw.decode("utf-8", errors="replace")
    # A few broken bytes in long UTF-8 text (a cut file, one bad paste) are not another encoding.
    valid = sum(1 for c in damaged[:_SAMPLE] if c > "\x7f" and c != "\ufffd")
    if valid > 20 * damaged[:_SAMPLE].count("\ufffd"):
        return damaged
    from charset_normalizer import from_bytes

    best = from_bytes(raw[:_SAMPLE], cp_isolation=list(_LEGACY)).best()
    return None if best is None else raw.decode(best.encoding, errors="replace")
