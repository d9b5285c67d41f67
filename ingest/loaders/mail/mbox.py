"""Mailboxes: each message is read as an EML file is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from core.errors import DocumentError
from ingest.loaders.limits import LoadLimits
from ingest.loaders.mail import eml
from ingest.types import LoadFailure, ParsedDocument

_FROM = re.compile(rb"From \S+ .*\d")
_QUOTED = re.compile(rb"^>(>*From )", re.M)
_MB = 2**20


def load(path: Path, relative: str, limits: LoadLimits) -> Iterator[ParsedDocument | LoadFailure]:
    """Yield the messages of a mailbox, numbered from 1, and the documents attached to them."""
    number = 0
    for number, raw in enumerate(_messages(path, limits), start=1):
        name = f"{relative}#{number}"
        try:
            yield from eml.documents(eml.read(raw), name, "mbox", limits)
        except DocumentError as error:
            yield LoadFailure(path=name, reason=error.rule)
    if not number:
        raise DocumentError("no mailbox: no line in it begins a message ('From …')")


def _messages(path: Path, limits: LoadLimits) -> Iterator[bytes]:
    """Yield one message at a time; a line "From …" at the start or after a blank begins one.

    A message over `ingest.max_file_mb` is cut off there.
    """
    lines: list[bytes] = []
    size, begun, blank = 0, False, True
    with path.open("rb") as handle:
        for line in handle:
            if blank and _FROM.match(line):
                if begun:
                    yield _QUOTED.sub(rb"\1", b"".join(lines))
                lines, size, begun = [], 0, True
            elif begun and size < limits.max_file_mb * _MB:
                lines.append(line)
                size += len(line)
            blank = not line.strip()
    if begun:
        yield _QUOTED.sub(rb"\1", b"".join(lines))
