"""Look for the bytes of a text in every file of a folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def encoded(text: str) -> set[bytes]:
    """Return a text as it may lie in a file, in UTF-8, UTF-16 and as JSON escapes it."""
    escaped = text.encode("ascii", "backslashreplace")
    return {text.encode(), text.encode("utf-16-le"), text.encode("utf-16-be"), escaped}


def holding(folder: Path, needles: Iterable[bytes]) -> list[tuple[str, bytes]]:
    """Return (file, needle) for each file that holds a needle, in its content or its name."""
    wanted = list(needles)
    found = []
    for path in sorted(folder.rglob("*")):
        content = str(path.relative_to(folder)).encode()
        if path.is_file():
            content += b"\0" + path.read_bytes()
        found += [(str(path.relative_to(folder)), one) for one in wanted if one in content]
    return found
