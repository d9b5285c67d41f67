"""ZIP containers (archives, OOXML, EPUB, ODF), read without trusting what they say."""

from __future__ import annotations

import io
import re
import stat
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from core.errors import DocumentError
from ingest.loaders.limits import MB, LoadLimits
from ingest.loaders.web.xml_tree import check_xml

_CHUNK = 1 << 16  # bytes read at once; chosen, not measured
# A small member may well be mostly blanks: the ratio says something of large ones only.
_SMALL = MB
_LOCAL_HEADER = 30  # bytes before a member's name, as the format has it
_XML = (".xml", ".rels", ".opf", ".ncx", ".xhtml", ".vml", ".svg")
_ENCRYPTED = 0x1  # a flag of the format
_DRIVE = re.compile(r"[A-Za-z]:")
_DAMAGED = (
    zipfile.BadZipFile, zlib.error, EOFError, struct.error, NotImplementedError, RuntimeError,
    ValueError, OverflowError, IndexError, UnicodeDecodeError, LookupError,
)  # fmt: skip


class ZipBudgetError(DocumentError):
    """Report a container that, with all in it, is larger than the limits allow."""


class ZipBudget:
    """Count the entries and bytes of a container together with those nested in it."""

    def __init__(self, limits: LoadLimits) -> None:
        self._limits = limits
        self._entries = 0
        self._bytes = 0

    def spend(self, *, entries: int = 0, size: int = 0) -> None:
        """Add entries or unpacked bytes; raise DocumentError over the limit."""
        self._entries += entries
        self._bytes += size
        if self._entries > self._limits.zip_entries:
            raise ZipBudgetError(
                f"the ZIP container has more than {self._limits.zip_entries} entries"
                " (ingest.zip_entries)"
            )
        self.would_fit(0)

    def would_fit(self, size: int) -> None:
        """Raise DocumentError when that many bytes more would be over the limit."""
        if self._bytes + size > self._limits.zip_total_mb * MB:
            raise ZipBudgetError(
                f"the ZIP container unpacks to more than {self._limits.zip_total_mb:g} MB"
                " (ingest.zip_total_mb)"
            )


class SafeZip:
    """Read the members of a ZIP container, each bounded and none written anywhere.

    Opening raises DocumentError for a damaged container, one with overlapping members, and one over
    `zip_entries` or `zip_total_mb`; `read` and `chunks` do for a member that is encrypted, a link,
    badly named or packed beyond `zip_ratio`. Use as a context manager, or call `close`.
    """

    def __init__(
        self, source: Path | bytes, limits: LoadLimits, budget: ZipBudget | None = None
    ) -> None:
        """Check the directory of the container; a `budget` is shared with the one around it."""
        self._limits = limits
        self._budget = budget or ZipBudget(limits)
        self._counted: dict[str, int] = {}
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source)
        except _DAMAGED as error:
            raise DocumentError("the ZIP container is damaged or no ZIP at all") from error
        # The last of equal names wins, as it does for everybody who unpacks.
        self._entries = {entry.orig_filename: entry for entry in self._zip.infolist()}
        try:
            self._check()
        except DocumentError:
            self.close()
            raise

    def __enter__(self) -> SafeZip:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the container."""
        self._zip.close()

    def names(self) -> list[str]:
        """Return the names of the members that are no folders, each once, as they stand."""
        return [name for name in self._entries if not name.endswith("/")]

    def find_repeated(self) -> list[str]:
        """Return the names that several members have; the last one is read."""
        counts = Counter(entry.orig_filename for entry in self._zip.infolist())
        return [name for name, count in counts.items() if count > 1]

    def read(self, name: str) -> bytes:
        """Return the content of a member; raise DocumentError for one that is absent or refused."""
        return b"".join(self.chunks(name))

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield the content of a member in pieces of at most 64 KB."""
        if name not in self._entries:
            raise DocumentError(f"the ZIP container has no member {name!r}")
        entry = self._entries[name]
        self._check_member(entry)
        seen = 0
        try:
            with self._zip.open(entry) as member:
                while chunk := member.read(_CHUNK):
                    seen += len(chunk)
                    new = seen - self._counted.get(name, 0)
                    if new > 0:  # what is read again costs nothing
                        self._budget.spend(size=new)
                        self._counted[name] = seen
                    yield chunk
        except _DAMAGED as error:
            raise DocumentError(f"the member {name!r} of the ZIP container is damaged") from error

    def check(self) -> None:
        """Raise DocumentError when a member would not be read or its XML declares entities.

        For containers that a library opens by itself.
        """
        for entry in self._zip.infolist():
            self._check_member(entry)
        for name in self.names():
            if name.lower().endswith(_XML):
                check_xml(self.chunks(name))

    def _check(self) -> None:
        entries = self._zip.infolist()
        self._budget.spend(entries=len(entries))
        self._budget.would_fit(sum(entry.file_size for entry in entries))
        end = 0
        for entry in sorted(entries, key=lambda entry: entry.header_offset):
            if entry.header_offset < end:
                raise DocumentError("members of the ZIP container overlap, as those of a bomb do")
            end = entry.header_offset + _LOCAL_HEADER + entry.compress_size

    def _check_member(self, entry: zipfile.ZipInfo) -> None:
        name = entry.orig_filename
        problem = _name_problem(name) or _kind_problem(entry)
        if problem:
            raise DocumentError(f"the member {name!r} of the ZIP container {problem}")
        ratio = entry.file_size / max(entry.compress_size, 1)
        if entry.file_size > _SMALL and ratio > self._limits.zip_ratio:
            raise DocumentError(
                f"the member {name!r} of the ZIP container unpacks to {ratio:.0f} times its size;"
                f" the limit is {self._limits.zip_ratio:g} (ingest.zip_ratio)"
            )


def _name_problem(name: str) -> str:
    if "\0" in name:
        return "has a NUL in its name"
    if not name:
        return "has no name"
    parts = re.split(r"[/\\]", name)
    if not parts[0] or _DRIVE.match(name):
        return "has an absolute path"
    return "leaves its folder (..)" if ".." in parts else ""


def _kind_problem(entry: zipfile.ZipInfo) -> str:
    if entry.flag_bits & _ENCRYPTED:
        return "is encrypted; unpack it with its password"
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind == stat.S_IFLNK:
        return "is a symbolic link"
    return "" if kind in (0, stat.S_IFREG, stat.S_IFDIR) else "is a device or a pipe"
