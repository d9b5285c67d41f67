"""The SHA-256 of a file, and the one that a pull has written beside it for `sha256sum -c`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from models.digest import BLOCK
from models.hub import SHA256


def file_sha256(path: Path, advance: Callable[[str, int, int], None]) -> str:
    """Hash a file, saying how far it is: advance("check", bytes done, bytes in all)."""
    digest, done, size = hashlib.sha256(), 0, path.stat().st_size
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
            done += len(block)
            advance("check", done, size)
    return digest.hexdigest()


def record_digest(path: Path, digest: str) -> None:
    """Write the digest beside the file."""
    partial = _beside(path).with_suffix(".part")
    partial.write_text(f"{digest}  {path.name}\n", encoding="utf-8")
    os.replace(partial, _beside(path))


def recorded_digest(path: Path) -> str | None:
    """Return the digest written beside the file, None when there is none."""
    try:
        found = _beside(path).read_text(encoding="utf-8", errors="replace").split()
    except OSError:
        return None
    return found[0] if found and SHA256.fullmatch(found[0]) else None


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")
