"""Check a file, have it parsed in a process of its own, and turn every fault into a LoadFailure."""

from __future__ import annotations

import stat
from collections.abc import Iterator

from core.errors import DocumentError
from ingest.discover import SourceFile
from ingest.loaders.formats import Loaded, format_of, refusal
from ingest.loaders.limits import LoadLimits
from ingest.loaders.parse import check_size
from ingest.sandbox.pool import Sandbox, shared
from ingest.types import LoadFailure

__all__ = ["LoadLimits", "Loaded", "load"]


def load(file: SourceFile, limits: LoadLimits, sandbox: Sandbox | None = None) -> Iterator[Loaded]:
    """Yield the documents of a file and the failures of it or its records; bad content is no error.

    They come as they are parsed: a file of many records is never held as a whole. Without a sandbox
    that of this process is used.
    """
    try:
        _check(file, limits)
        yield from (sandbox or shared()).parse(file.path, file.relative, limits)
    except DocumentError as error:
        yield LoadFailure(path=file.relative, reason=error.rule)
    except OSError as error:
        reason = f"cannot be read: {(error.strerror or str(error)).lower()}"
        yield LoadFailure(path=file.relative, reason=reason)
    except (ValueError, MemoryError):
        # What the process sent is no document, or one that does not fit here.
        reason = "the parser gave no usable answer for this file; convert it to another format"
        yield LoadFailure(path=file.relative, reason=reason)


def _check(file: SourceFile, limits: LoadLimits) -> None:
    name = format_of(file.path.name)
    if name is None:
        raise DocumentError(refusal(file.path.name))
    status = file.path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise DocumentError("not a regular file")
    check_size(status.st_size, name, limits)
    with file.path.open("rb"):
        pass  # permissions
