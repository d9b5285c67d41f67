"""ZIP archives of documents: each member is read by the loader of its own format."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from core.errors import DocumentError
from ingest.loaders.formats import format_of
from ingest.loaders.limits import LoadLimits
from ingest.loaders.members import is_document, parse_member
from ingest.loaders.names import decoded, storable
from ingest.loaders.table import Loaded
from ingest.loaders.zip_safe import SafeZip, ZipBudget, ZipBudgetError
from ingest.types import LoadFailure

_FORMAT = "archive"


def load(path: Path, relative: str, limits: LoadLimits) -> Iterator[Loaded]:
    """Yield the documents of the members, named "archive.zip/folder/member.md".

    A member that cannot be read is one failure. As in a folder, hidden files and files that are no
    documents are passed over.
    """
    if limits.zip_depth < 1:
        raise DocumentError("an archive within too many other files (ingest.zip_depth)")
    found = False
    for item in _documents(path, relative, limits, ZipBudget(limits)):
        found = True
        yield item
    if not found:
        raise DocumentError("no document in the archive")


def _documents(
    path: Path, relative: str, limits: LoadLimits, budget: ZipBudget
) -> Iterator[Loaded]:
    with SafeZip(path, limits, budget) as container:
        for name in container.repeated():
            reason = "several members have this name; the last one is read"
            yield LoadFailure(path=f"{relative}/{storable(name)}", reason=reason)
        names = container.names()
        for name, shown in zip(names, decoded(names), strict=True):
            if _passed_over(shown):
                continue
            member = f"{relative}/{storable(shown)}"
            try:
                yield from _member(container, name, member, limits, budget)
            except ZipBudgetError:
                raise
            except DocumentError as error:
                yield LoadFailure(path=member, reason=error.rule)


def _passed_over(name: str) -> bool:
    parts = name.split("/")
    hidden = any(part.startswith(".") and part not in (".", "..") for part in parts)
    return hidden or parts[0] == "__MACOSX" or not is_document(name)


def _member(
    container: SafeZip, name: str, shown: str, limits: LoadLimits, budget: ZipBudget
) -> Iterator[Loaded]:
    if format_of(shown) != _FORMAT:
        yield from parse_member(shown, container.chunks(name), limits)
        return
    if limits.zip_depth < 2:
        raise DocumentError("archives inside one another more than ingest.zip_depth deep")
    inner = limits.model_copy(update={"zip_depth": limits.zip_depth - 1})
    with tempfile.NamedTemporaryFile(prefix="", suffix=".zip") as file:
        for chunk in container.chunks(name):
            file.write(chunk)
        file.flush()
        yield from _documents(Path(file.name), shown, inner, budget)
