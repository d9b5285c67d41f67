"""Name a model by its content: a hash of files, remembered until one of them changes."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from core.errors import ModelError

BLOCK = 1 << 20


def files_digest(files: Sequence[Path], cache_dir: Path, names: Sequence[str] | None = None) -> str:
    """Return the SHA-256 of the files' content in the given order; with names also of those.

    Reading gigabytes costs seconds at each start, so the digest is kept in the cache beside the
    size, times and inode of every file. Raises ModelError for a file that cannot be read.
    """
    try:
        return _digest(files, cache_dir, names)
    except OSError as error:
        raise ModelError(
            "a model's files must be readable",
            value=f"{error.filename}: {error.strerror}",
            hint="check the folder's permissions",
        ) from error


def _digest(files: Sequence[Path], cache_dir: Path, names: Sequence[str] | None) -> str:
    stamp = [[str(path), *_stamp(path)] for path in files]
    key = hashlib.sha256(json.dumps([[str(path) for path in files], names]).encode()).hexdigest()
    memo = cache_dir / f"digest-{key[:24]}.json"
    try:
        kept = json.loads(memo.read_text(encoding="utf-8"))
        if kept["stamp"] == stamp:
            return str(kept["digest"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # nothing remembered, or not readable: hash again
    digest = _hash(files, names)
    _remember(memo, {"stamp": stamp, "digest": digest})
    return digest


def _stamp(path: Path) -> list[int]:
    """Return what changes when a file does: size, change times and inode."""
    found = path.stat()
    return [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]


def _hash(files: Sequence[Path], names: Sequence[str] | None) -> str:
    digest = hashlib.sha256()
    for number, path in enumerate(files):
        if names is not None:
            digest.update(names[number].encode() + b"\0")
        with path.open("rb") as handle:
            while block := handle.read(BLOCK):
                digest.update(block)
    return digest.hexdigest()


def _remember(memo: Path, kept: dict[str, object]) -> None:
    """Write the memo whole or not at all; a cache that cannot be written is only slower."""
    try:
        memo.parent.mkdir(parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(dir=memo.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(kept, file)
        os.replace(partial, memo)
    except OSError:
        pass
