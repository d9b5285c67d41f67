"""Plain text to paragraphs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from ingest.loaders.outline import Outline
from ingest.loaders.text_header import text_header
from ingest.types import Block, ParsedDocument

_MAX_TITLE = 80
_BLANK_LINES = re.compile(r"\n[ \t]*\n\s*")


def load(relative: str, text: str) -> Iterator[ParsedDocument]:
    """Yield the one document of a text file; .rst and .org files get their sections."""
    from ingest.loaders.restructured import add_org, add_restructured

    suffix = PurePosixPath(relative).suffix.lower()
    outline = Outline()
    if suffix == ".rst":
        add_restructured(outline, text)
    elif suffix == ".org":
        add_org(outline, text)
    else:
        outline.prose(text)
    described = {} if suffix in (".rst", ".org") else text_header(text)
    title = described.get("title") or outline.first_heading or first_short_line(text)
    yield ParsedDocument(
        document_id=relative,
        source=relative,
        title=str(title or PurePosixPath(relative).stem),
        format="text",
        blocks=outline.finish(),
        metadata=described,
    )


def text_blocks(text: str) -> list[Block]:
    """Return the paragraphs of a plain text as one block."""
    return [Block(text=_BLANK_LINES.sub("\n\n", text).strip())] if text.strip() else []


def first_short_line(text: str) -> str:
    """Return the first line when it looks like a title, else ""."""
    line = text.lstrip().split("\n", 1)[0].strip()
    reads_as_title = any(c.isalpha() for c in line) and line[-1] not in ".,;:。，；、"
    return line if len(line) <= _MAX_TITLE and reads_as_title else ""
