"""Pick the loader of a file, check the file first, and turn every fault into a LoadFailure."""

from __future__ import annotations

import gzip
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import nullcontext

from core.errors import DocumentError
from ingest.discover import SourceFile
from ingest.loaders import csv_records, html, jsonl_records, markdown, notebook, text
from ingest.loaders.encoding import decode
from ingest.loaders.formats import format_of, refusal, suffix_of
from ingest.loaders.limits import LoadLimits
from ingest.loaders.sandbox import Sandbox
from ingest.types import LoadFailure, ParsedDocument

__all__ = ["LoadLimits", "Loaded", "load"]

Loaded = ParsedDocument | LoadFailure
_TextLoader = Callable[[str, str], Iterator[Loaded]]

_TEXT_LOADERS: dict[str, _TextLoader] = {
    "markdown": markdown.load,
    "text": text.load,
    "html": html.load,
    "csv": csv_records.load,
    "jsonl": jsonl_records.load,
    "notebook": notebook.load,
}
_ISOLATED = {"pdf", "docx"}
_PER_RECORD = {"csv", "jsonl"}
_MB = 2**20


def load(file: SourceFile, limits: LoadLimits, sandbox: Sandbox | None = None) -> Iterator[Loaded]:
    """Yield the documents of a file and the failures of it or its records; bad content is no error.

    Without a sandbox, a PDF or DOCX file starts a process of its own.
    """
    try:
        for item in _load(file, limits, sandbox):
            yield _within(item, limits)
    except DocumentError as error:
        yield LoadFailure(path=file.relative, reason=error.rule)
    except OSError as error:
        reason = f"cannot be read: {(error.strerror or str(error)).lower()}"
        yield LoadFailure(path=file.relative, reason=reason)
    except (Exception, RecursionError, MemoryError) as error:
        # A parser's bug with one file must not stop the others.
        reason = f"the file cannot be parsed ({type(error).__name__})"
        yield LoadFailure(path=file.relative, reason=reason)


def _load(file: SourceFile, limits: LoadLimits, sandbox: Sandbox | None) -> Iterator[Loaded]:
    name = format_of(file.path.name)
    if name is None:
        raise DocumentError(refusal(file.path.name))
    _check_size(file, limits)
    if name in _ISOLATED:
        with Sandbox() if sandbox is None else nullcontext(sandbox) as box:
            yield from box.parse(file.path, file.relative, limits)
        return
    content = decode(_read(file, limits), suffix_of(file.path.name))
    if not content.strip():
        raise DocumentError("the file holds only white space")
    if name not in _PER_RECORD:
        _check_characters(len(content), limits, slack=_markup_share(name))
    yield from _TEXT_LOADERS[name](file.relative, content)


def _check_size(file: SourceFile, limits: LoadLimits) -> None:
    status = file.path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise DocumentError("not a regular file")
    if status.st_size == 0:
        raise DocumentError("the file is empty")
    if status.st_size > limits.max_file_mb * _MB:
        raise _too_large(f"{status.st_size / _MB:.0f} MB", limits)
    with file.path.open("rb"):
        pass  # permissions


def _read(file: SourceFile, limits: LoadLimits) -> bytes:
    if file.path.suffix.lower() != ".gz":
        return file.path.read_bytes()
    most = int(limits.max_file_mb * _MB)
    try:
        with gzip.open(file.path) as packed:
            content = packed.read(most + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DocumentError("the gzip file is damaged") from error
    if len(content) > most:
        raise _too_large(f"more than {limits.max_file_mb:g} MB unpacked", limits)
    return content


def _too_large(size: str, limits: LoadLimits) -> DocumentError:
    return DocumentError(
        f"the file is {size}; the limit is {limits.max_file_mb:g} MB (max_file_mb); split the file"
        " or raise it"
    )


def _markup_share(name: str) -> int:
    """HTML and notebooks (images as base64) are mostly not text."""
    return 20 if name in {"html", "notebook"} else 2


def _check_characters(count: int, limits: LoadLimits, *, slack: int = 1) -> None:
    if count > limits.max_characters * slack:
        raise DocumentError(
            f"{count} characters; the limit is {limits.max_characters} (max_characters); split the"
            " file or raise it"
        )


def _within(item: Loaded, limits: LoadLimits) -> Loaded:
    """Refuse a document without text or with too much."""
    if isinstance(item, LoadFailure):
        return item
    count = sum(len(block.text) for block in item.blocks)
    try:
        _check_characters(count, limits)
        if not any(block.text.strip() for block in item.blocks):
            raise DocumentError("no text found in it")
    except DocumentError as error:
        return LoadFailure(path=item.source, reason=error.rule)
    return item
