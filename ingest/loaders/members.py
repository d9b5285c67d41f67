"""Documents attached to a document: parsed by the loader of their own format."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from ingest.loaders.formats import format_of, is_unsupported_document, refusal, suffix_of
from ingest.loaders.limits import LoadLimits
from ingest.loaders.table import Loaded
from ingest.types import LoadFailure


def is_document(name: str) -> bool:
    """Tell whether a member of this name is to be read or reported: a logo in a mail is neither."""
    return format_of(name) is not None or is_unsupported_document(name)


def parse_member(relative: str, data: bytes, limits: LoadLimits) -> Iterator[Loaded]:
    """Yield the documents of a member, whose `relative` ends in its own name.

    `limits` are those of the file around it: each level of nesting takes one from `zip_depth`. A
    fault of the member is a LoadFailure of it.
    """
    from ingest.loaders.parse import parse

    if format_of(relative) is None:
        yield LoadFailure(path=relative, reason=refusal(relative))
    elif limits.zip_depth < 1:
        reason = "a document within more others than are opened (zip_depth)"
        yield LoadFailure(path=relative, reason=reason)
    else:
        inner = limits.model_copy(update={"zip_depth": limits.zip_depth - 1})
        # Its own name never names a file: only the ending is kept, which some loaders look at.
        with tempfile.NamedTemporaryFile(suffix=suffix_of(relative)) as file:
            file.write(data)
            file.flush()
            yield from parse(Path(file.name), relative, inner)
