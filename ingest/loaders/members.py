"""Files inside files (attachments, members of archives): parsed by the loader of their name."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core.errors import DocumentError
from ingest.loaders.encoding import decode
from ingest.loaders.formats import format_of, is_unsupported_document, refusal, suffix_of
from ingest.loaders.limits import LoadLimits
from ingest.loaders.table import FORMATS
from ingest.types import LoadFailure, ParsedDocument

Loaded = ParsedDocument | LoadFailure


def is_document(name: str) -> bool:
    """Tell whether a member of this name is to be read or reported: a logo in a mail is neither."""
    return format_of(name) is not None or is_unsupported_document(name)


def parse_member(relative: str, data: bytes, limits: LoadLimits) -> Iterator[Loaded]:
    """Yield the documents of a member, whose `relative` ends in its own name.

    `limits` are those of the file around it: each level of nesting takes one from `zip_depth`. A
    fault of the member is a LoadFailure of it.
    """
    try:
        if limits.zip_depth < 1:
            raise DocumentError("a document within too many others (zip_depth)")
        inner = limits.model_copy(update={"zip_depth": limits.zip_depth - 1})
        yield from _load(relative, data, inner)
    except DocumentError as error:
        yield LoadFailure(path=relative, reason=error.rule)
    except MemoryError:
        raise
    except Exception as error:
        reason = f"the file cannot be parsed ({type(error).__name__})"
        yield LoadFailure(path=relative, reason=reason)


def _load(relative: str, data: bytes, limits: LoadLimits) -> Iterator[Loaded]:
    name = format_of(relative)
    if name is None:
        raise DocumentError(refusal(relative))
    if not data:
        raise DocumentError("the file is empty")
    loader = FORMATS[name]
    if loader.text_share:
        yield from loader.text_loader()(relative, decode(data, suffix_of(relative)))
        return
    with as_file(data) as path:
        yield from loader.file_loader()(path, relative, limits)


@contextmanager
def as_file(data: bytes) -> Iterator[Path]:
    """Give bytes the path of a file without a name, for parsers that want a path.

    Where the system has such files they are in memory; elsewhere in the temporary folder.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("member")
        try:
            with open(descriptor, "wb", closefd=False) as handle:
                handle.write(data)
            yield Path(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "member")
        path.write_bytes(data)
        yield path
