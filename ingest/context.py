"""Give short documents the text of their neighbours in the same file as context.

The context is embedded and indexed with the document but never shown or cited. A file has one
tenant and one access list, so nothing passes from one reader's documents to another's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from core.settings import Settings
from ingest.chunkers.graphemes import first_boundary, last_boundary
from ingest.types import ParsedDocument
from stores.sqlite.rows import NEXT, PREVIOUS


def with_context(
    documents: Iterable[ParsedDocument], settings: Settings
) -> Iterator[tuple[ParsedDocument, str]]:
    """Yield each document of one file with its context, "" where there is none.

    Three documents are held at a time. Records neither take nor give context: the row above is
    about something else.
    """
    if not settings.ingest.merge_short:
        for document in documents:
            yield document, ""
        return
    before: ParsedDocument | None = None
    current: ParsedDocument | None = None
    for following in documents:
        if current is not None:
            yield current, _context(before, current, following, settings)
        before, current = current, following
    if current is not None:
        yield current, _context(before, current, None, settings)


def _context(
    before: ParsedDocument | None,
    document: ParsedDocument,
    after: ParsedDocument | None,
    settings: Settings,
) -> str:
    """Return what stands before and after a short document, marked, within `ingest.merge_max`."""
    own = sum(len(block.text) for block in document.blocks)
    if document.is_record or own >= settings.ingest.merge_short_chars:
        return ""
    earlier, later = _plain(before), _plain(after)
    room = (
        settings.ingest.merge_max - own - len(PREVIOUS) - len(NEXT) - 2
    )  # each on a line of its own
    # What one side does not need the other may have.
    first = max(room // 2, room - len(later))
    earlier = _last(earlier, first)
    later = _first(later, room - len(earlier))
    lines = [mark + text for mark, text in ((PREVIOUS, earlier), (NEXT, later)) if text]
    return "\n".join(lines)


def _plain(document: ParsedDocument | None) -> str:
    if document is None or document.is_record:
        return ""
    return " ".join(" ".join(block.text for block in document.blocks).split())


def _last(text: str, limit: int) -> str:
    """Return the end of a text, from a word on."""
    if len(text) <= limit or limit < 1:
        return text if limit > 0 else ""
    return text[first_boundary(text, len(text) - limit, len(text)) :].strip()


def _first(text: str, limit: int) -> str:
    """Return the beginning of a text, up to a word."""
    if len(text) <= limit or limit < 1:
        return text if limit > 0 else ""
    return text[: last_boundary(text, 0, limit)].strip()
