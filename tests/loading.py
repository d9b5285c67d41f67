"""Load files in this process, as the parser process does."""

from __future__ import annotations

import atexit
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.metadata import TABLE_FORMAT
from ingest.loaders.limits import LoadLimits
from ingest.loaders.parse import parse
from ingest.sandbox.pool import Sandbox
from ingest.types import ParsedDocument

LIMITS = LoadLimits(
    max_file_mb=8, max_pages=50, max_characters=200_000, timeout_s=20, memory_mb=1024
)
SHARED = Sandbox()
atexit.register(SHARED.close)


def loaded(
    path: Path, content: bytes | None = None, limits: LoadLimits = LIMITS
) -> tuple[list[ParsedDocument], dict[str, str]]:
    """Return the documents of a file, and the reasons of its failures by path."""
    if content is not None:
        path.write_bytes(content)
    documents: list[ParsedDocument] = []
    failures: dict[str, str] = {}
    for item in parse(path, path.name, limits):
        if isinstance(item, ParsedDocument):
            documents.append(item)
        else:
            failures[item.path] = item.reason
    return documents, failures


def only(path: Path, content: bytes | None = None) -> ParsedDocument:
    """Return the one document of a file that has no failures, without the rows of its tables."""
    documents, failures = loaded(path, content)
    assert not failures, failures
    (document,) = (one for one in documents if one.format != TABLE_FORMAT)
    return document


def reason(path: Path, content: bytes | None = None, limits: LoadLimits = LIMITS) -> str:
    """Return why a file as a whole is not read."""
    documents, failures = loaded(path, content, limits)
    assert not documents and list(failures) == [path.name], (documents, failures)
    return failures[path.name]


def texts(document: ParsedDocument) -> list[str]:
    """Return the texts of the blocks."""
    return [block.text for block in document.blocks]


def saved(document: Any) -> bytes:  # noqa: ANN401 - of python-docx, python-pptx or openpyxl
    """Return the bytes of an office file."""
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def with_parts(raw: bytes, change: Callable[[str, bytes], bytes | None], **more: str) -> bytes:
    """Write a container again with its parts changed, without those that become None."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            part = change(name, old.read(name))
            if part is not None:
                new.writestr(name, part)
        for name, part in more.items():
            new.writestr(name, part)
    return out.getvalue()


def sections(document: ParsedDocument) -> list[str]:
    """Return the sections of the blocks."""
    return [block.section for block in document.blocks]
