"""XML written to be read (DocBook, JATS, TEI, any other): titles are headings, the rest text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.metadata import humanise
from ingest.loaders.outline import Outline, table_text
from ingest.loaders.records import record_fields
from ingest.loaders.web.xml_tree import attribute, child, descendants, local_name, words
from ingest.types import Block

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_TITLES = frozenset(("title", "head", "heading", "article-title", "bridgehead", "caption-title"))
# Elements whose name says nothing about what they hold.
TEXT_NAMES = frozenset(
    "p para simpara l lg s seg ab line v text item li listitem list-item entry td th cell verse "
    "quote blockquote note abstract dd dt term def description title head row tr sec section "
    "chapter div div1 div2 div3 paragraph string value".split()
)
_CODE = frozenset("programlisting screen literallayout code-block verbatim eg preformat".split())
_TABLES = frozenset(("table", "informaltable", "tgroup"))
_DROPPED = frozenset(
    "binary teiHeader style script journal-meta mathml math svg metadata info".split()
)
_NAMED = ("article-title", "title")
_MAX_DEPTH = 200


def blocks(root: Element) -> tuple[list[Block], str]:
    """Return the blocks of a document in reading order, and its first heading."""
    outline = Outline()
    _walk(outline, root, 1)
    return outline.finish(), outline.first_heading


def described(root: Element) -> dict[str, object]:
    """Return the title, authors, keywords and date that known vocabularies give."""
    found: dict[str, object] = {}
    language = attribute(root, "lang")
    # DocBook's info, JATS' article-meta, TEI's fileDesc, Dublin Core's metadata.
    head = next(
        descendants(root, "article-meta", "fileDesc", "info", "articleinfo", "metadata"), None
    )
    if language:
        found["language"] = language
    if head is None:
        return found
    title = next(descendants(head, *_NAMED), None)
    authors = [words(one) for one in descendants(head, "author", "creator") if words(one)]
    for contributor in descendants(head, "contrib"):
        name = child(contributor, "name")
        parts = [words(child(name, part)) for part in ("given-names", "surname")]
        if any(parts):
            authors.append(" ".join(part for part in parts if part))
    keywords = [words(one) for one in descendants(head, "kwd", "keyword", "subject") if words(one)]
    year = next(descendants(head, "year", "pubdate", "date"), None)
    return found | {
        "title": words(title),
        "authors": authors,
        "keywords": keywords,
        "year": words(year),
    }


def _walk(outline: Outline, element: Element, level: int) -> None:
    name = local_name(element)
    if name in _TABLES and (rows := _rows(element)):
        outline.add(table_text(rows), "table")
    elif name in _CODE:
        outline.add("".join(element.itertext()).strip("\n"), "code")
    elif _is_text(element) or level > _MAX_DEPTH:
        _add_text(outline, element, name)
    else:
        for part in element:
            own = local_name(part)
            if own in _TITLES:
                outline.heading(level, words(part))
            elif own and own not in _DROPPED:
                _walk(outline, part, level + 1)


def _is_text(element: Element) -> bool:
    """Tell whether an element holds words itself, and not only elements that do."""
    if len(element) == 0:
        return True
    return bool((element.text or "").strip()) or any((part.tail or "").strip() for part in element)


def _add_text(outline: Outline, element: Element, name: str) -> None:
    """Add a paragraph; a short value of data is written with its name."""
    text = words(element)
    is_data = len(element) == 0 and name not in TEXT_NAMES and len(text) <= record_fields.LONG
    if text and is_data:
        outline.prose(f"{humanise(name)}: {text}", tight=True)
    else:
        outline.prose(text)


def _rows(table: Element) -> list[list[str]]:
    return [
        [words(cell) for cell in row if local_name(cell) in ("td", "th", "entry", "cell")]
        for row in descendants(table, "tr", "row")
    ]
