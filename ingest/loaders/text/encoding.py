"""Bytes to text: find the encoding, refuse binary content, read long files as a stream."""

from __future__ import annotations

import codecs
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from core.errors import DocumentError
from ingest.loaders.formats import is_binary, kind_of
from ingest.loaders.limits import MB
from ingest.loaders.text import legacy_encoding

# UTF-32-LE first: its mark begins with that of UTF-16-LE.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# What HTML and XML say of themselves.
_DECLARED = re.compile(
    rb"""<(?:meta\b[^>]*charset\s*=|\?xml[^>]*encoding\s*=)\s*["']?([\w.:-]+)""", re.I
)
_DECLARED_WITHIN = 4096  # bytes; chosen, not measured
_SAMPLE = 200_000  # bytes; chosen, not measured
_CHUNK = 1 << 20  # bytes read at once; chosen, not measured
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\x80-\x84\x86-\x9f]")
_MAX_CONTROL_SHARE = 0.02  # more is no text; source not recorded
_DAMAGED_GZIP = (EOFError, zlib.error, gzip.BadGzipFile)


def decode(raw: bytes, suffix: str) -> str:
    r"""Decode a text file; line ends become \n and NUL is removed."""
    # A torn last character must not cost the whole file.
    text = raw.decode(_encoding(_scan(io.BytesIO(raw)), suffix), errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "").lstrip("\ufeff")


class TextFile:
    """Read a text file, plain or gzip, line by line in bounded memory, as often as needed."""

    def __init__(self, path: Path, suffix: str, max_mb: float) -> None:
        """Find the encoding; raise DocumentError for binary content and more than `max_mb`."""
        self._path = path
        self._most = int(max_mb * MB)
        try:
            with self._open() as handle:
                scan = _scan(handle, self._most)
        except _DAMAGED_GZIP as error:
            raise DocumentError("the gzip file is damaged") from error
        if scan.size > self._most:
            raise DocumentError(
                f"the file is more than {max_mb:g} MB unpacked; that is the limit"
                " (ingest.max_records_mb); split the file or raise it"
            )
        if scan.blank:
            raise DocumentError("the file holds only white space")
        self._encoding = _encoding(scan, suffix)

    def lines(self, longest: int) -> Iterator[tuple[str, bool]]:
        r"""Yield each line with its \n, cut after `longest` characters, and if it is complete."""
        with (
            self._open() as raw,
            io.TextIOWrapper(raw, encoding=self._encoding, errors="replace") as handle,
        ):
            first = True
            while line := handle.readline(longest + 1):
                complete = len(line) <= longest or line.endswith("\n")
                rest = line
                while rest and not rest.endswith("\n"):
                    rest = handle.readline(longest + 1)
                line = line.lstrip("\ufeff") if first else line
                first = False
                yield line.replace("\x00", "") if "\x00" in line else line, complete

    def _open(self) -> BinaryIO:
        packed = self._path.suffix.lower() == ".gz"
        return gzip.open(self._path) if packed else self._path.open("rb")  # type: ignore[return-value]


@dataclass
class _Scan:
    """What one pass over a file tells: its beginning, where it stops being UTF-8, and counts."""

    head: bytes = b""
    foreign: bytes = b""
    size: int = 0
    blank: bool = True
    even_nuls: int = 0
    odd_nuls: int = 0


def _scan(handle: BinaryIO, most: int | None = None) -> _Scan:
    found = _Scan()
    decoder = codecs.getincrementaldecoder("utf-8")()
    while chunk := handle.read(_CHUNK):
        if found.size < _SAMPLE:
            found.head += chunk[: _SAMPLE - found.size]
        nuls, odd = chunk.count(0), found.size % 2
        if nuls:
            first, second = chunk[odd::2].count(0), chunk[1 - odd :: 2].count(0)
            found.even_nuls += first
            found.odd_nuls += second
        found.blank = found.blank and not chunk.strip()
        found.size += len(chunk)
        found.foreign = found.foreign or _foreign(decoder, chunk)
        if most is not None and found.size > most:
            return found
    found.foreign = found.foreign or _foreign(decoder, b"", final=True)
    return found


def _foreign(decoder: codecs.IncrementalDecoder, chunk: bytes, *, final: bool = False) -> bytes:
    """Return the bytes around the first ones that are not UTF-8, or nothing."""
    try:
        decoder.decode(chunk, final)
    except UnicodeDecodeError as error:
        start = max(0, error.start - _SAMPLE // 2)
        return bytes(error.object[start : start + _SAMPLE])
    return b""


def _encoding(scan: _Scan, suffix: str) -> str:
    name = None if is_binary(scan.head) else _find_name(scan)
    if name is None or _controls(scan.head, name):
        kind = kind_of(scan.head)
        detail = f": it is {kind}" if kind else ""
        raise DocumentError(f"binary content in a {suffix or 'text'} file{detail}")
    return name


def _controls(head: bytes, name: str = "utf-8") -> bool:
    """Tell whether what decoding gives has more control characters than text does."""
    sample = head.decode(name, errors="replace")
    return len(_CONTROL.findall(sample)) > _MAX_CONTROL_SHARE * max(len(sample), 100)


def _find_name(scan: _Scan) -> str | None:
    for mark, name in _MARKS:
        if scan.head.startswith(mark):
            return name
    nuls = scan.even_nuls + scan.odd_nuls
    if nuls > scan.size // (10 if scan.foreign else 4):
        return legacy_encoding.wide(scan.head) or _utf16_without_mark(scan)
    if scan.foreign:
        match = _DECLARED.search(scan.head[:_DECLARED_WITHIN])
        return guess(scan.foreign, match.group(1).decode() if match else "")
    if b"\x1b$" in scan.head and (escaped := legacy_encoding.find_escape_encoding(scan.head)):
        return escaped
    # Cyrillic in UTF-16 is made of bytes that UTF-8 has too, half of them controls.
    return (legacy_encoding.wide(scan.head) if _controls(scan.head) else None) or "utf-8"


def _utf16_without_mark(scan: _Scan) -> str | None:
    """ASCII text in UTF-16 has its NULs on one side of every pair."""
    even, odd = scan.even_nuls, scan.odd_nuls
    if min(even, odd) > 0.1 * max(even, odd):
        return None
    return "utf-16-be" if even > odd else "utf-16-le"


def guess(sample: bytes, declared: str = "") -> str | None:
    """Name the most likely encoding of text that is not plain UTF-8, or None."""
    damaged = sample.decode("utf-8", errors="replace")
    # A few broken bytes in long UTF-8 text (a cut file, one bad paste) are not another encoding.
    valid = sum(1 for c in damaged if c > "\x7f" and c != "\ufffd")
    if valid > 20 * damaged.count("\ufffd"):
        return "utf-8"
    return legacy_encoding.guess(sample, declared)
