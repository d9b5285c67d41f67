"""The card of a document: what its file says about it, as a text that can be found and cited."""

from __future__ import annotations

from typing import Any

from core.record_names import humanise
from ingest.enrich import language_of
from ingest.loaders.marc_tables import LABELS
from ingest.loaders.records import LONG, shown_value
from ingest.loaders.text_header import text_header
from ingest.types import Block, ParsedDocument

# In this order; what else a file says of itself follows.
_FIRST = (
    "title", "authors", "editors", "translators", "illustrators", "publisher", "place",
    "year", "published",
    "edition", "series", "isbn", "issn", "doi", "language", "pages", "slides", "version", "license",
    "created", "updated_at",
)  # fmt: skip
# Nearly every file says these, and they say little: alone they are not worth a passage.
_COMMON = {"title", "language", "created", "updated_at", "keywords", "subject", "url"}
_NOT_SHOWN = {"description"}
_MESSAGES = {"eml", "msg", "mbox"}  # whose text begins with what is known of them
_MOST = 2_000


def with_card(document: ParsedDocument) -> ParsedDocument:
    """Return a document with its card as its last block, or as it is where there is too little.

    A record is one itself. The labels are in the language of the document where that is known.
    """
    said = _said(document)
    telling = (set(said) & set(_FIRST)) - (_COMMON - _telling(document))
    if document.is_record or document.format in _MESSAGES or not document.blocks or not telling:
        return document
    labels = LABELS.get(language_of(document), {})
    lines = [f"{labels.get(name) or humanise(name)}: {value}" for name, value in said.items()]
    block = Block(text="\n".join(lines)[:_MOST], kind="record")
    return document.model_copy(update={"blocks": [*document.blocks, block]})


def _telling(document: ParsedDocument) -> set[str]:
    """Return what is worth a passage though common: most pages of HTML name their language."""
    return set() if document.format == "html" else {"language"}


def _said(document: ParsedDocument) -> dict[str, str]:
    described: dict[str, Any] = document.metadata
    if "authors" not in described:
        described = text_header("\n".join(block.text for block in document.blocks[:4])) | described
    if document.title and document.title != document.document_id:
        described = {**described, "title": document.title}
    if _repeats(described, "year", "published"):
        described = {**described, "year": None}
    if _repeats(described, "published", "updated_at"):
        described = {**described, "updated_at": None}
    names = [*_FIRST, *(name for name in described if name not in (*_FIRST, *_NOT_SHOWN))]
    found = {name: " ".join(shown_value(described[name]).split()) for name in names
             if described.get(name) not in (None, "", [])}  # fmt: skip
    return {name: value for name, value in found.items() if value and len(value) <= LONG}


def _repeats(described: dict[str, Any], short: str, whole: str) -> bool:
    """Tell whether one date is said by another."""
    return short in described and str(described.get(whole) or "").startswith(str(described[short]))
