"""ZIP archives of documents: each member is read by the loader of its own format."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from core.errors import DocumentError
from ingest.loaders.formats import format_of, is_unsupported_document, refusal, suffix_of
from ingest.loaders.limits import LoadLimits
from ingest.loaders.names import decoded, storable
from ingest.loaders.parse import parse
from ingest.loaders.table import Loaded
from ingest.loaders.zip_safe import SafeZip, ZipBudget, ZipBudgetError
from ingest.types import LoadFailure

_FORMAT = "archive"


def load(path: Path, relative: str, limits: LoadLimits) -> Iterator[Loaded]:
    """Yield the documents of the members, named "archive.zip/folder/member.md".

    A member that cannot be read is one failure. As in a folder, hidden files and files that are no
    documents are passed over.
    """
    found = False
    for item in _documents(path, relative, limits, ZipBudget(limits), 1):
        found = True
        yield item
    if not found:
        raise DocumentError("no document in the archive")


def _documents(
    path: Path, relative: str, limits: LoadLimits, budget: ZipBudget, depth: int
) -> Iterator[Loaded]:
    if depth > limits.zip_depth:
        raise DocumentError(
            f"archives inside one another more than {limits.zip_depth} deep (zip_depth)"
        )
    with SafeZip(path, limits, budget) as container:
        for name in container.repeated():
            reason = "several members have this name; the last one is read"
            yield LoadFailure(path=f"{relative}/{storable(name)}", reason=reason)
        names = container.names()
        for name, shown in zip(names, decoded(names), strict=True):
            member = f"{relative}/{storable(shown)}"
            if _passed_over(shown):
                continue
            try:
                if format_of(shown) is None:
                    raise DocumentError(refusal(shown))
                yield from _member(container, name, member, limits, budget, depth)
            except ZipBudgetError:
                raise
            except DocumentError as error:
                yield LoadFailure(path=member, reason=error.rule)


def _passed_over(name: str) -> bool:
    parts = name.split("/")
    hidden = any(part.startswith(".") and part not in (".", "..") for part in parts)
    known = format_of(name) is not None or is_unsupported_document(name)
    return hidden or parts[0] == "__MACOSX" or not known


def _member(
    container: SafeZip, name: str, shown: str, limits: LoadLimits, budget: ZipBudget, depth: int
) -> Iterator[Loaded]:
    # Its own name never names a file: only the ending is kept, which some loaders look at.
    with tempfile.NamedTemporaryFile(suffix=suffix_of(shown)) as file:
        for chunk in container.chunks(name):
            file.write(chunk)
        file.flush()
        if format_of(shown) == _FORMAT:
            yield from _documents(Path(file.name), shown, limits, budget, depth + 1)
        else:
            yield from parse(Path(file.name), shown, limits)
