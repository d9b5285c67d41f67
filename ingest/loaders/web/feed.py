"""RSS and Atom: every entry is a document."""

from __future__ import annotations

from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from ingest.loaders import metadata
from ingest.loaders.web import html
from ingest.loaders.web.xml_tree import child, children, descendants, words
from ingest.types import Block, LoadFailure, ParsedDocument

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_TEXTS = ("encoded", "content", "description", "summary")
_AUTHORS = ("author", "creator")
_DATES = ("updated", "published", "pubDate", "date", "modified")


def entries(root: Element) -> list[Element]:
    """Return the entries of a feed."""
    return list(descendants(root, "item", "entry"))


def documents(found: list[Element], relative: str) -> Iterator[ParsedDocument | LoadFailure]:
    """Yield a document per entry; its id is what the feed calls it, within the file."""
    seen: set[str] = set()
    for number, entry in enumerate(found, start=1):
        given = words(child(entry, "guid")) or words(child(entry, "id")) or _link(entry)
        name = f"{relative}#{given or number}"
        if name in seen:
            name = f"{relative}#{number}"
        seen.add(name)
        title = " ".join(html_text(words(child(entry, "title"))).split())
        blocks = _blocks(entry) or ([Block(text=title)] if title else [])
        if not blocks:
            yield LoadFailure(path=f"{relative}: entry {number}", reason="no text in this entry")
            continue
        authors = [words(child(one, "name")) or words(one) for one in children(entry, *_AUTHORS)]
        described = metadata.normalise(
            {
                "title": title,
                "authors": authors,
                "keywords": [words(one) for one in children(entry, "category") if words(one)],
                "url": _link(entry),
                "updated_at": _date(entry),
            }
        )
        yield ParsedDocument(
            document_id=name,
            source=name,
            title=title or name,
            format="feed",
            blocks=blocks,
            metadata=described,
        )


def html_text(text: str) -> str:
    """Return the words of a piece of HTML."""
    return "\n\n".join(block.text for block in _html_blocks(text)) if "<" in text else text


def _html_blocks(text: str) -> list[Block]:
    return [block for document in html.load("entry", text) for block in document.blocks]


def _blocks(entry: Element) -> list[Block]:
    for name in _TEXTS:
        for element in children(entry, name):
            # HTML is written as text; XHTML stands there as elements.
            text = "".join(element.itertext())
            if text.strip():
                return _html_blocks(text) if "<" in text else [Block(text=text.strip())]
    return []


def _link(entry: Element) -> str:
    for link in children(entry, "link"):
        if (link.get("rel") or "alternate") == "alternate":
            return link.get("href") or words(link)
    return ""


def _date(entry: Element) -> str:
    for name in _DATES:
        if text := words(child(entry, name)):
            try:
                return parsedate_to_datetime(text).isoformat()
            except (ValueError, TypeError):
                return text
    return ""
