"""Old Word and PowerPoint files, which are not read; many a .doc is RTF, HTML or DOCX, and is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from core.errors import DocumentError
from ingest.loaders.formats import suffix_of
from ingest.loaders.limits import LoadLimits
from ingest.types import ParsedDocument


def load(path: Path, relative: str, limits: LoadLimits) -> Iterator[ParsedDocument]:
    """Raise DocumentError: what could be read came to the loader of what the file holds."""
    del path, limits
    suffix = suffix_of(relative)
    target = "PPTX" if suffix in (".ppt", ".pps") else "DOCX"
    raise DocumentError(f"format {suffix} is not read; save it as {target}")
    yield  # a generator, as every loader is
