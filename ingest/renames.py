"""Give documents of a renamed file their new names without reading the file again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import PurePosixPath

from ingest.enrich import chunk_id, document_hash
from stores.catalogue import Collection
from stores.rows import DocumentRow, document_key

HEADINGS = " › "  # stands between the headings of a section


def can_relabel(documents: Iterable[DocumentRow], old: str, new: str) -> bool:
    """Tell whether nothing in the documents but ids and sources can come from the file's name.

    True for no documents at all. Loaders take a part of the name as a title where a text has none:
    a title, heading or field that is such a part, in whatever spelling, may be one of these, and
    so may any that says the whole name. Then the file must be read again.
    """
    before, after = (PurePosixPath(name).with_suffix("").parts for name in (old, new))
    changed = {_plain(part) for part in {*before, *after} if (part in before) != (part in after)}
    whole = {PurePosixPath(name).name for name in (old, new)}
    return all(_independent(row, old, new, changed, whole) for row in documents)


def _independent(row: DocumentRow, old: str, new: str, changed: set[str], whole: set[str]) -> bool:
    if not row.body_hash or not _labelled(row.source, old) or row.title in (row.document_id, new):
        return False
    if row.is_record and row.document_id == old:  # an id of its own that happens to be the name
        return False
    stated = {row.title, *_leaves(row.metadata), *(value for _, value, _ in row.fields)}
    for chunk in row.chunks:
        stated.update(chunk.section.split(HEADINGS))
    named = any(name in text for name in whole for text in stated)
    return not named and not any(_plain(text) in changed for text in stated)


def _leaves(value: object) -> Iterator[str]:
    """Yield the scalars in a value, as text."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item)
    else:
        yield str(value)


def _plain(text: str) -> str:
    """Keep letters and digits alone, since loaders make titles of names in many ways."""
    return "".join(sign for sign in text.casefold() if sign.isalnum())


def _labelled(text: str, name: str) -> bool:
    return text == name or text.startswith((f"{name}#", f"{name}:", f"{name}/", f"{name}!"))


def relabelled(row: DocumentRow, collection: Collection, old: str, new: str) -> DocumentRow:
    """Return the row that an ingest of the file under its new name makes."""

    def renamed(text: str) -> str:
        return new + text.removeprefix(old) if _labelled(text, old) else text

    document_id, source = renamed(row.document_id), renamed(row.source)
    content_hash = document_hash(document_id, source, row.title, row.body_hash, row.acl)
    chunks = [
        replace(
            chunk,
            chunk_id=chunk_id(collection, document_id, row.version, content_hash, chunk.ordinal),
        )
        for chunk in row.chunks
    ]
    return replace(
        row,
        key=document_key(collection, document_id),
        document_id=document_id,
        file=new,
        source=source,
        content_hash=content_hash,
        chunks=chunks,
    )
