"""Files as an ingest sees them: a fingerprint, and room on the disk."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path

from core.errors import OperatorError
from ingest.discover import SourceFile
from stores.rows import digest

MEGABYTE = 1 << 20


def fingerprint(path: Path, max_mb: float, *decisive: object) -> str:
    """Hash a file's bytes with everything else that decides what is stored of it.

    A file over the limit is not read, since it will be refused.
    """
    content = hashlib.sha256()
    try:
        if path.stat().st_size <= max_mb * MEGABYTE:
            with path.open("rb") as handle:
                while block := handle.read(MEGABYTE):
                    content.update(block)
    except OSError as error:
        content.update(str(error).encode())
    return digest(content.hexdigest(), *decisive)


def check_disk(sources: Sequence[SourceFile], folder: Path, min_free_mb: int) -> None:
    """Refuse to start without `min_free_mb` and three times the input of free disk."""
    size = 0
    for source in sources:
        try:
            size += source.path.stat().st_size
        except OSError:
            continue  # reported by the loader
    needed = min_free_mb + 3 * size // MEGABYTE
    free = shutil.disk_usage(folder).free // MEGABYTE
    if free < needed:
        raise OperatorError(
            f"ingest needs {needed} MB of free disk (min_free_mb and three times the input)",
            value=f"{free} MB free at {folder}",
            hint="free some space, or give another directory with --data",
        )
