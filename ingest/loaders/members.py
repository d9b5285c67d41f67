"""Files inside files (attachments, members of archives): parsed by the loader of their name."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ingest.loaders.formats import format_of, is_unsupported_document, refusal, suffix_of
from ingest.loaders.limits import LoadLimits
from ingest.loaders.parse import parse
from ingest.loaders.table import Loaded
from ingest.types import LoadFailure

_enter: Callable[[str], bool] = bool


def watch(enter: Callable[[str], bool]) -> None:
    """Have `enter` asked with the name of each member whether it is to be read."""
    global _enter
    _enter = enter


def is_document(name: str) -> bool:
    """Tell whether a member of this name is to be read or reported: a logo in a mail is neither."""
    return format_of(name) is not None or is_unsupported_document(name)


def parse_member(
    relative: str, data: bytes | Iterable[bytes], limits: LoadLimits
) -> Iterator[Loaded]:
    """Yield the documents of a member, whose `relative` ends in its own name.

    `limits` are those of the file around it: each level of nesting takes one from `zip_depth`. A
    fault of the member is a LoadFailure of it. Only formats that the table marks with `writes` may
    have members: each is put into a temporary file while it is read.
    """
    if not _enter(relative):
        return
    if limits.zip_depth < 1:
        yield LoadFailure(
            path=relative, reason="a document within too many others (ingest.zip_depth)"
        )
        return
    if format_of(relative) is None:
        yield LoadFailure(path=relative, reason=refusal(relative))
        return
    inner = limits.model_copy(update={"zip_depth": limits.zip_depth - 1})
    # Its own name never names a file: only the ending is kept, which tells the loader.
    with tempfile.NamedTemporaryFile(prefix="", suffix=suffix_of(relative)) as file:
        for piece in [data] if isinstance(data, bytes) else data:
            file.write(piece)
        file.flush()
        yield from parse(Path(file.name), relative, inner)
