"""Names of files as they are stored and shown: whatever a disk or an archive calls them."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Controls would move a terminal's cursor; marks of direction make "gnp.md" look like "dm.png".
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_CODE_PAGES = ("cp866", "gb18030", "cp932", "big5", "cp949", "cp850", "cp437")


def storable(name: str) -> str:
    """Replace what cannot be stored (bytes that are not UTF-8) or seen (controls) by U+FFFD."""
    return _UNSEEN.sub("\ufffd", name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


def decoded(names: Sequence[str]) -> list[str]:
    """Return the names of an archive in the code page they were written in.

    The format knows two: UTF-8, and that of the first PC, which stands for any other.
    """
    raw = [_raw(name) for name in names]
    foreign = b"\n".join(name for name in raw if name is not None)
    page = _page(foreign) if foreign else ""
    return [
        name if written is None else written.decode(page, "replace")
        for name, written in zip(names, raw, strict=True)
    ]


def _raw(name: str) -> bytes | None:
    """Return the bytes of a name that may be in another code page than it says."""
    if name.isascii():
        return None
    try:
        return name.encode("cp437")
    except UnicodeEncodeError:
        return None


def _page(names: bytes) -> str:
    try:
        names.decode("utf-8")
    except UnicodeDecodeError:
        from charset_normalizer import from_bytes

        best = from_bytes(names, cp_isolation=list(_CODE_PAGES)).best()
        return "cp437" if best is None else best.encoding
    return "utf-8"
